"""One trial as a transport is asked for it, and how it fails."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

from hostbench.exitcode import ExitCode
from hostbench.models.events import Event, ParamValue


@dataclass(frozen=True)
class Trial:
    """What to run once. `primary` is the metric without which it has failed.

    `timeout_s` is when it is given up: generously above the time it should take.
    """

    tool: str
    subsystem: str
    workload: str
    params: Mapping[str, ParamValue]
    primary: str
    timeout_s: float


class TrialFailed(Exception):
    """A trial without a figure: a code for programs, one line for people, and what it makes of
    the job's exit code."""

    def __init__(self, code: str, message: str, exit_code: ExitCode = ExitCode.CASE_FAILED) -> None:
        super().__init__(message)
        self.code = code
        self.message = " ".join(message.split())
        self.exit_code = exit_code


class Transport(Protocol):
    """Runs trials somewhere: as a child process here, or later through a service."""

    def run(self, trial: Trial) -> Generator[Event, None, None]:
        """The trial's events as they come; the last one is `end` or `skip`.

        Raises TrialFailed when there is no figure, and Interrupted when this process was told to
        end. Whenever it is left, also by closing the generator early, nothing of the trial runs on.
        """
        ...
