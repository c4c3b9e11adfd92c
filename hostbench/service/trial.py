"""One admitted trial or session: a thread that takes the lock, does the work and reports the
events, and a second thread that ends it when its lease runs out or a higher fence comes.

The last item it reports is always `None`: by then nothing of the trial runs and the lock is free.
It never waits for the caller.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from hostbench.base.errors import ResourceError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host.lock import FENCE_LOOK_S, Claim, HostBusyError, HostLock, StaleFenceError
from hostbench.host.usage import ProcessMeter
from hostbench.model.events import ControlPlaneEvent, SkipEvent
from hostbench.model.peer import TrialEvent
from hostbench.model.service import (
    LEASE_S,
    Ending,
    FailureEvent,
    Refusal,
    SessionEndEvent,
    SessionEvent,
    SessionRequest,
    TrialRequest,
)
from hostbench.model.trial import TrialFailed
from hostbench.web.problem import Problem

SENTENCES = {
    Ending.LEASE_LOST: "the caller did not renew the lease in time",
    Ending.CALLER_GONE: "the connection of the caller was closed",
    Ending.PREEMPTED: "a job with a higher fence took this host",
    Ending.SERVICE_ENDS: "the service is stopping",
}
# The outcomes of a trial that was neither refused nor ended from outside.
MEASURED, SKIPPED, FAILED, CRASHED = "measured", "skipped", "failed", "crashed"
_log = structlog.get_logger()

# A line of the stream, a refusal in place of all lines, or None at the end.
Item = bytes | Problem | None
# What a trial or a session reports itself.
WorkEvent = TrialEvent | SessionEvent | SessionEndEvent
# What still runs this long after the trial was ended is killed: a second after its lease ran out
# nothing may be left of a trial, and the job with the higher fence is waiting.
HURRY_S = 0.5
# A guard that is this late was stopped with its process.
OVERSLEPT_S = 1.0


class Work(Protocol):
    """Work that is done while the host's lock is held."""

    def run(self, interrupt: Interrupt, lock_descriptor: int) -> Generator[WorkEvent, None, None]:
        """Yield the events as they come. Raise TrialFailed, ResourceError or Interrupted.

        Every process it starts inherits `lock_descriptor`, and none runs on after the generator
        ends or is closed.
        """
        ...


@dataclass(frozen=True)
class AdmittedCall:
    """One POST of a trial or a session that is possible here. `kind`: trial or session, for people
    and counters."""

    kind: str
    request: TrialRequest | SessionRequest
    claim: Claim
    lock: Path
    work: Work

    @property
    def id(self) -> str:
        """The caller's id of the trial or session."""
        return self.request.id


class Lease:
    """How much longer a trial may run; its caller renews it."""

    def __init__(self, seconds: float = LEASE_S) -> None:
        self._seconds = seconds
        self._until_s = 0.0
        self.renew()

    def renew(self) -> None:
        """Start a new lease; callable from any thread."""
        self._until_s = time.monotonic() + self._seconds

    @property
    def left_s(self) -> float:
        """The remaining seconds; 0 when it has run out."""
        return max(0.0, self._until_s - time.monotonic())


class Guard:
    """Ends a trial whose lease runs out or whose fence was overtaken.

    It has a thread of its own, so neither the trial, which waits for its program, nor the event
    loop must be prompt.
    """

    def __init__(
        self, lease: Lease, fence: int | None, lock: HostLock, end: Callable[[Ending], None]
    ) -> None:
        """`end` may be called more than once: the second call is urgent."""
        self._lease = lease
        self._fence = fence
        self._lock = lock
        self._end = end
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)

    def __enter__(self) -> "Guard":
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        looked_s = time.monotonic()
        while not self._done.wait(min(FENCE_LOOK_S, self._lease.left_s)):
            if time.monotonic() - looked_s > FENCE_LOOK_S + OVERSLEPT_S:
                # The caller may have been stopped, too, so it gets a whole lease again.
                self._lease.renew()
            looked_s = time.monotonic()
            ending = self._ending()
            if ending is not None:
                self._end(ending)
                if not self._done.wait(HURRY_S):
                    self._end(ending)
                return

    def _ending(self) -> Ending | None:
        if self._lease.left_s == 0:
            return Ending.LEASE_LOST
        if self._fence is not None and self._lock.fence() > self._fence:
            return Ending.PREEMPTED
        return None


