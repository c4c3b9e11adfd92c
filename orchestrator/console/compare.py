"""Compare: whether the figures of some jobs differ from those of others."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from hostbench.base.errors import HostbenchError
from hostbench.model.decision import Comparison
from hostbench.page.comparison import Excerpt, comparison_report, figure_rows
from hostbench.report.content import Report
from hostbench.web.problem import as_problem
from orchestrator.api.common import Core
from orchestrator.api.decisions import MARGIN_LEAST, MARGIN_MOST, SIDE_CHARACTERS_MOST
from orchestrator.console.comparisons import RecentComparisons
from orchestrator.console.paging import Pages, paged, where
from orchestrator.console.repeat import Repeat, repeats_of
from orchestrator.console.shell import EMPTY_IS_NONE, View, add_page
from orchestrator.results.questions import CompareQuestion

# With the commands of each, a page of a comparison is below 150 KB.
ROWS = 50
router = APIRouter()
Side = Annotated[str, Query(max_length=SIDE_CHARACTERS_MOST)]
Margin = Annotated[float, Field(ge=MARGIN_LEAST, le=MARGIN_MOST)]
Name = Annotated[str, Query(max_length=253)]


class CompareView(View):
    """`chosen`: the query; `query`: the same as text; `swapped`: with the sides the other way
    round. `problem`: why there is no answer.

    The twin has the comparison, the page what is made of it. `pages` counts figures. `comparison`
    has the cases whose figures are on this page, of the `whole` one; `repeats`: how to measure
    them again."""

    title: str = "Compare"
    chosen: dict[str, str]
    query: str
    swapped: str
    comparison: Comparison | None = None
    whole: Comparison | None = Field(default=None, exclude=True)
    pages: Pages
    problem: str | None = None
    command: str | None = None
    curl: str | None = None
    repeats: dict[str, Repeat] = Field(default={})

    @property
    def report(self) -> Report | None:
        """The comparison as the page of `hostbench compare --html`, with the figures of this
        page."""
        if self.whole is None:
            return None
        rows, _ = paged(figure_rows(self.whole), self.pages.page, ROWS)
        repeats = {case: one.texts for case, one in self.repeats.items()}
        return comparison_report([self.whole], Excerpt(rows, repeats))


@add_page(router, "/compare", "compare.html.j2")
async def compare(
    request: Request,
    core: Core,
    a: Side = "",
    b: Side = "",
    host: Name = "",
    suite: Name = "",
    margin: Annotated[Margin | None, EMPTY_IS_NONE, Query()] = None,
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> View:
    """GET /ui/compare."""
    given = {"a": a, "b": b, "host": host, "suite": suite}
    chosen = {name: value.strip() for name, value in given.items() if value.strip()}
    if margin is not None:
        chosen["margin"] = f"{margin:g}"
    view = CompareView(
        chosen=chosen,
        query=urlencode(chosen),
        swapped=urlencode(_swapped(chosen)),
        pages=where(0, 1, ROWS),
    )
    if "a" not in chosen or "b" not in chosen:
        return view
    question = CompareQuestion(
        a=chosen["a"],
        b=chosen["b"],
        host=chosen.get("host"),
        suite=chosen.get("suite"),
        margin=margin,
    )
    recent: RecentComparisons = request.app.state.comparisons
    try:
        found = await recent.of(question)
    except HostbenchError as error:
        return view.model_copy(update={"problem": as_problem(error).details.detail})
    rows, pages = paged(figure_rows(found), page, ROWS)
    cases = {row.case.case for row in rows}
    repeats = await run_in_threadpool(_repeats, core.settings.results, found, cases)
    return view.model_copy(
        update={
            "title": "Comparison",
            "repeats": repeats,
            "comparison": found.model_copy(
                update={"cases": tuple(case for case in found.cases if case.case in cases)}
            ),
            "whole": found,
            "pages": pages,
            "command": _command(chosen, margin),
            "curl": f"curl --header @secrets/authorization 'URL/compare?{view.query}'",
        }
    )


def _repeats(results: Path, found: Comparison, cases: Iterable[str]) -> dict[str, Repeat]:
    """Return how to measure these cases again, as on side B; as on side A where B lacks one."""
    on_a = repeats_of(results, dict.fromkeys(cases, found.a.jobs))
    on_b = repeats_of(results, dict.fromkeys(cases, found.b.jobs))
    return on_a | on_b


def _swapped(chosen: dict[str, str]) -> dict[str, str]:
    return {{"a": "b", "b": "a"}.get(name, name): value for name, value in chosen.items()}


def _command(chosen: dict[str, str], margin: float | None) -> str:
    options: list[Any] = [chosen["a"], chosen["b"]]
    for name in ("host", "suite"):
        options += [f"--{name}", chosen[name]] if name in chosen else []
    options += [] if margin is None else ["--margin", f"{margin * 100:g}"]
    return f"hostbench compare --stack {shlex.join(map(str, options))}"
