"""Keeps the leases of the jobs that run here, and stops a job that may no longer go on.

A lease that is not renewed in time is given to another job. So a trial ends before its lease does,
by this process's own clock, whatever happens to Redis, the network or the system clock. A process
that was stopped for longer asks Redis whether it still holds the lease: if the whole machine was
suspended, no other process holds it.
"""

import signal
import threading
import time
from collections.abc import Callable
from enum import Enum

import structlog
from redis.exceptions import RedisError

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.model.jobs import StackState
from orchestrator.queue.jobs import LEASE_S, Lease
from orchestrator.queue.record import StartedJob

RENEW_S = 5.0
# The trial ends this long before its lease does.
MARGIN_S = 3.0
# The pause after a failed attempt.
RETRY_S = 0.5
# A thread that runs this late after the end of a lease was stopped with its process.
OVERSLEPT_S = 0.5

log = structlog.get_logger()


def now_s() -> float:
    """Return the time of a clock that cannot be set and that also counts while this machine is
    suspended: other machines go on meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def repeat_while(step: Callable[[], None], wanted: Callable[[], bool]) -> None:
    """Call `step` again and again while `wanted` returns True. An unexpected error is logged and
    does not end the thread, which all jobs need."""
    while wanted():
        try:
            step()
        except Exception:
            log.exception("thread_goes_on", thread=threading.current_thread().name)
            time.sleep(RETRY_S)


class Stop(Enum):
    """Why a job is stopped. The value is shown to people."""

    CANCELLED = "cancelled by request"
    LEASE_LOST = "its lease was lost"
    SHUTDOWN = "its orchestrator was stopped; what was measured is kept, resume the job to go on"


class JobStopped(Interrupted):
    """The job must end, for this reason."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(signal.SIGTERM)
        self.message = stop.value
        self.args = (stop.value,)
        self.stop = stop


class HeldJob(Interrupt):
    """A job, and whether it still holds its leases. When it may not go on, `check` and `wait` raise
    JobStopped, and its descriptor becomes readable."""

    def __init__(self, job: StartedJob, requested_s: float) -> None:
        """`requested_s`: when its leases were requested, by `now_s`."""
        super().__init__()
        self.job = job
        self.why: Stop | None = None
        self.due_s = requested_s + RENEW_S
        self._held_until_s = requested_s + LEASE_S - MARGIN_S
        self._lost = False
        self._closed = False
        self._stopping = threading.Lock()
        self.is_held: Callable[[HeldJob], bool] = lambda _: False

    def stop(self, why: Stop) -> None:
        """Stop the job; only the first reason counts. The job may already have ended."""
        with self._stopping:
            if self.why is None:
                self.why = why
                if not self._closed:
                    self.trip()

    def close(self) -> None:
        """Close its descriptors; nothing writes to them afterwards."""
        with self._stopping:
            self._closed = True
            super().close()

    def renewed(self, requested_s: float) -> None:
        """Record that its leases were renewed by a request made at `requested_s` of `now_s`."""
        self._held_until_s = requested_s + LEASE_S - MARGIN_S
        self.due_s = requested_s + RENEW_S

    @property
    def left_s(self) -> float:
        """How long it may go on without a renewal, in seconds."""
        return self._held_until_s - now_s()

    def lose(self) -> None:
        """Record that it no longer holds its leases, and stop it."""
        self._lost = True
        self.stop(Stop.LEASE_LOST)

    @property
    def lost(self) -> bool:
        """Whether another job may hold its leases. This reads the clock itself, because after a
        SIGCONT it may run before the keeper does."""
        late_s = -self.left_s
        if not self._lost and late_s >= 0 and not (late_s > OVERSLEPT_S and self.is_held(self)):
            self.lose()
        return self._lost

    def check(self) -> None:
        """Raise JobStopped when the job may not go on."""
        if self.lost or self.why is not None:
            assert self.why is not None
            raise JobStopped(self.why)


class Keeper:
    """Renews the leases of all jobs held here, on one thread. A second thread only watches the
    clock, because an attempt to renew may take any time."""

    def __init__(self, renew: Callable[[StartedJob], Lease]) -> None:
        """`renew` raises RedisError when Redis does not answer."""
        self._renew = renew
        self._held: dict[str, HeldJob] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(
                target=repeat_while, args=(step, self._is_open), name=name, daemon=True
            )
            for name, step in (("keeper", self._renew_due), ("deadlines", self._lose_late))
        ]

    def start(self) -> None:
        """Start to renew leases."""
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether its threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def hold(self, held: HeldJob) -> None:
        """Renew this job's leases from now on."""
        with self._changed:
            # The job was lost, queued again, and returns before its first thread has ended.
            before = self._held.get(held.job.id)
            self._held[held.job.id] = held
            held.is_held = self._is_held
            self._changed.notify_all()
        if before is not None:
            before.lose()

    def let_go(self, held: HeldJob) -> None:
        """Stop renewing this job's leases."""
        with self._changed:
            if self._held.get(held.job.id) is held:
                del self._held[held.job.id]

    def stop(self, job_id: str, why: Stop) -> None:
        """Stop a job if it runs here."""
        with self._changed:
            held = self._held.get(job_id)
        if held is not None:
            held.stop(why)

    def stop_all(self, why: Stop) -> None:
        """Stop every job that runs here."""
        for held in self._all():
            held.stop(why)

    @property
    def count(self) -> int:
        """The number of jobs held here."""
        return len(self._held)

    def close(self) -> None:
        """End the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _is_open(self) -> bool:
        return not self._closed

    def _all(self) -> list[HeldJob]:
        with self._changed:
            return list(self._held.values())

    def _lose_late(self) -> None:
        """Stop the jobs whose time has run out, and wait until the next one's does."""
        with self._changed:
            held = [one for one in self._held.values() if not one.lost]
            self._wait(min((one.left_s for one in held), default=None))

    def _wait(self, seconds: float | None) -> None:
        """Wait for this long, or until there is another job. The caller holds the lock."""
        if not self._closed and (seconds is None or seconds > 0):
            self._changed.wait(seconds)

    def _renew_due(self) -> None:
        """Wait until a lease is due, and renew those that are."""
        with self._changed:
            held = [one for one in self._held.values() if not one.lost]
            self._wait(min((one.due_s - now_s() for one in held), default=None))
        try:
            self._renew_each()
        except RedisError as error:
            log.warning("leases_not_renewed", error=str(error))
            self._postpone()
        except Exception:
            self._postpone()
            raise

    def _renew_each(self) -> None:
        for held in self._all():
            if held.due_s <= now_s() and not held.lost and not self._renew_one(held):
                held.lose()

    def _renew_one(self, held: HeldJob) -> bool:
        """Renew a job's leases; return False if they are gone. Raise RedisError."""
        requested_s = now_s()
        answer = self._renew(held.job)
        if answer == "gone":
            return False
        held.renewed(requested_s)
        if answer == "cancel":
            held.stop(Stop.CANCELLED)
        return True

    def _is_held(self, held: HeldJob) -> bool:
        try:
            return self._renew_one(held)
        except RedisError:
            return False

    def _postpone(self) -> None:
        """Postpone the renewals of all jobs: if Redis is unreachable for one, it is for all."""
        for held in self._all():
            held.due_s = max(held.due_s, now_s() + RETRY_S)


TERMINAL_STATE = {
    Stop.CANCELLED: StackState.CANCELLED,
    Stop.SHUTDOWN: StackState.LOST,
}