class RunningTrial:
    """One trial or session, from the request to its last line."""

    def __init__(
        self,
        call: AdmittedCall,
        put: Callable[[Item], None],
        finished: Callable[["RunningTrial", str], None],
        busy_for_s: Callable[[], float | None],
    ) -> None:
        """`put` takes each item; `finished` gets the outcome before the last items. `busy_for_s`:
        how many seconds the holder of the lock may keep it without renewal; None: unknown."""
        self.call = call
        self.lease = Lease()
        self.holds_lock = False
        self._put = put
        self._finished = finished
        self._busy_for_s = busy_for_s
        self._begun = False
        self._ending: Ending | None = None
        self._mutex = threading.Lock()
        self._interrupt: Interrupt | None = Interrupt()
        self._thread = threading.Thread(
            target=self._main, name=f"{call.kind} {call.id}", daemon=True
        )

    def start(self) -> None:
        """Start it; return at once. Raise ResourceError when no thread is available."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._discard()
            raise ResourceError(f"{error}; end other processes, or allow more") from None

    def end(self, ending: Ending) -> None:
        """End it; return at once. Callable from any thread; a second call means that it is
        urgent."""
        with self._mutex:
            # After it was closed, its descriptors may belong to another file.
            if self._interrupt is not None:
                self._ending = self._ending or ending
                self._interrupt.trip()

    def _main(self) -> None:
        meter = ProcessMeter("service")
        outcome, last = self._outcome()
        self._finished(self, outcome)
        if isinstance(last, Problem):
            self._put(last)
        elif outcome != CRASHED:
            if last is not None:
                self._say(last)
            self._say(ControlPlaneEvent(processes=(meter.taken(),)))
        # Without its last line, the stream of a crash counts as cut.
        self._put(None)

    def _outcome(self) -> tuple[str, FailureEvent | Problem | None]:
        """Return the outcome in one word, and the last event about it."""
        try:
            return self._run(), None
        except HostBusyError as error:
            return Refusal.BUSY, self._busy(error)
        except StaleFenceError as error:
            refusal = Problem(409, Refusal.STALE_FENCE, error.message, highest=error.highest)
            return Refusal.STALE_FENCE, refusal
        except TrialFailed as error:
            return FAILED, _failure(error.code, error.message, error.exit_code)
        except Interrupted:
            return self._ended()
        except ResourceError as error:
            if not self._begun:
                return Refusal.LACKING, Problem(503, Refusal.LACKING, error.message)
            return FAILED, _failure(Refusal.LACKING, error.message, error.exit_code)
        except Exception:  # noqa: BLE001 - nothing above a thread reports it
            _log.exception("trial_crashed", trial=self.call.id, kind=self.call.kind)
            return CRASHED, None if self._begun else Problem(500, CRASHED, "see the service's log")

    def _run(self) -> str:
        """Return the trial's outcome. When this returns, the lock is free and its descriptors are
        closed."""
        interrupt = self._interrupt
        assert interrupt is not None
        try:
            with contextlib.closing(HostLock(self.call.lock)) as lock:
                fence = self.call.claim.fence
                with Guard(self.lease, fence, lock, self.end):
                    lock.claim(self.call.claim, interrupt)
                    self.holds_lock = True
                    try:
                        return self._measure(interrupt, lock)
                    finally:
                        lock.note_left()
        finally:
            self.holds_lock = False
            self._discard()

    def _discard(self) -> None:
        with self._mutex:
            interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            interrupt.close()

    def _measure(self, interrupt: Interrupt, lock: HostLock) -> str:
        outcome = MEASURED
        with contextlib.closing(self.call.work.run(interrupt, lock.descriptor)) as events:
            for event in events:
                self._say(event)
                if isinstance(event, SkipEvent):
                    outcome = SKIPPED
                elif isinstance(event, SessionEndEvent):
                    outcome = event.outcome
        return outcome

    def _say(self, event: WorkEvent | FailureEvent) -> None:
        self._begun = True
        self._put(event.model_dump_json().encode() + b"\n")

    def _busy(self, error: HostBusyError) -> Problem:
        left_s = self._busy_for_s()
        retry = {} if left_s is None else {"Retry-After": str(max(1, math.ceil(left_s)))}
        return Problem(
            409,
            Refusal.BUSY,
            error.message,
            headers=retry,
            holder=error.holder,
            retry_after_s=left_s,
        )

    def _ended(self) -> tuple[str, FailureEvent | Problem]:
        ending = self._ending
        assert ending is not None, "only end() trips the interrupt"
        message = SENTENCES[ending]
        if self._begun:
            return ending, _failure(ending, message, ExitCode.TERMINATED)
        if ending is Ending.SERVICE_ENDS:
            return ending, Problem(503, Refusal.LACKING, message)
        return ending, Problem(409, ending, message)


def _failure(code: str, message: str, exit_code: int) -> FailureEvent:
    return FailureEvent(code=code, message=message or code, exit_code=exit_code)
