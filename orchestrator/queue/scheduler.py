"""Starts queued jobs when their hosts are free, and listens to messages of other processes."""

import threading
import time
from collections.abc import Callable, Mapping

import redis
import structlog
from redis.exceptions import RedisError

from hostbench.model.jobs import StackState
from orchestrator.queue.connection import key
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.keeper import now_s, repeat_while
from orchestrator.queue.record import StartedJob
from orchestrator.queue.signs import LOOK_S, SignWatch

# Redis gets a ping after this long without a message.
SILENCE_S = 15.0
RETRY_S = 1.0
WAKE, CANCEL = key("wake"), key("cancel")
log = structlog.get_logger()
# Everything that lets a job start publishes a wake-up message. The queue is also checked at this
# interval, in case a message was lost; no more often, as a trial may be running.
UNPROMPTED_S = 5.0
FORGET_EVERY_S = 60.0
# Each job takes one thread.
JOBS_MOST = 64


class Listener:
    """One thread that waits for messages."""

    def __init__(
        self,
        client: redis.Redis,
        on_wake: Callable[[], None],
        on_cancel: Callable[[str], None],
    ) -> None:
        """`on_cancel` gets the id of a job."""
        self._redis = client
        self._on_wake = on_wake
        self._on_cancel = on_cancel
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=repeat_while,
            args=(self._step, lambda: not self._closed.is_set()),
            name="listener",
            daemon=True,
        )

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()

    def close(self) -> None:
        """Stop delivering messages. The thread ends with the process."""
        self._closed.set()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _step(self) -> None:
        try:
            self._listen()
        except RedisError:
            self._closed.wait(RETRY_S)

    def _listen(self) -> None:
        with self._redis.pubsub(  # type: ignore[no-untyped-call]
            ignore_subscribe_messages=True
        ) as channels:
            channels.subscribe(WAKE, CANCEL)
            # Messages from before the subscription are lost.
            self._on_wake()
            ask_at_s = time.monotonic() + SILENCE_S
            while not self._closed.is_set():
                message = channels.get_message(timeout=SILENCE_S)
                if message is not None:
                    self._hear(message["channel"], message["data"])
                # redis-py also returns None for the answer to a ping.
                elif time.monotonic() >= ask_at_s:
                    channels.ping()
                    ask_at_s = time.monotonic() + SILENCE_S

    def _hear(self, channel: str, text: str) -> None:
        if channel == CANCEL:
            self._on_cancel(text)
        elif channel == WAKE:
            self._on_wake()


class Scheduler:
    """One thread that starts jobs. Redis may be unreachable at any time; the thread goes on when it
    is back."""

    def __init__(
        self,
        store: JobStore,
        owner: str,
        running: Callable[[], int],
        start_job: Callable[[StartedJob, float], bool],
        on_reaped: Callable[[str, StackState], None],
        on_changed: Callable[[Mapping[str, str]], None],
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make the scheduler of one orchestrator.

        - `owner`: the name of this orchestrator; `running`: how many jobs run here.
        - `start_job`: takes a job and the time its leases were requested, by `keeper.now_s`. If it
          returns False, the job could not be started and is queued again.
        - `on_reaped`: called with each job whose leases expired.
        - `on_changed`: called with the jobs whose states must be noted, until `JobStore.noted`
          takes them.
        - `has_room`: whether there is room for results. Without it no job starts, for each would
          fail.
        """
        self._store = store
        self._owner = owner
        self._running = running
        self._start_job = start_job
        self._on_reaped = on_reaped
        self._on_changed = on_changed
        self._has_room = has_room
        self._wake = threading.Event()
        self._closed = False
        self._away = False
        self._signs = SignWatch()
        self._reap_at_s = 0.0
        self._dispatch_at_s = 0.0
        self._forget_at_s = 0.0
        self._bounded = False
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        """Start to schedule."""
        self._thread.start()

    def wake(self) -> None:
        """Check the queue now: something may be able to start."""
        self._wake.set()

    def end(self) -> None:
        """Start no more jobs; return at once."""
        self._closed = True
        self._wake.set()

    def close(self) -> None:
        """End the thread and wait for it."""
        self.end()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        repeat_while(self._step, lambda: not self._closed)

    def _step(self) -> None:
        if self._wake.is_set():
            self._wake.clear()
            self._dispatch_at_s = 0.0
        try:
            if time.monotonic() >= self._reap_at_s:
                self._clear_up()
                self._reap_at_s = time.monotonic() + LOOK_S
            if time.monotonic() >= self._dispatch_at_s:
                self._dispatch()
                self._dispatch_at_s = time.monotonic() + UNPROMPTED_S
            self._note_away(None)
        except RedisError as error:
            self._dispatch_at_s = 0.0
            self._note_away(error)
            time.sleep(RETRY_S)
        due_s = min(self._reap_at_s, self._dispatch_at_s)
        self._wake.wait(max(0.0, due_s - time.monotonic()))

    def _dispatch(self) -> None:
        room = JOBS_MOST - self._running()
        if room <= 0 or self._closed:
            return
        requested_s = now_s()
        started = True
        for job in self._store.dispatch(self._owner, room, has_room=self._has_room()):
            log.info("job_started", job=job.id, fence=job.fence, waited_s=round(job.dispatch_s, 4))
            started &= self._start_job(job, requested_s)
        if not started:
            time.sleep(RETRY_S)  # without a pause, the job queued again would be retried at once

    def _clear_up(self) -> None:
        found = self._store.reap(self._signs.silent())
        self._signs.look(found.signs)
        for job_id, state in found.ended:
            log.warning("lease_expired", job=job_id, state=state)
            self._on_reaped(job_id, state)
        if found.changed:
            self._on_changed(found.changed)
        if not self._bounded:
            self._store.bound_ended()
            self._bounded = True
        if time.monotonic() >= self._forget_at_s:
            self._store.forget()
            self._forget_at_s = time.monotonic() + FORGET_EVERY_S

    def _note_away(self, error: RedisError | None) -> None:
        """Log one line when Redis becomes unreachable and one when it is back."""
        if (error is not None) == self._away:
            return
        self._away = error is not None
        if error is None:
            log.info("redis_is_back")
        else:
            log.error("redis_is_away", error=str(error))
