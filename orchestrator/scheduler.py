"""Starts jobs whose time has come, and clears up after orchestrators that died.

Every orchestrator does all of it; the scripts in Redis make that safe, so nobody leads.
"""

import threading
import time
from collections.abc import Callable

import structlog
from redis.exceptions import RedisError

from hostbench.models.jobs import StackState
from orchestrator.keeper import lasting, now_s
from orchestrator.store.jobs import JobStore
from orchestrator.store.record import StartedJob

# Woken up when something happens; this often in case that was not heard.
TICK_S = 1.0
FORGET_EVERY_S = 60.0
# One thread a job.
JOBS_MOST = 64

log = structlog.get_logger()


class Scheduler:
    """One thread. Redis may be away at any time; it goes on when it is back."""

    def __init__(
        self,
        store: JobStore,
        owner: str,
        running: Callable[[], int],
        start_job: Callable[[StartedJob, float], bool],
        on_reaped: Callable[[str, StackState], None],
    ) -> None:
        """`owner` names this orchestrator. `running`: how many jobs run here. `start_job` takes a
        job and when its leases were asked for, by `keeper.now_s`; False: it could not, and the job
        is queued again. `on_reaped` hears of the jobs whose orchestrators died."""
        self._store = store
        self._owner = owner
        self._running = running
        self._start_job = start_job
        self._on_reaped = on_reaped
        self._wake = threading.Event()
        self._closed = False
        self._away = False
        self._reap_at_s = 0.0
        self._forget_at_s = 0.0
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        """Begins to schedule."""
        self._thread.start()

    def wake(self) -> None:
        """Something may start now."""
        self._wake.set()

    def end(self) -> None:
        """Starts nothing any more; returns at once."""
        self._closed = True
        self._wake.set()

    def close(self) -> None:
        """Waits until it has ended."""
        self.end()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        lasting(self._step, lambda: not self._closed)

    def _step(self) -> None:
        self._wake.clear()
        try:
            if time.monotonic() >= self._reap_at_s:
                self._clear_up()
                self._reap_at_s = time.monotonic() + TICK_S
            self._dispatch()
            self._note_away(None)
        except RedisError as error:
            self._note_away(error)
            time.sleep(TICK_S)
        self._wake.wait(TICK_S)

    def _dispatch(self) -> None:
        room = JOBS_MOST - self._running()
        if room <= 0 or self._closed:
            return
        asked_s = now_s()
        started = True
        for job in self._store.dispatch(self._owner, room):
            log.info("job_started", job=job.id, fence=job.fence, waited_s=round(job.dispatch_s, 4))
            started &= self._start_job(job, asked_s)
        if not started:
            time.sleep(TICK_S)  # what is queued again would be tried again at once

    def _clear_up(self) -> None:
        for job_id, state in self._store.reap():
            log.warning("lease_expired", job=job_id, state=state)
            self._on_reaped(job_id, StackState(state))
        if time.monotonic() >= self._forget_at_s:
            self._store.forget()
            self._forget_at_s = time.monotonic() + FORGET_EVERY_S

    def _note_away(self, error: RedisError | None) -> None:
        """One line when Redis goes and one when it comes back."""
        if (error is not None) == self._away:
            return
        self._away = error is not None
        if error is None:
            log.info("redis_is_back")
        else:
            log.error("redis_is_away", error=str(error))
