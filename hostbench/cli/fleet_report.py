"""The command `fleet report`. It imports what takes time to import."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.decisions import Require
from hostbench.cli.fleet_pairs import Rack, pairs_exit_code
from hostbench.cli.options import Csv, Json, Results, own_epilog
from hostbench.cli.pages import OfCampaigns, OfSuite, Page, check_page, jobs_named, write_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostbench.model.decision import JobFigures
    from hostbench.model.fleet import FleetCheck
    from hostbench.model.pairs import PairMatrix

reports = typer.Typer()

EXAMPLE = "fleet.html"
CODES = own_epilog(
    {
        ExitCode.OK: "the condition of --require holds",
        ExitCode.WORSE: "a host is low, or a part of the network is slow",
        ExitCode.UNDECIDED: "suspect, too few hosts, a population of its own, or network unknown",
        ExitCode.NOT_COMPARABLE: "no figure can be used; with complete: something is missing",
    }
)


@reports.command(epilog=CODES)
def report(
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENTS...",
            help="The jobs of all hosts: directories of jobs, result.json files, ids, or patterns "
            "such as '2026*-quick-*'.",
        ),
    ],
    html: Page = None,
    require: Annotated[
        Require,
        typer.Option(
            help="Condition for exit code 0. not-worse: no host is low; decided: also no host "
            "is suspect, without others to compare with, or a population of its own; "
            "complete: also no case, no node and no document is missing."
        ),
    ] = Require.DECIDED,
    campaign: OfCampaigns = None,
    suite: OfSuite = None,
    rack: Rack = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the nodes that should have a document, one per "
            "line; - for standard input.",
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
    as_csv: Csv = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown for a ticket to standard output.")
    ] = False,
) -> None:
    """Find the bad hosts of a campaign from their result documents alone.

    It compares hosts of one hardware model with each other, or with a baseline of as many hosts.
    From jobs between two hosts, it also shows what hostbench fleet pairs finds in the network.
    """
    from hostbench.decisions.fleet import checked_fleet
    from hostbench.decisions.fleet_words import fleet_sentences

    if as_json + as_csv + as_markdown > 1:
        raise UsageError("give one of --json, --csv and --markdown")
    check_page(html, EXAMPLE)
    wanted = () if nodes is None else _node_names(nodes)
    jobs, refused = jobs_named(documents, suite, campaign, results)
    found = checked_fleet(jobs, time.time(), wanted)
    pairs, why_not = _network(jobs, rack or ())
    found = found.model_copy(
        update={"refused": tuple(refused), "pairs": pairs, "notes": (*found.notes, *why_not)}
    )
    if html is not None:
        from hostbench.page.fleet import fleet_report

        write_page(html, fleet_report(found))
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    elif as_csv:
        from hostbench.results.fleet_csv import write_fleet_csv

        write_fleet_csv(found, sys.stdout)
    elif as_markdown:
        from hostbench.page.fleet import fleet_report
        from hostbench.report.markdown import markdown

        sys.stdout.write(markdown(fleet_report(found)))
    else:
        for sentence in fleet_sentences(found):
            typer.echo(sentence)
        if pairs is not None:
            from hostbench.cli.render_pairs import show_pairs

            show_pairs(pairs, sys.stdout)
    raise typer.Exit(exit_code(found, require))


def exit_code(found: "FleetCheck", require: Require) -> ExitCode:
    """Return the exit code, in the words of `hostbench compare`."""
    from hostbench.model.baseline import HostWord

    words = {host.word for host in found.hosts}
    network = ExitCode.OK if found.pairs is None else pairs_exit_code(found.pairs)
    if HostWord.LOW in words or network is ExitCode.WORSE:
        return ExitCode.WORSE
    if not any(host.figures for host in found.hosts):
        return ExitCode.NOT_COMPARABLE
    # What no host of the kind can measure is not missing.
    lost = any(
        one.case in found.populations[host.population].cases
        for host in found.hosts
        for one in host.lost
    )
    if require is Require.COMPLETE and (lost or found.missing or found.refused):
        return ExitCode.NOT_COMPARABLE
    is_apart = any(one.beside is not None for one in found.populations)
    is_open = words != {HostWord.AS_EXPECTED} or is_apart or network is ExitCode.UNDECIDED
    return ExitCode.UNDECIDED if is_open and require is not Require.NOT_WORSE else ExitCode.OK


def _network(
    jobs: "Sequence[JobFigures]", racks: "Sequence[str]"
) -> "tuple[PairMatrix | None, tuple[str, ...]]":
    """Return the network between the hosts, or None and why it is not judged, as sentences. Raise
    UsageError for a wrong rack."""
    from hostbench.decisions.pair_documents import documents_between_hosts, judged, measured_pairs

    documents = documents_between_hosts(jobs)
    if not documents:
        if racks:
            raise UsageError(
                f"--rack {shown(racks[0])} is about a network, and no document is of a job between "
                "two hosts; leave it out"
            )
        return None, ()
    try:
        found = measured_pairs(documents)
    except UsageError as error:
        return None, (f"The network between the hosts is not judged: {error.message}.",)
    return judged(found, racks), ()


def _node_names(path: Path) -> tuple[str, ...]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"--nodes {path} cannot be read: {reason}; give a file with one node name per line"
        ) from None
    return tuple(line.strip() for line in text.splitlines() if line.strip())
