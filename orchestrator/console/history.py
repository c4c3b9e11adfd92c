"""Case history: a figure of a host over its stored jobs, and where it changed."""

import shlex
import sqlite3
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from hostbench.base.errors import HostbenchError, shown
from hostbench.decisions.history_words import error_sentences, history_headline
from hostbench.decisions.listing import listed_names, newest_cases
from hostbench.model.baseline import FigureCheck, HostCheck
from hostbench.model.decision import FigureKind, History, HostHistory
from hostbench.page.history import history_report
from hostbench.report.content import Report
from hostbench.web.problem import as_problem
from orchestrator.api.common import Core
from orchestrator.console.documents import Meaning, meanings
from orchestrator.console.repeat import Repeat, repeats_of
from orchestrator.console.results import NAMES_MOST
from orchestrator.console.shell import EMPTY_IS_NONE, View, add_page
from orchestrator.core import Orchestrator
from orchestrator.results.questions import BaselineQuestion, HistoryQuestion

router = APIRouter()
# How a reader of the page asks for the other figure of a case.
BY_FORM = "choose it under Figure"
Name = Annotated[str, Query(max_length=253)]
Time = Annotated[str, Query(max_length=40)]


class HistoryView(View):
    """`chosen`: the query. `hosts`, `cases`: those to choose from. `histories`: of one case,
    or of all headline cases. `reference`: what other hosts of the model do. `repeats`: how to
    measure each case again. `problem`: why there is no answer."""

    title: str = "History"
    chosen: dict[str, str]
    hosts: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    found: HostHistory | None = None
    reference: FigureCheck | None = None
    problem: str | None = None
    command: str | None = None
    curl: str | None = None
    repeats: dict[str, Repeat] = Field(default={})

    @property
    def one(self) -> History | None:
        """The history of the chosen case."""
        return self.found.histories[0] if self.found and "case" in self.chosen else None

    @property
    def report(self) -> Report | None:
        """It as the page of `hostbench history --html`."""
        return None if self.one is None else history_report(self.one, self.reference, BY_FORM)

    @property
    def about(self) -> tuple[Meaning, ...]:
        """What the docs say of the case's workload."""
        return () if self.one is None else meanings().get(self.one.title.partition(" ")[0], ())

    @property
    def headlines(self) -> list[str]:
        """A sentence for each history, in their order."""
        return [history_headline(one) for one in (self.found.histories if self.found else ())]

    @property
    def remarks(self) -> list[str]:
        """How sure a host's histories are together, and what is not in them."""
        if self.found is None or self.one is not None:
            return []
        return [*error_sentences(self.found, BY_FORM), *(f"{why}." for why in self.found.left_out)]


@add_page(router, "/history", "history.html.j2")
async def history(
    core: Core,
    host: Name = "",
    case: Annotated[str, Query(max_length=300)] = "",
    suite: Name = "",
    since: Time = "",
    until: Time = "",
    figure: Annotated[FigureKind | None, EMPTY_IS_NONE, Query()] = None,
) -> View:
    """GET /ui/history."""
    given = {"host": host, "case": case, "suite": suite, "since": since, "until": until}
    chosen = {name: value.strip() for name, value in given.items() if value.strip()}
    if figure is not None:
        chosen["figure"] = figure
    await run_in_threadpool(core.monitored.look)
    hosts, cases = await run_in_threadpool(_names, core, chosen.get("host"))
    view = HistoryView(chosen=chosen, hosts=tuple(hosts[:NAMES_MOST]), cases=tuple(cases))
    if "host" not in chosen:
        return view
    question = HistoryQuestion(
        host=chosen["host"],
        case=chosen.get("case"),
        suite=chosen.get("suite"),
        since=chosen.get("since"),
        until=chosen.get("until"),
        figure=figure,
    )
    try:
        answer = await core.decider.answer(question)
        if not answer:
            none = f"no job of a host {shown(chosen['host'])} is stored; choose one from the list"
            return view.model_copy(update={"problem": none})
        found = HostHistory.model_validate_json(answer)
        reference = await _reference(core, found) if "case" in chosen else None
    except HostbenchError as error:
        return view.model_copy(update={"problem": as_problem(error).details.detail})
    jobs = {one.case: [point.job for point in one.points] for one in found.histories}
    repeats = await run_in_threadpool(repeats_of, core.settings.results, jobs)
    title = f"{found.histories[0].title} on" if "case" in chosen else "History of"
    return view.model_copy(
        update={
            "title": f"{title} {found.host}",
            "found": found,
            "reference": reference,
            "repeats": repeats,
            "command": _command(chosen),
            "curl": _curl(chosen),
        }
    )


def _names(core: Orchestrator, host: str | None) -> tuple[Sequence[str], Sequence[str]]:
    root = core.settings.results
    try:
        return listed_names(root)[0], [] if host is None else newest_cases(root, host)
    except sqlite3.Error:
        return [], []


async def _reference(core: Orchestrator, found: HostHistory) -> FigureCheck | None:
    """Return what other hosts of the model do in the case of a history, if a baseline says it."""
    (one,) = found.histories
    if not one.points:
        return None
    answer = await core.decider.answer(BaselineQuestion(job=one.points[-1].job))
    check = HostCheck.model_validate_json(answer)
    return next((figure for figure in check.figures if figure.case == one.case), None)


def _command(chosen: dict[str, str]) -> str:
    words = [chosen["case"]] if "case" in chosen else []
    for name in ("host", "suite", "since", "until", "figure"):
        words += [f"--{name}", chosen[name]] if name in chosen else []
    return f"hostbench history --stack {shlex.join(words)}"


def _curl(chosen: dict[str, str]) -> str:
    query = {name: value for name, value in chosen.items() if name != "host"}
    path = f"/hosts/{chosen['host']}/history" + (f"?{urlencode(query)}" if query else "")
    return f"curl --header @secrets/authorization {shlex.quote('URL' + path)}"
