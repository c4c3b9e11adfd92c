"""What the commands of campaigns do after their options are read."""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupted
from hostbench.base.units import plural
from hostbench.cli.commands import RunRequest, requested_suite
from hostbench.cli.fleet_rounds import (
    PairsRequest,
    check_suite,
    numbered,
    racks_for,
    retested,
    rounds_for,
)
from hostbench.cli.watching import stoppable
from hostbench.decisions.pair_rounds import Round
from hostbench.fleet.campaign import (
    Campaign,
    Engine,
    Exclusive,
    NodeState,
    NodeStatus,
    new_name,
)
from hostbench.fleet.collect import collect
from hostbench.fleet.engines import EngineOptions
from hostbench.judge.peer import shown_text
from hostbench.model.suite import Suite

# How often people see how far a campaign is; each end without a document, and each new reason for
# waiting, is a line at once.
COUNTS_S = 5.0
# Options that mean nothing without --pairs, and those that mean nothing without a suite.
OF_PAIRS = frozenset({"rounds", "seed", "rack", "rack_label", "of"})
OF_SUITES = frozenset({"trials", "peers"})


@dataclass(frozen=True)
class CampaignRequest:
    """The options of `hostbench fleet run` that say what to measure, where and how.

    `given`: the options on the command line, by their names here and in EngineOptions. If there is
    a campaign of that name, it must have been begun with the same values.
    """

    suite: RunRequest
    name: str | None
    nodes: str | None
    at_most: int | None
    exclusive: Exclusive
    time_limit_s: float
    options: EngineOptions
    given: frozenset[str]
    pairs: PairsRequest | None = None

    @property
    def names_what(self) -> bool:
        """Whether it says what to measure."""
        return self.suite.suite is not None or self.suite.workload is not None


def begin(engine: Engine, request: CampaignRequest) -> Campaign:
    """Start a campaign, or continue the one of that name; return it."""
    name = request.name
    if request.pairs is not None:
        request.pairs.check()
    elif alone := sorted(OF_PAIRS & request.given):
        raise UsageError(
            f"--{alone[0].replace('_', '-')} selects the pairs to measure; give --pairs with it"
        )
    if name is not None and name in engine.campaigns():
        campaign = _continued(engine, request, name)
    elif request.pairs is not None and request.pairs.of:
        campaign = _begun_again(engine, request, request.pairs)
    elif name is not None and not request.names_what:
        raise UsageError(
            f"there is no campaign {name} to continue; name a suite to begin one of that name"
        )
    else:
        suite = requested_suite(request.suite)
        if request.pairs is not None:
            check_suite(suite)
        nodes = engine.nodes(request.nodes)
        racks: Mapping[str, str] = {}
        rounds: Sequence[Round] = ()
        if request.pairs is not None:
            racks = racks_for(engine, nodes, request.pairs)
            rounds = rounds_for(nodes, racks, request.pairs)
        campaign = _campaign(engine, request, suite, nodes, rounds, racks)
    between = f" of {plural(len(campaign.nodes), 'node')}" if campaign.pairs else ""
    if campaign.racks:
        between += f" in {plural(len(set(campaign.racks.values())), 'rack')}"
    count = plural(len(campaign.units), campaign.unit_word)
    sys.stderr.write(f"campaign {campaign.name}: {count}{between}\n")
    sys.stderr.flush()
    engine.start(campaign)
    return campaign


def _campaign(
    engine: Engine,
    request: CampaignRequest,
    suite: Suite,
    nodes: tuple[str, ...],
    rounds: Sequence[Round],
    racks: Mapping[str, str],
) -> Campaign:
    return Campaign(
        name=request.name or new_name(suite),
        cluster=engine.cluster(),
        suite=suite,
        nodes=nodes,
        at_most=request.at_most,
        exclusive=request.exclusive,
        time_limit_s=request.time_limit_s,
        pairs=numbered(rounds),
        racks=racks,
    )


def _begun_again(engine: Engine, request: CampaignRequest, pairs: PairsRequest) -> Campaign:
    if request.names_what or request.nodes is not None:
        raise UsageError(
            "--pairs retest measures the suite and the nodes of the campaigns that --of names; "
            "leave out suite and --nodes"
        )
    return _campaign(engine, request, *retested(engine, pairs))


def _continued(engine: Engine, request: CampaignRequest, name: str) -> Campaign:
    campaign = engine.campaign(name)
    if request.names_what and requested_suite(request.suite) != campaign.suite:
        raise UsageError(
            f"campaign {name} measures another suite, {campaign.suite.name}; leave out the suite "
            "to continue it, or choose another --name"
        )
    if not request.names_what and (alone := sorted(OF_SUITES & request.given)):
        raise UsageError(
            f"--{alone[0]} changes a suite; name the suite of campaign {name} with it, or leave "
            "the option out to continue the campaign"
        )
    _check_pairs(engine, campaign, request.pairs)
    begun_with = {**engine.begun_with(name), **_limits(campaign)}
    wanted = {**vars(request.options), **_limits(request)}
    for option in sorted(request.given & begun_with.keys()):
        if wanted[option] != begun_with[option]:
            raise UsageError(
                f"campaign {name} was begun {_option_words(option, begun_with[option])}, not "
                f"{_option_words(option, wanted[option])}; leave the option out to continue the "
                "campaign, or choose another --name"
            )
    if "nodes" in request.given:
        # A selector may match others since, and a node may be gone.
        sys.stderr.write(
            f"campaign {name} keeps the nodes that it began with; --nodes counts for a new one\n"
        )
    return campaign


