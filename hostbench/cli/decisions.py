"""The command compare. It imports what takes time to import."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.options import Json, Margin, Results, own_epilog, print_json
from hostbench.cli.pages import OfHost, OfSuite, Output, Since, Until, write_text
from hostbench.cli.stack import here_or_there, refuse_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostbench.client.api import Orchestrator
    from hostbench.decisions.sets import JobFilter
    from hostbench.model.decision import Comparison

decisions = typer.Typer()

MARGIN_LEAST, MARGIN_MOST = 0.1, 50.0


class Require(StrEnum):
    """What makes exit code 0."""

    NOT_WORSE = "not-worse"
    DECIDED = "decided"
    COMPLETE = "complete"


class ComparisonFormat(StrEnum):
    """What a comparison is written as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"


SET = "jobs: an id, latest or latest-2, a pattern such as '2026*-quick-*', host=NAME, a time such "
SET += "as 2026-11-01..2026-11-20 or 3d.., a result.json, a directory, or several with commas "
SET += "between them"
CODES = own_epilog(
    {
        ExitCode.OK: "same or better, or what --require allows",
        ExitCode.WORSE: "a figure is worse",
        ExitCode.UNDECIDED: "a figure is undecided, and none is worse",
        ExitCode.NOT_COMPARABLE: "no figure can be compared; with complete: a case is on one side",
    },
    ExitCode.UNREACHABLE,
)


@decisions.command(epilog=CODES)
@here_or_there
def compare(
    server: "Orchestrator | None",
    a: Annotated[str, typer.Argument(metavar="A", help=f"Side A, {SET}.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Side B, given in the same way.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[C]...", help="Further sides, each compared with A."),
    ] = None,
    host: OfHost = None,
    suite: OfSuite = None,
    since: Since = None,
    until: Until = None,
    margin: Margin = None,
    require: Annotated[
        Require,
        typer.Option(
            help="Condition for exit code 0, besides that no figure is worse. not-worse: no "
            "other; decided: every comparable figure is decided; complete: also every "
            "case of either side can be compared."
        ),
    ] = Require.DECIDED,
    form: Annotated[
        ComparisonFormat,
        typer.Option("--format", help="A table, Markdown for a pull request, or an HTML page."),
    ] = ComparisonFormat.TEXT,
    output: Output = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Compare two sets of jobs and decide which figures differ.

    It decides with four jobs per side, or with twelve earlier jobs of the host. With fewer jobs,
    it shows how many more it needs.
    """
    from hostbench.decisions.compare import compare as compare_jobs
    from hostbench.decisions.index import FigureIndex
    from hostbench.decisions.sets import compared_sides
    from hostbench.results.ids import results_directory

    if as_json and (form is not ComparisonFormat.TEXT or output):
        raise UsageError("--json goes to standard output; leave out --format and --output")
    room = None if margin is None else margin_ratio(margin)
    others = (b, *(more or ()))
    if server is not None:
        refuse_here(results=results)
        query = {"host": host, "suite": suite, "since": since, "until": until, "margin": room}
        found = [server.compare(a, name, query) for name in others]
    else:
        wanted = job_filter(host, suite, since, until)
        found = []
        with FigureIndex(results_directory(results)) as index:
            for name in others:
                given = compared_sides((a, name), index, wanted)
                found.append(
                    compare_jobs(*given.sides, names=(a, name), earlier=given.earlier, margin=room)
                )
    if as_json:
        print_json({"comparisons": [one.model_dump(mode="json") for one in found]})
    else:
        write_text(output, lambda stream: _write(found, form, stream))
    raise typer.Exit(_exit_code(found, require))


def _write(found: "Sequence[Comparison]", form: ComparisonFormat, stream: TextIO) -> None:
    if form is ComparisonFormat.TEXT:
        from hostbench.cli.render_compare import show_comparison

        for one in found:
            show_comparison(one, stream)
        return
    from hostbench.page.comparison import comparison_report
    from hostbench.report.html import html
    from hostbench.report.markdown import markdown

    report = comparison_report(found)
    stream.write(html(report) if form is ComparisonFormat.HTML else markdown(report))


def _exit_code(found: "Sequence[Comparison]", require: Require) -> ExitCode:
    from hostbench.model.decision import Word

    words = {one.word for one in found}
    cases = {case.word for one in found for case in one.cases}
    if Word.WORSE in words:
        return ExitCode.WORSE
    if Word.NOT_COMPARABLE in words or (
        require is Require.COMPLETE and Word.NOT_COMPARABLE in cases
    ):
        return ExitCode.NOT_COMPARABLE
    if Word.UNDECIDED in words and require is not Require.NOT_WORSE:
        return ExitCode.UNDECIDED
    return ExitCode.OK


def job_filter(
    host: str | None, suite: str | None, since: str | None, until: str | None
) -> "JobFilter":
    """Return the checked options that choose jobs. Raise UsageError."""
    from hostbench.decisions.sets import JobFilter, moment

    return JobFilter(
        host=host,
        suite=suite,
        since_unix_s=None if since is None else moment("--since", since),
        until_unix_s=None if until is None else moment("--until", until),
    )


def margin_ratio(text: str) -> float:
    """Return `--margin` as a share. Raise UsageError."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not MARGIN_LEAST <= percent <= MARGIN_MOST:
        raise UsageError(
            f"--margin {shown(text)} is not a share; give percent from {MARGIN_LEAST:g} to "
            f"{MARGIN_MOST:g}, such as 2"
        )
    return percent / 100
