"""The HTTP transport: for the caller, a trial in a service looks like one in this process."""

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence

import httpx
from pydantic import ValidationError

from hostbench.base.errors import BusyError, ResourceError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.model.events import (
    ControlPlaneEvent,
    EndEvent,
    OthersEvent,
    ProcessUsage,
    SkipEvent,
)
from hostbench.model.peer import PeerEndEvent, PeerStartEvent, TrialEvent
from hostbench.model.result import OWN_TOOL
from hostbench.model.service import (
    SERVICE_EVENT,
    Ending,
    FailureEvent,
    Refusal,
)
from hostbench.model.table import Table, Workload
from hostbench.model.trial import Trial, TrialFailed
from hostbench.plan.workloads import find_workload
from hostbench.programs.stream import EventStream
from hostbench.remote.client import RemoteService, ServiceRefused, service_lost

BUSY_RETRY_S = 1.0
# Returns what the rest of the control plane used; called after a trial.
Usage = Callable[[], Sequence[ProcessUsage]]


class HttpTransport:
    """Runs trials through the services of one host. See hostbench.model.trial.Transport."""

    def __init__(
        self,
        services: Mapping[str, RemoteService],
        programs: Mapping[str, str],
        tables: Mapping[str, Table],
        fence: int | None,
        job: str,
        interrupt: Interrupt,
        on_waiting: Callable[[str], None] = lambda detail: None,
        meter: Callable[[], Usage] = lambda: tuple,
        busy_s: float = math.inf,
    ) -> None:
        """Run trials with these services.

        - `services`, `programs` (the sha256 that was planned with), `tables`: by subsystem.
        - `on_waiting`: gets the holder of the host, each second that another run holds it, for at
          most `busy_s` seconds; a job of the stack waits without limit.
        - `meter`: called when a trial begins. It returns a function that is called after the trial
          and returns what the rest of the control plane used.
        """
        self._services = services
        self._programs = programs
        self._tables = tables
        self._fence = fence
        self._job = job
        self._interrupt = interrupt
        self._on_waiting = on_waiting
        self._meter = meter
        self._busy_s = busy_s

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run; the last event is the control plane's.

        Also raise ServiceLost, ResourceError or BusyError, which end the job.
        """
        usage = self._meter()
        full_name = f"{trial.subsystem}.{trial.workload}"
        reading = _Reading(trial, find_workload(self._tables, full_name))
        with contextlib.closing(self._lines(trial)) as lines:
            for line in lines:
                event = reading.take(line)
                if isinstance(event, ControlPlaneEvent):
                    yield ControlPlaneEvent(processes=(*event.processes, *usage()))
                elif event is not None:
                    yield event
        reading.finish(self._services[trial.subsystem].url)

    def _lines(self, trial: Trial) -> Generator[bytes, None, None]:
        """Yield the stream's lines, as soon as the host is free."""
        deadline_s = time.monotonic() + self._busy_s
        request = self._request(trial)
        while True:
            try:
                yield from self._services[trial.subsystem].trial(request, self._interrupt)
            except ServiceRefused as refused:
                if refused.code != Refusal.BUSY:
                    url = self._services[trial.subsystem].url
                    raise refusal_meaning(refused, url, "a trial") from None
                if (holder_job(refused) or "").startswith(far_end_name(self._job, trial)):
                    raise same_host(self._services[trial.subsystem].url) from None
                if time.monotonic() >= deadline_s:
                    raise BusyError(refused.detail) from None
                self._on_waiting(refused.detail)
                self._interrupt.wait(BUSY_RETRY_S)
            else:
                return

    def _request(self, trial: Trial) -> Trial:
        own = trial.tool == OWN_TOOL
        return trial.model_copy(
            update={
                "id": f"{self._job}-{trial.id}-{secrets.token_hex(4)}",
                "fence": self._fence,
                "sha256": self._programs[trial.subsystem] if own else None,
            }
        )


def far_end_name(job: str, trial: Trial) -> str:
    """Return the beginning of the ids of a trial's sessions on its far host."""
    return f"{job}-{trial.id}-far-"


def holder_job(refused: ServiceRefused) -> str | None:
    """Return the holder of the host in a refusal: a job, a trial or a session."""
    holder = refused.members.get("holder")
    job = holder.get("job") if isinstance(holder, dict) else None
    return job if isinstance(job, str) else None


def same_host(url: str) -> ResourceError:
    """Return the error for two ends on one host, which would wait for its lock forever."""
    return ResourceError(
        f"service {url} runs on the same host as the other end of the test, and both take the "
        "same lock; give another far host, or target: loopback"
    )


class _Reading:
    """The lines of one trial, checked as those of a program of this host are."""

    def __init__(self, trial: Trial, workload: Workload) -> None:
        self._trial = trial
        self._stream = EventStream(trial, workload)
        self._last: TrialEvent | None = None
        self._failure: FailureEvent | None = None
        self._complete = False

    def take(self, line: bytes) -> TrialEvent | None:
        """The event of a line; None: it is about a failure, which `finish` raises.

        Raise TrialFailed on a line that has no place here.
        """
        try:
            event = SERVICE_EVENT.validate_json(line)
        except ValidationError:
            text = line.decode("utf-8", "replace")
            raise TrialFailed("malformed_output", f"not an event: {shown(text)}") from None
        if self._complete:
            raise TrialFailed("malformed_output", f"event {event.event} after the last one")
        if isinstance(event, FailureEvent):
            self._failure = event
            return None
        if isinstance(event, ControlPlaneEvent):
            self._complete = True
        elif isinstance(event, OthersEvent):
            return event
        elif self._trial.tool != OWN_TOOL:
            self._last = event
        elif isinstance(event, PeerStartEvent | PeerEndEvent):
            raise TrialFailed("malformed_output", f"event {event.event} in a trial of our own")
        else:
            self._stream.accept(event)
            self._last = event
        return event

    def finish(self, url: str) -> None:
        """Called when the stream ended. Raise unless it holds a whole trial with its end."""
        if self._failure is not None:
            raise failure_meaning(self._failure, url)
        if not self._complete:
            raise service_lost(url, "broke off the stream of a trial")
        if not isinstance(self._last, EndEvent | PeerEndEvent | SkipEvent):
            raise TrialFailed("no_last_event", "the service ended a trial without its last event")


def failure_meaning(failure: FailureEvent, url: str) -> Exception:
    """Return the error for a failure in the middle of a stream."""
    if failure.code in set(Ending):
        return service_lost(url, f"ended the trial: {failure.message}")
    if failure.code == Refusal.LACKING:
        return ResourceError(f"service {url}: {failure.message}")
    known = failure.exit_code in set(ExitCode)
    code = ExitCode(failure.exit_code) if known else ExitCode.CASE_FAILED
    return TrialFailed(failure.code, failure.message, code)


def refusal_meaning(refused: ServiceRefused, url: str, what: str) -> Exception:
    """Return the error when a service refuses `what`, such as a trial: it ends the job, or only one
    trial."""
    if refused.code == Refusal.PROGRAM_CHANGED:
        return TrialFailed(refused.code, refused.detail)
    if refused.status == httpx.codes.UNPROCESSABLE_ENTITY:
        return TrialFailed("refused", refused.detail, ExitCode.USAGE)
    if refused.code == Refusal.LACKING:
        return ResourceError(f"service {url}: {refused.detail}")
    return service_lost(url, f"refuses {what}: {refused.detail}")
