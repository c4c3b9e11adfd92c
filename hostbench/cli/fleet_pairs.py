"""The commands `fleet schedule` and `fleet pairs`: the network between the hosts of a fleet. They
import what takes time to import."""

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.options import (
    Csv,
    Json,
    Results,
    own_epilog,
    refuse_both,
    whole_number,
)
from hostbench.cli.pages import OfCampaigns, Page, check_page, jobs_named, write_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostbench.decisions.pair_rounds import Round
    from hostbench.model.pairs import PairMatrix

network = typer.Typer()

ROUNDS, NODES_MOST, SEED_MOST = 8, 10_000, 10**9
CODES = own_epilog(
    {
        ExitCode.OK: "no host, uplink or link is slow",
        ExitCode.WORSE: "a host, an uplink or a link is slow",
        ExitCode.UNDECIDED: "a host or an uplink is suspect, or too little was measured",
    }
)
EXAMPLE = "pairs.html"

Rack = Annotated[
    list[str] | None,
    typer.Option(
        "--rack",
        metavar="LABEL=NODE,NODE",
        help="The nodes of a rack, by name or pattern, once for each rack: r1=node1,node2 or "
        "r1='node-a*'.",
    ),
]
RackLabel = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="Kubernetes: the label of nodes that names their rack. Default: "
        "topology.kubernetes.io/rack, where nodes have it. Slurm: racks are leaf switches.",
    ),
]


class PairsChoice(StrEnum):
    """Which pairs of nodes a campaign measures."""

    MATCHINGS = "matchings"
    TOURNAMENT = "tournament"
    RETEST = "retest"


Pairs = Annotated[
    PairsChoice | None,
    typer.Option(
        "--pairs",
        help="Measure between pairs of nodes: random rounds in which each node has one partner; "
        "every pair once; or what campaigns of pairs left suspect (--of).",
    ),
]
Rounds = Annotated[
    str | None,
    typer.Option(metavar="N", help=f"Number of random rounds of pairs. Default: {ROUNDS}."),
]
Seed = Annotated[str, typer.Option(metavar="N", help="Seed of the random rounds.")]
Of = Annotated[
    list[str] | None,
    typer.Option("--of", metavar="NAME", help="A campaign that --pairs retest measures again."),
]


@network.command(epilog=own_epilog({ExitCode.OK: "the pairs are printed"}))
def schedule(
    nodes: Annotated[list[str], typer.Argument(metavar="NODE...", help="The nodes, by name.")],
    rounds: Rounds = None,
    full: Annotated[bool, typer.Option("--full", help="Every pair once.")] = False,
    rack: Rack = None,
    seed: Seed = "0",
    as_json: Json = False,
) -> None:
    """Print which pairs of nodes to measure, in rounds for your own engine.

    The pairs of a round have no node in common, so they can run at the same time. The near end,
    where hostbench run measures, is named first.
    """
    from hostbench.decisions.pair_documents import racks_of
    from hostbench.decisions.pair_rounds import matchings, rounds_most, tournament

    _check_nodes(nodes)
    if full and rounds is not None:
        raise UsageError(
            "--full measures every pair once and --rounds only some of them; give one of the two"
        )
    racks = racks_of(rack or (), nodes)
    most = rounds_most(len(nodes))
    number = whole_number("--seed", seed, 0, SEED_MOST)
    found: Sequence[Round]
    if full:
        found = tournament(nodes)
    else:
        wanted = min(ROUNDS, most)
        if rounds is not None:
            wanted = whole_number("--rounds", rounds, 1, most)
        found = matchings(nodes, wanted, racks, number)
    if as_json:
        _write_schedule(found, len(nodes), racks, number)
    else:
        _show_schedule(found, len(nodes))


def _check_nodes(nodes: "Sequence[str]") -> None:
    if len(nodes) < 2:
        raise UsageError(f"{shown(nodes[0])} is one node; a pair needs two: name more nodes")
    if len(nodes) > NODES_MOST:
        raise UsageError(f"{len(nodes):,} nodes are too many; give at most {NODES_MOST:,}")
    seen: set[str] = set()
    for node in nodes:
        if node in seen:
            raise UsageError(f"node {shown(node)} is named twice; name each node once")
        seen.add(node)


def _write_schedule(
    rounds: "Sequence[Round]", nodes: int, racks: "Mapping[str, str]", seed: int
) -> None:
    """Print the schedule as JSON, a round a line as it is made."""
    from hostbench.decisions.pair_rounds import pairs_of

    pairs = 0
    sys.stdout.write('{\n "rounds": [')
    for number, one in enumerate(rounds):
        sys.stdout.write(f"{',' if number else ''}\n  {json.dumps(one)}")
        pairs += len(one)
    rest = {
        "racks": dict(racks),
        "seed": seed,
        "pairs": pairs,
        "links_share": pairs / pairs_of(nodes),
    }
    sys.stdout.write("\n ],\n" + json.dumps(rest, indent=1).removeprefix("{\n") + "\n")


def _show_schedule(rounds: "Sequence[Round]", nodes: int) -> None:
    from hostbench.base.units import percent, plural
    from hostbench.decisions.pair_rounds import pairs_of
    from hostbench.decisions.pair_words import round_words

    pairs = 0
    for number, one in enumerate(rounds, start=1):
        typer.echo(f"round {number}: {round_words(one)}")
        pairs += len(one)
    share = percent(pairs / pairs_of(nodes))
    typer.echo(
        f"{plural(pairs, 'pair')} of {plural(nodes, 'node')}, {share} of all: a single slow link "
        f"is among them with a chance of {share}."
    )


@network.command(epilog=CODES)
def pairs(
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENTS...",
            help="Jobs between two hosts: directories of jobs, result.json files, ids, or patterns "
            "such as '2026*-net-*'.",
        ),
    ],
    rack: Rack = None,
    case: Annotated[
        str | None,
        typer.Option(
            metavar="TITLE",
            help="Title of the case. Default: the bandwidth case that most of the jobs have.",
        ),
    ] = None,
    campaign: OfCampaigns = None,
    html: Page = None,
    results: Results = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Find slow hosts, rack uplinks and links of a network from jobs between two hosts.

    Each document counts once; two jobs of the same two hosts are two measurements of their link.
    Without --rack, the racks are those that the documents name.
    """
    from hostbench.decisions.pair_documents import matrix_of

    refuse_both(as_json, as_csv)
    check_page(html, EXAMPLE)
    jobs, refused = jobs_named(documents, None, campaign, results)
    matrix = matrix_of(jobs, rack or (), case, refused)
    if html is not None:
        from hostbench.page.pairs import pairs_report

        write_page(html, pairs_report(matrix))
    if as_json:
        typer.echo(matrix.model_dump_json(indent=1))
    elif as_csv:
        from hostbench.results.pairs_csv import write_pairs_csv

        write_pairs_csv(matrix, sys.stdout)
    else:
        from hostbench.cli.render_pairs import show_pairs

        show_pairs(matrix, sys.stdout)
    raise typer.Exit(pairs_exit_code(matrix))


def pairs_exit_code(matrix: "PairMatrix") -> ExitCode:
    """Return 20 if anything is slow, 21 if anything is suspect or unknown, else 0."""
    from hostbench.model.pairs import PairWord

    words = {one.word for one in (*matrix.hosts, *matrix.uplinks)}
    if PairWord.SLOW in words or any(one.word is PairWord.SLOW for one in matrix.links):
        return ExitCode.WORSE
    return ExitCode.OK if words == {PairWord.AS_EXPECTED} else ExitCode.UNDECIDED
