"""Peers: trusted outside tools that are measured in turn with a case, under the same placement.

A subsystem declares its peers (hostbench.model.subsystem). A peer only knows its tool's command
line and output, not who runs it and when, so it is tested with the recorded output of real
versions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hostbench.model.events import ParamValue
from hostbench.model.trial import Beside

Params = Mapping[str, ParamValue]
# Runs a command that only reports about the tool; returns its output, empty when it failed.
Ask = Callable[[Sequence[str]], str]


class BadOutput(Exception):
    """A peer's output has no figure; the message says why in one line."""


@dataclass(frozen=True)
class Command:
    """One run, in an empty directory.

    - `files`: texts to write into the directory, by name; `links`: symbolic links there, name to
      target.
    - `report`: the file there with its figures; None: they are printed.
    - `server`: started before it and ended after it; `listens`: where a server can be reached once
      it is ready.
    """

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
    """What is installed.

    - `unsupported`: why it cannot run beside this case; None: it can.
    - `conditions`: what applies to its figure on this host, as the end of the sentence that says
      what it measures.
    - `differs`: each condition that matters and differs from our trial's, with both sides, such as
      "4 KiB pages; ours huge ones". If there is one, the figure is context and has no ratio.
    """

    version: str | None
    library: str | None = None
    unsupported: str | None = None
    conditions: str | None = None
    differs: tuple[str, ...] = ()


class Peer(ABC):
    """One tool's test beside one case.

    - `tool`: its program; `needs`: all programs it requires; `package`: its package in Debian.
    - `title`: the test's own name; `measures`: what its figure is, in a sentence; `unit`: the
      figure's unit.
    - `metric`: our metric that it is compared with under equal conditions (Survey.differs); None:
      it is context and has no ratio.
    - `light`: `peers: auto` includes it.
    - `overhead_s`: what a run takes beyond our elapsed time.
    - `kernel_works`: the kernel works for it in threads and interrupts of its own. Then, of other
      processes, only the time in their own code can be distinguished from it.
    - `server`: the tool whose server it talks to. It brings the server along on one host; between
      two hosts, a session starts the server on the far host.
    - `far_address_only`: it needs only the far host's address. A peer with neither measures on one
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
        """The programs that must be installed."""
        return (self.tool,)

    def trial_time_s(self, elapsed_s: float) -> float:
        """Return about how long one run takes, beside a trial of ours of `elapsed_s`."""
        return elapsed_s + self.overhead_s

    @abstractmethod
    def survey(self, ask: Ask, beside: Beside) -> Survey:
        """Return version and library, whether it can run here, and which conditions differ."""

    @abstractmethod
    def command(self, beside: Beside) -> Command:
        """Return how to run it on the CPUs of our trial, with as many threads and for about as
        long."""

    @abstractmethod
    def parse(self, output: str, beside: Beside) -> float:
        """Return its figure in `unit`. Raise BadOutput when there is none, or when it did not run
        as requested."""


def on_cpus(cpus: Iterable[int], *command: str) -> tuple[str, ...]:
    """Return `command` with its affinity set to `cpus`."""
    spelt = ",".join(str(cpu) for cpu in sorted(set(cpus)))
    return ("taskset", "--cpu-list", spelt, *command)