def _check_pairs(engine: Engine, campaign: Campaign, request: PairsRequest | None) -> None:
    """Raise UsageError if the options make other pairs than those of the campaign. A retest was
    made from the documents of its time."""
    if request is None:
        return
    made, racks = campaign.pairs, campaign.racks
    if not request.of:
        if request.names_racks:
            racks = racks_for(engine, campaign.nodes, request)
        made = numbered(rounds_for(campaign.nodes, racks, request))
    if not made or (made, racks) != (campaign.pairs, campaign.racks):
        raise UsageError(
            f"campaign {campaign.name} measures other pairs, or has other racks, than these "
            "options make; leave out --pairs, --rounds, --seed, --rack and --rack-label to "
            "continue it, or choose another --name"
        )


def _limits(one: Campaign | CampaignRequest) -> dict[str, object]:
    """Return the options of every engine that hold for all of a campaign."""
    names = ("at_most", "exclusive", "time_limit_s")
    return {name: getattr(one, name) for name in names}


def _option_words(option: str, value: object) -> str:
    """Return an option with its value for people: `with --at-most 2`, or `without --queue`."""
    name = f"--{option.removesuffix('_s').replace('_', '-')}"
    if isinstance(value, Mapping):
        name, value = "--annotation", [f"{key}={text}" for key, text in value.items()]
    if value is None or value in ((), []):
        return f"without {name}"
    if isinstance(value, tuple | list):
        return f"with {' '.join(f'{name} {text}' for text in value)}"
    return f"with {name} {value:g}" if isinstance(value, float) else f"with {name} {value}"


@dataclass
class Follower:
    """Shows a campaign on standard error as it goes, and collects documents. `root` None: they stay
    where they are. `uncollected`, `unposted`: why a node's document is not here, or not at the
    orchestrator that the campaign posts to."""

    engine: Engine
    campaign: Campaign
    root: Path | None
    statuses: dict[str, NodeStatus] = field(default_factory=dict)
    uncollected: dict[str, str] = field(default_factory=dict)
    unposted: dict[str, str] = field(default_factory=dict)
    _reasons: set[str] = field(default_factory=set)
    _counted_s: float = 0.0

    def follow(self) -> None:
        """Follow the campaign until every node has ended. Raise Interrupted on Ctrl-C: the campaign
        goes on."""
        name = self.campaign.name
        try:
            with stoppable():
                for status in self.engine.watch(name):
                    self.statuses[status.node] = status
                    self._tell(status)
                    if status.state is NodeState.MEASURED and self.root is not None:
                        self._collect(status, self.root)
        except Interrupted as error:
            takes_turns = self.campaign.at_most is not None or self.campaign.pairs
            turns = f", as far as {self.campaign.unit_word}s have begun" if takes_turns else ""
            error.message = (
                f"stopped following ({error.signum.name}); the campaign continues{turns}: "
                f"hostbench fleet run --name {name} follows it again, hostbench fleet cancel "
                f"{name} ends it"
            )
            raise

    def _collect(self, status: NodeStatus, root: Path) -> None:
        try:
            collect(self.engine, self.campaign, status, root)
        except Interrupted:
            raise
        except HostbenchError as error:
            self.uncollected[status.node] = error.message
            self._say(f"{status.node}: {error.message}")

    def _tell(self, status: NodeStatus) -> None:
        if status.result is not None and status.result.unposted is not None:
            self.unposted[status.node] = status.result.unposted
            self._say(f"{status.node}: its document is not posted: {status.result.unposted}")
        elif status.state in {NodeState.FAILED, NodeState.MISSING}:
            self._say(f"{status.node}: {status.state}: {status.reason}")
        elif status.state is NodeState.WAITING and status.reason not in self._reasons:
            self._reasons.add(status.reason or "")
            if status.reason is not None:
                self._say(f"{status.node}: {status.state}: {status.reason}")
        now_s = time.monotonic()
        if len(self.statuses) == len(self.campaign.units) and now_s - self._counted_s > COUNTS_S:
            self._counted_s = now_s
            self._say(counts_text(self.statuses.values()))

    def _say(self, text: str) -> None:
        # A reason may be what a pod wrote.
        sys.stderr.write(f"{shown_text(text)}\n")
        sys.stderr.flush()


def counts_text(statuses: Iterable[NodeStatus]) -> str:
    """Return how many nodes are how far: `3 waiting, 2 running, 40 measured`."""
    counts = Counter(status.state for status in statuses)
    return ", ".join(f"{counts[state]:,} {state}" for state in NodeState if counts[state])


def exit_code(statuses: Sequence[NodeStatus], lacking: object = None) -> ExitCode:
    """Return 0 where every node was measured and its document is where it should be."""
    complete = all(status.state is NodeState.MEASURED for status in statuses) and not lacking
    return ExitCode.OK if complete else ExitCode.CASE_FAILED
