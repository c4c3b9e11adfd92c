"""What the commands that decide share: which jobs count, and where the answer goes."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostbench.model.decision import JobFigures
    from hostbench.report.content import Report

OPTION, WHAT = "--output", "the output"
Output = Annotated[
    str | None,
    typer.Option(OPTION, metavar="FILE", help="Output file. Default, and -: standard output."),
]
HTML, PAGE = "--html", "the page"
Page = Annotated[Path | None, typer.Option(HTML, metavar="FILE", help="Also write an HTML page.")]
OfHost = Annotated[str | None, typer.Option("--host", help="Only jobs of this host.")]
OfSuite = Annotated[str | None, typer.Option("--suite", help="Only jobs of this suite.")]
OfCampaigns = Annotated[
    list[str] | None,
    typer.Option("--campaign", metavar="NAME", help="Only jobs of this campaign. May be repeated."),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only jobs from this time on: 2026-11-20, or 3d ago."),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only jobs before this time.")]


def jobs_named(
    documents: "Sequence[str]",
    suite: str | None,
    campaigns: "Sequence[str] | None",
    results: Path | None,
) -> "tuple[Sequence[JobFigures], list[str]]":
    """Return the jobs that expressions name, and the documents that are left out because they are
    damaged or of something else, a sentence for each. Raise UsageError if no job is left."""
    from hostbench.decisions.index import FigureIndex
    from hostbench.decisions.members import of_campaigns
    from hostbench.decisions.sets import JobFilter, jobs_of
    from hostbench.results.ids import results_directory

    refused: list[str] = []
    wanted = JobFilter(suite=suite)
    with FigureIndex(results_directory(results)) as index:
        found = [job for one in documents for job in jobs_of(one, index, wanted, refused=refused)]
    refused = list(dict.fromkeys(refused))
    if not found:
        more = f"; nor can {len(refused) - 1} others be used" if len(refused) > 1 else ""
        raise UsageError(f"{refused[0]}{more}")
    return of_campaigns(found, campaigns or ()), refused


def write_text(output: str | None, write: Callable[[TextIO], None]) -> None:
    """Call `write` with the file; None or -: with standard output. Raise UsageError or
    ResourceError for a file that cannot be written."""
    from hostbench.results.output import STANDARD_OUTPUT, check_output, write_output

    if output in (None, STANDARD_OUTPUT):
        write(sys.stdout)
        return
    target = Path(output or "")
    check_output(OPTION, WHAT, target, "comparison.html")
    content = io.BytesIO()
    text = io.TextIOWrapper(content, encoding="utf-8")
    write(text)
    text.flush()
    write_output(OPTION, WHAT, target, content.getvalue())


def check_page(target: Path | None, example: str) -> None:
    """Raise UsageError or ResourceError if a page cannot be written there. None: no page."""
    from hostbench.results.output import check_output

    if target is not None:
        check_output(HTML, PAGE, target, example)


def write_page(target: Path, page: "Report") -> None:
    """Write a page as HTML. Raise ResourceError."""
    from hostbench.report.html import html
    from hostbench.results.output import write_output

    write_output(HTML, PAGE, target, html(page).encode())
