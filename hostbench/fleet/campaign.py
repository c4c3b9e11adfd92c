"""A campaign: a suite on a set of nodes of a cluster, and how far each node is.

The engine keeps all of it: the request, which node runs, which has ended. So a client may be
killed at any moment, and the next one continues from the state in the engine.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from hostbench.base.errors import UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.model.campaign import Exclusive as Exclusive
from hostbench.model.result import CampaignMember, ResultDocument
from hostbench.model.suite import Suite
from hostbench.model.summary import Verdict

# A label's value in Kubernetes has at most 63 characters; a node's name and a suffix are added.
NAME = re.compile(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", re.ASCII)


class NodeState(StrEnum):
    """How far a node of a campaign is. The last three are ends."""

    WAITING = "waiting"
    RUNNING = "running"
    MEASURED = "measured"
    FAILED = "failed"
    MISSING = "missing"

    @property
    def ended(self) -> bool:
        """Whether the node needs nothing more."""
        return self in {NodeState.MEASURED, NodeState.FAILED, NodeState.MISSING}


@dataclass(frozen=True)
class Campaign:
    """The request of a campaign: what to measure, and where.

    `cluster` names the cluster for good (the UID of its namespace kube-system, or Slurm's
    ClusterName), so that documents of two clusters differ. `at_most`: how many nodes are
    measured at once; None: any number. `time_limit_s`: how long a node may take, waiting included.
    """

    name: str
    cluster: str
    suite: Suite
    nodes: tuple[str, ...]
    at_most: int | None = None
    exclusive: Exclusive = Exclusive.REQUESTS
    time_limit_s: float = 3600.0


@dataclass(frozen=True)
class Digest:
    """A node's summary of its document; it fits into a termination message. `unposted`: why the
    document could not be posted to the orchestrator that the campaign names; the engine has it all
    the same."""

    job: str
    digest: str
    exit_code: ExitCode
    verdicts: dict[Verdict, int]
    member: CampaignMember
    unposted: str | None = None


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
    """How far one node is. `reason` says why it waits, failed or is missing, in the engine's words
    where it has some; `result` is there from the state measured on."""

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
        """Return how far each node is now."""
        ...

    def watch(self, name: str) -> Iterator[NodeStatus]:
        """Yield the status of each node, then each change, until all nodes have ended."""
        ...

    def documents(self, name: str, nodes: Sequence[str]) -> Iterator[ResultDocument]:
        """Yield the documents of nodes that were measured."""
        ...

    def retry(self, name: str) -> tuple[str, ...]:
        """Measure again the nodes that failed or are missing; return their names."""
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
