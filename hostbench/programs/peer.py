"""Peers: trusted outside tools that are measured in turn with a case, under the same placement.

A subsystem declares those that it knows (hostbench.model.subsystem). A peer knows its tool's
command line and output; who runs it and when is not its affair, so it is tested with the recorded
output of real versions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hostbench.model.events import ParamValue
from hostbench.model.trial import Beside

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
    what it measures. `differs`: each condition that matters and is not that of our trial, with both
    sides, such as "4 KiB pages; ours huge ones". Where there is one, the figure is context and has
    no ratio.
    """

    version: str | None
    library: str | None = None
    unsupported: str | None = None
    conditions: str | None = None
    differs: tuple[str, ...] = ()


class Peer(ABC):
    """One tool's test beside one case.

    `tool` is its program, `needs` are all programs it takes, `package` Debian's name of it.
    `title` is the test's own name, `measures` says in a sentence what its figure is, in `unit`.
    `metric` is the metric of ours it is held against under equal conditions (Survey.differs), None:
    it is context and there is no ratio.
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
        """Version and library, whether it can run here, and what of its conditions differs."""

    @abstractmethod
    def command(self, beside: Beside) -> Command:
        """How to run it on the CPUs of our trial, with as many threads and about as long."""

    @abstractmethod
    def parse(self, output: str, beside: Beside) -> float:
        """Its figure in `unit`. Raise BadOutput when there is none, or when it did not run as
        it was asked to."""


def on_cpus(cpus: Iterable[int], *command: str) -> tuple[str, ...]:
    """`command` with its affinity set to `cpus`."""
    spelt = ",".join(str(cpu) for cpu in sorted(set(cpus)))
    return ("taskset", "--cpu-list", spelt, *command)
