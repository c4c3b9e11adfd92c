"""The command history. What takes time to import is imported by the command."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench.base.errors import UsageError
from hostbench.cli.decisions import job_filter
from hostbench.cli.options import EPILOG, Json, Results
from hostbench.cli.pages import OfHost, OfSuite, Output, Since, Until, write_text

if TYPE_CHECKING:
    from hostbench.model.decision import History

histories = typer.Typer()


class Figure(StrEnum):
    """Which of the two figures of a case."""

    UNDISTURBED = "undisturbed"
    DELIVERED = "delivered"


class HistoryFormat(StrEnum):
    """What a history is written as."""

    TEXT = "text"
    HTML = "html"


@histories.command(epilog=EPILOG)
def history(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE",
            help="A case: its title as hostbench show prints it, the beginning of one, a workload "
            "such as mem.triad that has one case, or a case's hash.",
        ),
    ],
    host: OfHost = None,
    suite: OfSuite = None,
    since: Since = None,
    until: Until = None,
    figure: Annotated[
        Figure,
        typer.Option(help="What the hardware does while left alone, or all work over all time."),
    ] = Figure.UNDISTURBED,
    form: Annotated[
        HistoryFormat, typer.Option("--format", help="Lines of text, or a page.")
    ] = HistoryFormat.TEXT,
    output: Output = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Say when a case changed over all stored jobs of a host, and what else changed then.

    It takes 8 jobs to tell.
    """
    from hostbench.decisions.history import history_of
    from hostbench.decisions.index import FigureIndex
    from hostbench.model.decision import FigureKind
    from hostbench.results.index import results_directory

    if as_json and (form is not HistoryFormat.TEXT or output):
        raise UsageError("--json goes to standard output; leave out --format and --output")
    wanted = job_filter(host, suite, since, until)
    with FigureIndex(results_directory(results)) as index:
        found = history_of(index, case, wanted, FigureKind(figure))
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
        return
    write_text(output, lambda stream: _write(found, form, stream))


def _write(found: "History", form: HistoryFormat, stream: TextIO) -> None:
    if form is HistoryFormat.TEXT:
        from hostbench.cli.render_history import show_history

        show_history(found, stream)
        return
    from hostbench.page.history import history_report
    from hostbench.report.html import html

    stream.write(html(history_report(found)))
