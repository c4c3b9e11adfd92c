"""One trial as a transport is asked for it, and how it fails."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

from hostbench.exitcode import ExitCode
from hostbench.models.events import ParamValue
from hostbench.models.peer import TrialEvent
from hostbench.models.result import OWN_TOOL, PlannedCase
from hostbench.models.service import SessionPlace


@dataclass(frozen=True)
class FarServer:
    """Where a peer finds what it measures against on the far host. `port` is that of its server;
    of a tool that needs the host's address alone it means nothing."""

    address: str
    port: int


@dataclass(frozen=True)
class Beside:
    """The trial of ours that a peer is to be compared with.

    `cpus`: where its threads ran, one a thread. `rate`: its whole-run figure in the unit of its
    primary metric. `elapsed_s`: how long it measured. `scratch_fd`: the descriptor of the file it
    worked on, which the peer inherits where it runs; None: it worked on none. `far_cpus`: where
    its far end ran. `far`: where the other end of a peer between two hosts is; None: all of it is
    on this host.
    """

    cpus: tuple[int, ...]
    rate: float
    elapsed_s: float
    scratch_fd: int | None = None
    far_cpus: tuple[int, ...] = ()
    far: FarServer | None = None

    @property
    def threads(self) -> int:
        """How many threads it had."""
        return len(self.cpus)


@dataclass(frozen=True)
class Trial:
    """What to run once. `primary` is the metric without which it has failed.

    `timeout_s` is when it is given up: generously above the time it should take. `beside` stands
    in a peer's trial, whose `params` are those that our trial resolved. `name` tells it from other
    trials of its job in front of people. `session` is the far end on another host, of a trial
    between two.
    """

    tool: str
    subsystem: str
    workload: str
    params: Mapping[str, ParamValue]
    primary: str
    timeout_s: float
    beside: Beside | None = None
    name: str = "trial"
    session: SessionPlace | None = None


def trial_name(case: PlannedCase, index: int, tool: str = OWN_TOOL) -> str:
    """`3f2a90c1-0`, and `3f2a90c1-0-likwid-bench` of a peer."""
    return f"{case.case}-{index}" + ("" if tool == OWN_TOOL else f"-{tool}")


class TrialFailed(Exception):
    """A trial without a figure: a code for programs, one line for people, and what it makes of
    the job's exit code."""

    def __init__(self, code: str, message: str, exit_code: ExitCode = ExitCode.CASE_FAILED) -> None:
        super().__init__(message)
        self.code = code
        self.message = " ".join(message.split())
        self.exit_code = exit_code


class Transport(Protocol):
    """Runs trials somewhere: as a child process here, or through a service."""

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """The trial's events as they come; the last one is `end`, `peer_end` or `skip`.

        Raises TrialFailed when there is no figure, and Interrupted when this process was told to
        end. Whenever it is left, also by closing the generator early, nothing of the trial runs on.
        """
        ...
