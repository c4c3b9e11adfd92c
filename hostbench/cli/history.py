"""The command history. It imports what takes time to import."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.cli.decisions import job_filter
from hostbench.cli.options import Json, Results, own_epilog
from hostbench.cli.pages import OfHost, OfSuite, Output, Since, Until, write_text
from hostbench.cli.stack import here_or_there, refuse_here

if TYPE_CHECKING:
    from hostbench.client.api import Orchestrator
    from hostbench.model.decision import HostHistory

histories = typer.Typer()


class Figure(StrEnum):
    """Which of the two figures of a case."""

    UNDISTURBED = "undisturbed"
    DELIVERED = "delivered"


class HistoryFormat(StrEnum):
    """What a history is written as."""

    TEXT = "text"
    HTML = "html"


@histories.command(
    epilog=own_epilog(
        {ExitCode.OK: "the history is printed, with or without changes"}, ExitCode.UNREACHABLE
    )
)
@here_or_there
def history(
    server: "Orchestrator | None",
    case: Annotated[
        str | None,
        typer.Argument(
            metavar="CASE",
            help="A case: its title as hostbench show prints it, the beginning of one, a workload "
            "such as mem.triad that has one case, or a case's hash. Default: all headline cases.",
        ),
    ] = None,
    host: OfHost = None,
    suite: OfSuite = None,
    since: Since = None,
    until: Until = None,
    figure: Annotated[
        Figure | None,
        typer.Option(
            help="undisturbed: what the hardware does without interruptions; delivered: all "
            "work divided by all time. Default: undisturbed, if the case has it."
        ),
    ] = None,
    form: Annotated[
        HistoryFormat, typer.Option("--format", help="Lines of text, or an HTML page.")
    ] = HistoryFormat.TEXT,
    output: Output = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Show when a case changed over all stored jobs of a host, and what else changed then.

    It needs 8 jobs, and some more to judge several cases together.
    """
    from hostbench.decisions.history import headline_histories, history_of
    from hostbench.decisions.index import FigureIndex
    from hostbench.model.decision import FigureKind, HostHistory
    from hostbench.results.ids import results_directory

    if as_json and (form is not HistoryFormat.TEXT or output):
        raise UsageError("--json goes to standard output; leave out --format and --output")
    if case is None and form is HistoryFormat.HTML:
        raise UsageError("--format html draws one case; name it, such as mem.triad")
    kind = None if figure is None else FigureKind(figure)
    if server is not None:
        from hostbench.cli.job_commands import one_host

        refuse_here(results=results)
        query = {"case": case, "suite": suite, "since": since, "until": until, "figure": figure}
        found = server.history(one_host(server, host), query)
    else:
        wanted = job_filter(host, suite, since, until)
        with FigureIndex(results_directory(results)) as index:
            if case is None:
                found = headline_histories(index, wanted, kind)
            else:
                one = history_of(index, case, wanted, kind)
                found = HostHistory(host=one.host, histories=(one,))
    if as_json:
        answer = found if case is None else found.histories[0]
        typer.echo(answer.model_dump_json(indent=1))
        return
    write_text(output, lambda stream: _write(found, form, stream))


def _write(found: "HostHistory", form: HistoryFormat, stream: TextIO) -> None:
    if form is HistoryFormat.TEXT:
        from hostbench.cli.render_history import show_histories

        show_histories(found, stream)
        return
    from hostbench.page.history import history_report
    from hostbench.report.html import html

    stream.write(html(history_report(found.histories[0])))
