"""Which pairs of nodes a campaign measures: random rounds, a tournament, or what earlier campaigns
left undecided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hostbench.base.errors import HostbenchError, UsageError, listing, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.fleet_pairs import ROUNDS, SEED_MOST, PairsChoice
from hostbench.cli.options import whole_number
from hostbench.decisions.pair_documents import judged, measured_pairs, racks_of
from hostbench.decisions.pair_rounds import Round, matchings, pairs_of, rounds_most, tournament
from hostbench.fleet.campaign import Campaign, Engine, NodeState, Pair
from hostbench.fleet.collect import collect
from hostbench.model.result import ResultDocument
from hostbench.model.suite import Suite
from hostbench.plan.workloads import takes_far_host
from hostbench.results.sealed import read_document

# A ConfigMap has 1 MiB, and each pair has objects of its own.
PAIRS_MOST = 10_000


class NothingToRetest(HostbenchError):
    """The campaigns left nothing undecided that measuring again would decide."""

    exit_code = ExitCode.OK


@dataclass(frozen=True)
class PairsRequest:
    """The options of `fleet run` about pairs, as they were given. `root`: where documents of
    campaigns are collected that are measured again."""

    choice: PairsChoice
    rounds: str | None
    seed: str
    racks: tuple[str, ...]
    rack_label: str | None
    of: tuple[str, ...]
    root: Path

    @property
    def names_racks(self) -> bool:
        """Whether it says which nodes are in a rack."""
        return bool(self.racks) or self.rack_label is not None

    def check(self) -> None:
        """Raise UsageError for options that do not belong together."""
        if self.rounds is not None and self.choice is not PairsChoice.MATCHINGS:
            raise UsageError(
                f"--rounds is for --pairs matchings; leave it out with --pairs {self.choice}"
            )
        if bool(self.of) != (self.choice is PairsChoice.RETEST):
            raise UsageError(
                "--of names the campaigns that --pairs retest measures again; give both or neither"
            )
        if self.racks and self.rack_label is not None:
            raise UsageError("--rack and --rack-label both define the racks; give one of the two")


def racks_for(engine: Engine, nodes: Sequence[str], request: PairsRequest) -> dict[str, str]:
    """Return the rack of each node, as the options or else the cluster names it. Raise
    UsageError."""
    if request.racks:
        return racks_of(request.racks, nodes)
    return engine.racks(nodes, request.rack_label)


def rounds_for(
    nodes: Sequence[str], racks: Mapping[str, str], request: PairsRequest
) -> Sequence[Round]:
    """Return the rounds of pairs of these nodes. Raise UsageError."""
    if len(nodes) < 2:
        raise UsageError(f"--pairs needs two nodes, and there is {listing(nodes)}; see --nodes")
    most = rounds_most(len(nodes))
    if request.choice is PairsChoice.TOURNAMENT:
        _check_count(pairs_of(len(nodes)), request.choice)
        return tournament(nodes)
    count = min(ROUNDS, most)
    if request.rounds is not None:
        count = whole_number("--rounds", request.rounds, 1, most)
    _check_count(count * (len(nodes) // 2), request.choice)
    return matchings(nodes, count, racks, whole_number("--seed", request.seed, 0, SEED_MOST))


def _check_count(pairs: int, choice: PairsChoice) -> None:
    if pairs > PAIRS_MOST:
        raise UsageError(
            f"--pairs {choice} is {pairs:,} pairs, and a campaign has at most {PAIRS_MOST:,}; give "
            "fewer --rounds, or fewer --nodes"
        )


def retested(
    engine: Engine, request: PairsRequest
) -> tuple[Suite, tuple[str, ...], list[Round], dict[str, str]]:
    """Return what would decide the suspects of earlier campaigns: their suite, their nodes, the
    rounds and the racks. Their documents are collected. Raise UsageError, or NothingToRetest."""
    before = [engine.campaign(name) for name in request.of]
    suite = before[0].suite
    for one in before:
        if not one.pairs:
            raise UsageError(f"--of {one.name} measures nodes, not pairs; name a campaign of pairs")
        if one.suite != suite:
            raise UsageError(
                f"--of {before[0].name} and --of {one.name} measure different suites; measure "
                "those of one suite again"
            )
    documents = [document for one in before for document in _documents(engine, one, request.root)]
    nodes = tuple(dict.fromkeys(node for one in before for node in one.nodes))
    found = measured_pairs(documents)
    if request.rack_label is not None:
        found = replace(found, racks=engine.racks(nodes, request.rack_label))
    matrix = judged(found, request.racks)
    if matrix.undecided is not None:
        raise UsageError(f"{matrix.undecided}; measure more --pairs matchings first")
    rounds: list[Round] = [one.pairs for one in matrix.next_rounds]
    if not rounds:
        raise NothingToRetest(
            f"nothing to measure again: {listing(request.of)} left no host, uplink or link suspect"
        )
    racks = {one.host: one.rack for one in matrix.hosts if one.rack is not None}
    return suite, nodes, rounds, racks


def _documents(engine: Engine, campaign: Campaign, root: Path) -> list[ResultDocument]:
    statuses = engine.status(campaign.name)
    still = [one.node for one in statuses if not one.state.ended]
    if still:
        raise UsageError(
            f"campaign {campaign.name} has not ended: {shown(still[0])} is open; follow it with "
            f"hostbench fleet status {campaign.name} --follow"
        )
    paths = [
        collect(engine, campaign, one, root) for one in statuses if one.state is NodeState.MEASURED
    ]
    return [read_document(path.read_bytes(), str(path), "collect it again") for path in paths]


def numbered(rounds: Sequence[Round]) -> tuple[Pair, ...]:
    """Return the pairs of all rounds."""
    return tuple(
        Pair(number, near, far) for number, one in enumerate(rounds, start=1) for near, far in one
    )


def check_suite(suite: Suite) -> None:
    """Raise UsageError for a suite that measures nothing between two hosts."""
    if not any(
        takes_far_host(case.workload.partition(".")[0], case.params) for case in suite.cases
    ):
        raise UsageError(
            f"--pairs: suite {suite.name} has no case between two hosts; give one such as "
            "net-two-hosts"
        )
