"""One trial as a transport gets it, and how it fails."""

from collections.abc import Generator
from typing import Protocol

from pydantic import Field

from hostbench.base.exitcode import ExitCode
from hostbench.model.events import WrongValue
from hostbench.model.peer import TrialEvent
from hostbench.model.result import OWN_TOOL, PlannedCase
from hostbench.model.service import BesideRequest, SessionPlace, TrialId, TrialRequest


class Beside(BesideRequest):
    """What a peer's command is made from, on the host where it runs.

    `scratch_fd`: the descriptor of the file that our trial worked on, which the peer inherits;
    None: it worked on none. `far`: the other end of a peer between two hosts; for a tool that needs
    only the host's address, the port has no meaning. None: the peer runs on this host only.
    """

    scratch_fd: int | None = Field(default=None, exclude=True)
    far: SessionPlace | None = Field(default=None, exclude=True)

    @property
    def threads(self) -> int:
        """How many threads our trial had."""
        return len(self.cpus)


class Trial(TrialRequest):
    """What to run once: the body of POST /trials, and the subsystem in the URL of the call.

    `id` distinguishes it from other trials of its job for people. A job's transport makes it unique
    and adds `fence` and `sha256`.
    """

    id: TrialId = "trial"
    subsystem: str = Field(exclude=True)


def trial_name(case: PlannedCase, index: int, tool: str = OWN_TOOL) -> str:
    """Return a name such as `3f2a90c1-0`, or `3f2a90c1-0-likwid-bench` for a peer."""
    return f"{case.case}-{index}" + ("" if tool == OWN_TOOL else f"-{tool}")


class TrialFailed(Exception):
    """A trial without a figure: a code for programs, one line for people, and the exit code that it
    causes for the job."""

    def __init__(
        self,
        code: str,
        message: str,
        exit_code: ExitCode = ExitCode.CASE_FAILED,
        wrong: WrongValue | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = " ".join(message.split())
        self.exit_code = exit_code
        self.wrong = wrong


class Transport(Protocol):
    """Runs trials somewhere: as a child process here, or through a service."""

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """Yield the trial's events as they come; the last one is `end`, `peer_end` or `skip`.

        Raise TrialFailed when there is no figure, and Interrupted when a signal asks to end. When
        the generator ends or is closed early, no part of the trial runs on.
        """
        ...
