"""Compare: whether the figures of some jobs differ from those of others."""

import shlex
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from hostbench.base.errors import HostbenchError
from hostbench.model.decision import Comparison
from hostbench.page.comparison import comparison_report
from hostbench.report.content import Report
from hostbench.web.problem import as_problem
from orchestrator.api.common import Core
from orchestrator.api.decisions import MARGIN_LEAST, MARGIN_MOST, SIDE_CHARACTERS_MOST
from orchestrator.console.repeat import Repeat, repeats_of
from orchestrator.console.shell import EMPTY_IS_NONE, View, add_page
from orchestrator.results.questions import CompareQuestion

router = APIRouter()
Side = Annotated[str, Query(max_length=SIDE_CHARACTERS_MOST)]
Margin = Annotated[float, Field(ge=MARGIN_LEAST, le=MARGIN_MOST)]
Name = Annotated[str, Query(max_length=253)]


class CompareView(View):
    """`chosen`: the query; `swapped`: the same with the sides the other way round.
    `problem`: why there is no answer. The twin has the comparison, the page what is made of it.
    `repeats`: how to measure each case again."""

    title: str = "Compare"
    chosen: dict[str, str]
    swapped: str
    comparison: Comparison | None = None
    problem: str | None = None
    command: str | None = None
    curl: str | None = None
    repeats: dict[str, Repeat] = Field(default={})

    @property
    def report(self) -> Report | None:
        """The comparison as the page of `hostbench compare --html`."""
        if self.comparison is None:
            return None
        repeats = {case: one.texts for case, one in self.repeats.items()}
        return comparison_report([self.comparison], repeats)


@add_page(router, "/compare", "compare.html.j2")
async def compare(
    core: Core,
    a: Side = "",
    b: Side = "",
    host: Name = "",
    suite: Name = "",
    margin: Annotated[Margin | None, EMPTY_IS_NONE, Query()] = None,
) -> View:
    """GET /ui/compare."""
    given = {"a": a, "b": b, "host": host, "suite": suite}
    chosen = {name: value.strip() for name, value in given.items() if value.strip()}
    if margin is not None:
        chosen["margin"] = f"{margin:g}"
    view = CompareView(chosen=chosen, swapped=urlencode(_swapped(chosen)))
    if "a" not in chosen or "b" not in chosen:
        return view
    question = CompareQuestion(
        a=chosen["a"],
        b=chosen["b"],
        host=chosen.get("host"),
        suite=chosen.get("suite"),
        margin=margin,
    )
    try:
        found = Comparison.model_validate_json(await core.decider.answer(question))
    except HostbenchError as error:
        return view.model_copy(update={"problem": as_problem(error).details.detail})
    jobs = {case.case: found.b.jobs for case in found.cases}
    repeats = await run_in_threadpool(repeats_of, core.settings.results, jobs)
    return view.model_copy(
        update={
            "title": "Comparison",
            "repeats": repeats,
            "comparison": found,
            "command": _command(chosen, margin),
            "curl": f"curl --header @secrets/authorization 'URL/compare?{urlencode(chosen)}'",
        }
    )


def _swapped(chosen: dict[str, str]) -> dict[str, str]:
    return {{"a": "b", "b": "a"}.get(name, name): value for name, value in chosen.items()}


def _command(chosen: dict[str, str], margin: float | None) -> str:
    options: list[Any] = [chosen["a"], chosen["b"]]
    for name in ("host", "suite"):
        options += [f"--{name}", chosen[name]] if name in chosen else []
    options += [] if margin is None else ["--margin", f"{margin * 100:g}"]
    return f"hostbench compare --stack {shlex.join(map(str, options))}"
