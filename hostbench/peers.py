"""Peers: trusted outside tools that are measured in turn with a case, under the same placement.

A subsystem that knows any has `services.<subsystem>.peers` with two names: `TOOLS`, the words a
suite may use, and `peers(workload, params)`, those that stand beside a workload. Two more are
optional: `equivalent_command(workload, params)`, and, where a tool talks to a server of its own,
`server(tool, workload, params, address, port)`. A peer knows its tool's command line and output;
who runs it and when is not its affair, so it is tested with the recorded output of real versions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hostbench.errors import UsageError, did_you_mean, listing, shown
from hostbench.models.events import ParamValue
from hostbench.models.suite import PeerChoice
from hostbench.services import Subsystem, service_module
from hostbench.trial import Beside

Params = Mapping[str, ParamValue]
# Runs a command that only tells about the tool; its output, empty when it failed.
Ask = Callable[[Sequence[str]], str]


class BadOutput(Exception):
    """A peer's output holds no figure; says why in one line."""


@dataclass(frozen=True)
class Command:
    """One run: `files` are written into the empty directory it runs in, by name; `links` are
    symbolic links there, name to target; `report` is the file there that holds its figures, None:
    they are printed. `server` is started before it, and ended after it; `listens` is where a server
    can be reached once it is ready."""

    arguments: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    report: str | None = None
    server: "Command | None" = None
    listens: "Listens | None" = None


@dataclass(frozen=True)
class Listens:
    """A port of this host."""

    protocol: Literal["tcp", "udp"]
    port: int


@dataclass(frozen=True)
class Survey:
    """What is installed. `unsupported`: why it cannot stand beside this case, None: it can.

    `conditions` is what holds for its figure on this host, as the end of the sentence that says
    what it measures. `comparable`: under these it is of the same quantity as the peer's `metric`;
    otherwise it is context.
    """

    version: str | None
    library: str | None = None
    unsupported: str | None = None
    conditions: str | None = None
    comparable: bool = True


class Peer(ABC):
    """One tool's test beside one case.

    `tool` is its program, `needs` are all programs it takes, `package` Debian's name of it.
    `title` is the test's own name, `measures` says in a sentence what its figure is, in `unit`.
    `metric` is the metric of ours it is held against, None: it is context and there is no ratio.
    `light`: `peers: auto` includes it. `overhead_s` is what a run takes beyond our elapsed time.
    `kernel_works`: for it, in threads and interrupts of its own; then of other processes only the
    time in their own code can be told from it. `server`: the tool whose server it talks to, which
    it brings along on one host, and which between two a session starts on the far host;
    `far_address_only`: of the far host it needs the address alone. One with neither measures on one
    host.
    """

    tool: str
    package: str
    title: str
    measures: str
    unit: str
    metric: str | None = None
    light: bool = True
    overhead_s: float = 0.5
    kernel_works: bool = False
    server: str | None = None
    far_address_only: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The programs that must be there."""
        return (self.tool,)

    def trial_time_s(self, elapsed_s: float) -> float:
        """How long one run takes, about, beside a trial of ours of `elapsed_s`."""
        return elapsed_s + self.overhead_s

    @abstractmethod
    def survey(self, ask: Ask, beside: Beside) -> Survey:
        """Version and library, and whether it can run here."""

    @abstractmethod
    def command(self, beside: Beside) -> Command:
        """How to run it on the CPUs of our trial, with as many threads and about as long."""

    @abstractmethod
    def parse(self, output: str, beside: Beside) -> float:
        """Its figure in `unit`. Raises BadOutput when there is none, or when it did not run as
        it was asked to."""


def on_cpus(cpus: Iterable[int], *command: str) -> tuple[str, ...]:
    """`command` with its affinity set to `cpus`."""
    spelt = ",".join(str(cpu) for cpu in sorted(set(cpus)))
    return ("taskset", "--cpu-list", spelt, *command)


def known_tools(subsystem: str) -> tuple[str, ...]:
    """The peers of a subsystem, by tool."""
    module = service_module(subsystem, "peers")
    return () if module is None else tuple(module.TOOLS)


def peers_of(subsystem: str, workload: str, params: Params) -> tuple[Peer, ...]:
    """The peers that stand beside a workload with these parameters, at most one a tool."""
    module = service_module(subsystem, "peers")
    return () if module is None else tuple(module.peers(workload, params))


def equivalent_command(subsystem: str, workload: str, params: Params) -> str | None:
    """The command line of a trusted tool for the same measurement, to be run by hand; None where
    the subsystem tells none, or none of its tools can do it."""
    module = service_module(subsystem, "peers")
    tell = getattr(module, "equivalent_command", None)
    return None if tell is None else tell(workload, params)


def chosen_peers(
    choice: PeerChoice, subsystem: str, workload: str, params: Params
) -> tuple[Peer, ...]:
    """Those of them that a suite asks for; a tool may be another subsystem's, as a suite may be of
    several. Raises UsageError for one that none knows."""
    if choice == "none":
        return ()
    if choice == "auto":
        return tuple(peer for peer in peers_of(subsystem, workload, params) if peer.light)
    tools = known_tools(subsystem)
    for tool in choice:
        if not any(tool in known_tools(one) for one in Subsystem):
            raise UsageError(
                f"there is no peer {shown(tool)}; {did_you_mean(tool, tools)}"
                f"give auto, none, or a list out of {listing(tools)}"
            )
    return tuple(peer for peer in peers_of(subsystem, workload, params) if peer.tool in choice)
