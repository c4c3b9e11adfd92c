"""Live events: published for whoever watches, and kept by nobody.

A job's thread only hands them over. Were it to wait for Redis, a trial would wait with it.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence

from redis.exceptions import RedisError

# So many are kept for a Redis that is slow; the oldest are dropped.
PENDING_MOST = 1000
INTERVAL_S = 1.0

Publish = Callable[[Sequence[tuple[str, str]]], None]


class LivePublisher:
    """One thread that publishes at most once a second."""

    def __init__(self, publish: Publish) -> None:
        """`publish` takes (job, event) each; RedisError is as good as nobody listening."""
        self._publish = publish
        self._pending: deque[tuple[str, str]] = deque(maxlen=PENDING_MOST)
        self._using = threading.Lock()
        # Held from taking to having published: what is withdrawn is not on its way any more.
        self._publishing = threading.Lock()
        self._something = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)

    def start(self) -> None:
        """Begins to publish."""
        self._thread.start()

    def say(self, job_id: str, event: str) -> None:
        """Publishes an event soon."""
        with self._using:
            self._pending.append((job_id, event))
        self._something.set()

    def withdraw(self, job_id: str) -> list[str]:
        """What of a job was not published yet: it goes out with what comes after it. Waits for what
        is being published, so it is not for the middle of a trial."""
        with self._publishing, self._using:
            mine = [event for job, event in self._pending if job == job_id]
            others = [one for one in self._pending if one[0] != job_id]
            self._pending.clear()
            self._pending.extend(others)
        return mine

    def close(self) -> None:
        """Ends the thread; what is pending is dropped."""
        self._closed.set()
        self._something.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._something.wait()
            self._something.clear()
            # Whoever watches sees the durable events later.
            with contextlib.suppress(RedisError), self._publishing:
                self._publish_pending()
            self._closed.wait(INTERVAL_S)

    def _publish_pending(self) -> None:
        with self._using:
            batch = list(self._pending)
            self._pending.clear()
        if batch:
            self._publish(batch)
