"""Results: what is stored, to be looked through and compared."""

import sqlite3
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import RedirectResponse, Response

from hostbench.base.errors import UsageError
from hostbench.base.units import human
from hostbench.decisions.index import UNFINISHED
from hostbench.decisions.listing import (
    ListedResult,
    ResultFilter,
    ResultsFound,
    listed_names,
    listed_results,
)
from hostbench.decisions.sets import moment
from hostbench.judge.overview import WORST_FIRST
from hostbench.model.result import Verdict
from hostbench.results.ids import submitted_unix_s
from orchestrator.api.common import Core, JobId
from orchestrator.console.paging import Pages, where
from orchestrator.console.repeat import Repeat, repeat_of
from orchestrator.console.shell import EMPTY_IS_NONE, View, add_page
from orchestrator.console.visitor import LoggedIn
from orchestrator.core import Orchestrator

ROWS = 50
# With more hosts than this, a browser is sent no names to choose from: it can type them.
NAMES_MOST = 500
COMPARED_MOST = 60
router = APIRouter()

Words = Annotated[str, Query(max_length=300)]
Name = Annotated[str, Query(max_length=253)]
Time = Annotated[str, Query(max_length=40)]


class Tally(BaseModel):
    """How many cases have a verdict."""

    word: str
    count: int


class ResultRow(BaseModel):
    """A result. `tallies`: the worst first; `figure`, `verdict`, `repeat`: of the case in the
    filter, if it is one."""

    job: str
    host: str
    suite: str
    begun_unix_s: float
    cases: int
    tallies: tuple[Tally, ...]
    figure: str | None = None
    verdict: str | None = None
    repeat: Repeat | None = None


class ResultsView(View):
    """`chosen`: the filter as it was given; `cases`: what it means by its case; `problem`: what is
    wrong with it. `indexed` False: the list is still being made."""

    title: str = "Results"
    chosen: dict[str, str]
    query: str
    hosts: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = tuple(Verdict)
    rows: tuple[ResultRow, ...] = ()
    cases: tuple[str, ...] | None = None
    pages: Pages
    problem: str | None = None
    indexed: bool = True


@add_page(router, "/results", "results.html.j2")
def results(
    core: Core,
    host: Name = "",
    suite: Name = "",
    case: Words = "",
    verdict: Annotated[Verdict | None, EMPTY_IS_NONE, Query()] = None,
    since: Time = "",
    until: Time = "",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> View:
    """GET /ui/results."""
    given = {"host": host, "suite": suite, "case": case, "verdict": verdict or ""}
    given |= {"since": since, "until": until}
    chosen = {name: value.strip() for name, value in given.items() if value.strip()}
    view = ResultsView(chosen=chosen, query=urlencode(chosen), pages=where(0, 1, ROWS))
    core.monitored.look()
    try:
        wanted = _filter(chosen, verdict)
    except UsageError as error:
        return view.model_copy(update={"problem": error.message})
    try:
        found, pages = _found(core, wanted, page)
        hosts, suites = listed_names(core.settings.results)
    except sqlite3.Error:
        return view.model_copy(update={"indexed": False})
    return view.model_copy(
        update={
            "hosts": tuple(hosts[:NAMES_MOST]),
            "suites": tuple(suites),
            "rows": tuple(_row(one) for one in found.results),
            "cases": found.cases,
            "pages": pages,
        }
    )


@router.get("/results/compare")
def chosen_for_comparison(
    _visitor: LoggedIn, job: Annotated[list[JobId], Query(max_length=COMPARED_MOST)]
) -> Response:
    """GET /ui/results/compare: the comparison of the jobs that were ticked, the earlier half
    with the later one."""
    jobs = sorted(dict.fromkeys(job), key=lambda one: (submitted_unix_s(one), one))
    half = max(1, len(jobs) // 2)
    sides = {"a": ",".join(jobs[:half]), "b": ",".join(jobs[half:])}
    return RedirectResponse(f"/ui/compare?{urlencode(sides)}", 303)


def _filter(chosen: dict[str, str], verdict: Verdict | None) -> ResultFilter:
    """Raise UsageError for a time that is none."""
    since, until = chosen.get("since"), chosen.get("until")
    return ResultFilter(
        host=chosen.get("host"),
        suite=chosen.get("suite"),
        case=chosen.get("case"),
        verdict=verdict,
        since_unix_s=moment("since", since) if since else None,
        until_unix_s=moment("until", until) if until else None,
    )


def _found(core: Orchestrator, wanted: ResultFilter, page: int) -> tuple[ResultsFound, Pages]:
    """Return what is on a page; beyond the last one, what is on that."""
    root = core.settings.results
    found = listed_results(root, wanted, (page - 1) * ROWS, ROWS)
    pages = where(found.count, page, ROWS)
    if pages.page != page:
        found = listed_results(root, wanted, (pages.page - 1) * ROWS, ROWS)
    return found, pages


def tallies_of(verdicts: Mapping[str, int]) -> tuple[Tally, ...]:
    """Return how many cases have each verdict, the worst first."""
    order = [*map(str, WORST_FIRST), UNFINISHED]
    return tuple(
        Tally(word=word, count=verdicts[word])
        for word in sorted(verdicts, key=lambda word: order.index(word))
    )


def _row(one: ListedResult) -> ResultRow:
    row = ResultRow(
        job=one.job,
        host=one.host,
        suite=one.suite,
        begun_unix_s=one.begun_unix_s,
        cases=one.cases,
        tallies=tallies_of(one.verdicts),
    )
    if one.measured is None:
        return row
    figure, hosts = one.measured.figure, one.measured.hosts
    return row.model_copy(
        update={
            "figure": None if figure.headline is None else human(figure.headline, figure.unit),
            "verdict": figure.verdict or UNFINISHED,
            "repeat": repeat_of(figure.workload, figure.given, hosts),
        }
    )
