"""A campaign: a suite on nodes of a cluster or between pairs of them, and how far each of these is.

The engine keeps all of it: the request, which node runs, which has ended. So a client may be
killed at any moment, and the next one continues from the state in the engine.
"""

import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.model.campaign import Exclusive as Exclusive
from hostbench.model.result import CampaignMember, ResultDocument, pair_name
from hostbench.model.suite import Suite
from hostbench.model.summary import Verdict

# A label's value in Kubernetes has at most 63 characters; a node's name and a suffix are added.
NAME = re.compile(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", re.ASCII)


class NodeState(StrEnum):
    """How far a node, or a pair of nodes, of a campaign is. The last three are ends."""

    WAITING = "waiting"
    RUNNING = "running"
    MEASURED = "measured"
    FAILED = "failed"
    MISSING = "missing"

    @property
    def ended(self) -> bool:
        """Whether the node needs nothing more."""
        return self in {NodeState.MEASURED, NodeState.FAILED, NodeState.MISSING}


class Pair(NamedTuple):
    """Two nodes that measure the network between them, in the round of this number; the near end is
    the one that measures. A campaign may have a pair in several rounds."""

    round: int
    near: str
    far: str

    @property
    def name(self) -> str:
        """Return what it is called in its campaign; no node has a plus sign in its name."""
        return pair_name(self.round, self.near, self.far)

    @property
    def nodes(self) -> tuple[str, str]:
        """Return its nodes in the order in which all pairs take them. So two pairs never wait for
        one another."""
        first, second = sorted((self.near, self.far))
        return first, second


@dataclass(frozen=True)
class Campaign:
    """The request of a campaign: what to measure, and where.

    `cluster` names the cluster for good (the UID of its namespace kube-system, or Slurm's
    ClusterName), so that documents of two clusters differ. `at_most`: how many nodes are
    measured at once; None: any number. `time_limit_s`: how long a node may take, waiting included.
    `pairs`: what is measured in place of single nodes, each between two of `nodes`; then the limits
    are those of pairs, and `racks` has the rack of each node that has one.
    """

    name: str
    cluster: str
    suite: Suite
    nodes: tuple[str, ...]
    at_most: int | None = None
    exclusive: Exclusive = Exclusive.REQUESTS
    time_limit_s: float = 3600.0
    pairs: tuple[Pair, ...] = ()
    racks: Mapping[str, str] = field(default_factory=dict)

    @property
    def units(self) -> tuple[str, ...]:
        """Return what is measured once each: the nodes, or the pairs by their names."""
        return tuple(pair.name for pair in self.pairs) or self.nodes

    @property
    def unit_word(self) -> str:
        """Return what a unit is."""
        return "pair" if self.pairs else "node"

    def pair(self, unit: str) -> Pair | None:
        """Return the pair of this name, or None."""
        number, _, nodes = unit.partition("-")
        near, plus, far = nodes.partition("+")
        if not plus or not number.isdecimal():
            return None
        pair = Pair(int(number), near, far)
        return pair if pair in self.pairs else None


@dataclass(frozen=True)
class MeasuredSystem:
    """What a repair or a roll-out changes of a host: its kernel, and hashes of its machine id and
    boot id; None: unknown."""

    kernel: str
    machine: str | None = None
    boot: str | None = None


@dataclass(frozen=True)
class Digest:
    """A node's summary of its document; it fits into a termination message.

    - `unposted`: why the document could not be posted to the orchestrator that the campaign names;
      the engine has it all the same.
    - `system`: what the node was measured with, as the document has it; None: the node ran an
      earlier hostbench.
    """

    job: str
    digest: str
    exit_code: ExitCode
    verdicts: dict[Verdict, int]
    member: CampaignMember
    unposted: str | None = None
    system: MeasuredSystem | None = None


@dataclass(frozen=True)
class PostTo:
    """Where nodes post their documents: the address of an orchestrator's API, and what holds its
    key. `keys`: on Kubernetes a Secret with `api_key` and `ca.crt`, on Slurm a directory with these
    files that all nodes see. No key is ever in a command line."""

    url: str
    keys: str

    def __str__(self) -> str:
        return f"{self.url} --post-keys {self.keys}"


@dataclass(frozen=True)
class NodeStatus:
    """How far one unit is: `node` is a node, or the name of a pair. `reason` says why it waits,
    failed or is missing, in the engine's words where it has some; `result` is there from the state
    measured on."""

    node: str
    state: NodeState
    reason: str | None = None
    result: Digest | None = None


class Engine(Protocol):
    """What runs campaigns. Every method may be called again after a client was killed in it, and
    raises HostbenchError in one line: the verb and the resource that are missing, say."""

    def cluster(self) -> str:
        """Return what names the cluster for good."""
        ...

    def nodes(self, expression: str | None) -> tuple[str, ...]:
        """Return the nodes that an expression names; None: all that can be measured."""
        ...

    def racks(self, nodes: Collection[str], label: str | None) -> dict[str, str]:
        """Return the rack of each of these nodes whose rack the cluster knows. `label`: which label
        of nodes names it; None: the engine's default. Raise UsageError for a label that no node
        has."""
        ...

    def start(self, campaign: Campaign) -> None:
        """Hand the campaign to the engine. What is there already stays."""
        ...

    def campaigns(self) -> tuple[str, ...]:
        """Return the names of the campaigns that the engine knows."""
        ...

    def campaign(self, name: str) -> Campaign:
        """Return the request of a campaign. Raise UsageError if there is none of that name."""
        ...

    def begun_with(self, name: str) -> Mapping[str, object]:
        """Return the options of this engine that a campaign was begun with, by their names in
        EngineOptions."""
        ...

    def status(self, name: str) -> tuple[NodeStatus, ...]:
        """Return how far each unit is now."""
        ...

    def watch(self, name: str) -> Iterator[NodeStatus]:
        """Yield the status of each unit, then each change, until all have ended."""
        ...

    def documents(self, name: str, units: Sequence[str]) -> Iterator[ResultDocument]:
        """Yield the documents of units that were measured."""
        ...

    def retry(self, name: str) -> tuple[str, ...]:
        """Measure again the units that failed or are missing; return their names."""
        ...

    def cancel(self, name: str) -> None:
        """End what runs and let nothing more begin. What was measured stays."""
        ...

    def clean(self, name: str) -> None:
        """Remove everything of the campaign from the engine."""
        ...


def new_name(suite: Suite) -> str:
    """Return a name for a campaign that no other one has: its suite, the time, four digits."""
    now = datetime.now(UTC).strftime("%y%m%dt%H%M%S")
    return f"{suite.name[:11].rstrip('-').lower()}-{now}-{secrets.token_hex(2)}"


def checked_name(name: str, option: str) -> str:
    """Return a name that the user gave. Raise UsageError if an engine would refuse it."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{option} {shown(name)} is no name of a campaign: a name begins with a letter and has "
            "at most 30 small letters, digits and hyphens, the last one no hyphen; hostbench fleet "
            "list shows those that there are"
        )
    return name
