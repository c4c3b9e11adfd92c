"""What Slurm says of its jobs and nodes, each by one command for all of them."""

import contextlib
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from hostbench.base.errors import HostbenchError, UsageError, did_you_mean, listing, shown
from hostbench.base.units import plural
from hostbench.fleet.slurm.commands import run

HELD = "JobHeldUser"
FIELDS = "%i|%T|%N|%r|%k"
# Before the unit in the comment of a job.
COMMENT_END = ": "
# sinfo's states of nodes that are in use, and of those that start nothing.
_BUSY = ("alloc", "mix", "comp")
_UNAVAILABLE = ("down", "drain", "fail", "reboot", "unk", "no_respond")


@dataclass(frozen=True)
class Task:
    """What Slurm says of the job of a unit, a node or a pair. `by`: who cancelled it, if accounts
    say so."""

    job: str
    unit: str
    state: str
    reason: str
    started: bool
    by: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether it waits for its turn, see `at_most`."""
        return self.state == "PENDING" and self.reason == HELD


@dataclass(frozen=True)
class ClusterNode:
    """What Slurm says of a node; `partitions` without the mark of the default one."""

    state: str
    reason: str | None
    partitions: frozenset[str]

    @property
    def is_busy(self) -> bool:
        """Whether it runs jobs."""
        return self.state.startswith(_BUSY)

    @property
    def is_free(self) -> bool:
        """Whether it could begin a job now, or once it is powered up."""
        return self.state.startswith("idle") and self.unavailable is None

    @property
    def unavailable(self) -> str | None:
        """In which state it starts no jobs, and why; None: it does."""
        if not self.state.startswith(_UNAVAILABLE) and "*" not in self.state:
            return None
        state = self.state.rstrip("*").upper() + (
            ", it does not answer" if "*" in self.state else ""
        )
        return state + (f": {self.reason}" if self.reason else "")


# A node that was removed from the cluster.
GONE = ClusterNode("unknown", None, frozenset())


def setting(name: str) -> str:
    """Return a setting of slurm.conf."""
    found = re.search(rf"^{name}\s*=\s*(\S+)", run("scontrol", "show", "config"), re.MULTILINE)
    return found[1] if found else ""


def tasks_named(names: Iterable[str]) -> list[Task]:
    """Return the jobs of these names that Slurm's daemon knows, ended ones too."""
    listed = ",".join(names)
    if not listed:
        return []
    output = run("squeue", f"--name={listed}", "--states=all", "--noheader", f"--format={FIELDS}")
    found = []
    for line in output.splitlines():
        job, state, ran_on, reason, comment = line.split("|", 4)
        unit = comment.rpartition(COMMENT_END)[2]
        found.append(Task(job, unit, state, reason, started=bool(ran_on)))
    return found


def accounted(job: str, unit: str) -> Task | None:
    """Return a job from Slurm's accounts; None: there are none."""
    if shutil.which("sacct") is None:
        return None
    with contextlib.suppress(HostbenchError):
        output = run(
            "sacct", f"--jobs={job}", "--allocations", "--noheader", "--parsable2",
            "--format=State,Start",
        )  # fmt: skip
        for line in output.splitlines():
            # Such as "CANCELLED by 1000".
            state, _, start = line.partition("|")
            word, _, by = state.partition(" by ")
            started = start not in ("None", "Unknown", "")
            return Task(job, unit, word, "", started, by or None)
    return None


def node_table() -> dict[str, ClusterNode]:
    """Return the nodes of the cluster, in Slurm's order."""
    found: dict[str, ClusterNode] = {}
    for line in run("sinfo", "--Node", "--noheader", "--format=%N|%P|%T|%E").splitlines():
        name, partition, state, reason = line.split("|", 3)
        before = found[name].partitions if name in found else frozenset()
        given = None if reason == "none" else reason
        found[name] = ClusterNode(state, given, before | {partition.rstrip("*")})
    return found


def leaf_switches() -> dict[str, str]:
    """Return the switch that each node is connected to; nothing without a topology."""
    found: dict[str, str] = {}
    for line in run("scontrol", "--oneliner", "show", "topology").splitlines():
        fields = dict(field.partition("=")[::2] for field in line.split())
        if fields.get("Level") == "0" and "SwitchName" in fields and "Nodes" in fields:
            found |= dict.fromkeys(_expanded(fields["Nodes"]), fields["SwitchName"])
    return found


def _expanded(expression: str) -> list[str]:
    """Return the names in a list such as `node[1-4],gpu7`."""
    return run("scontrol", "show", "hostnames", expression).split()


def partitions() -> tuple[str | None, list[str]]:
    """Return the default partition, and all."""
    names = list(dict.fromkeys(run("sinfo", "--noheader", "--format=%P").split()))
    default = next((name.rstrip("*") for name in names if name.endswith("*")), None)
    return default, [name.rstrip("*") for name in names]


def chosen_nodes(expression: str | None, partition: str | None) -> tuple[str, ...]:
    """Return the nodes of a list such as `node[1-4],gpu7`; None: all of the partition. Raise
    UsageError for a node or partition that does not exist."""
    table = node_table()
    default, known = partitions()
    if partition is not None and partition not in known:
        raise UsageError(
            f"--queue {shown(partition)}: there is no such partition; "
            f"{did_you_mean(partition, known)}give {listing(known)}"
        )
    partition = partition or default
    inside = [name for name, node in table.items() if partition in (None, *node.partitions)]
    if expression is None:
        return tuple(inside)
    names = tuple(dict.fromkeys(_expanded(expression)))
    for name in names:
        if name not in table:
            raise UsageError(
                f"--nodes {shown(expression)}: there is no node {shown(name)}; "
                f"{did_you_mean(name, table)}sinfo --Node lists {plural(len(table), 'node')}"
            )
        if name not in inside:
            raise UsageError(
                f"--nodes {shown(expression)}: node {name} is not in partition {partition}; "
                f"name one of its partitions with --queue: "
                f"{listing(sorted(table[name].partitions))}"
            )
    return names
