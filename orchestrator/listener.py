"""Hears what the orchestrators tell one another through Redis: something may start, a job is to
stop."""

import threading
import time
from collections.abc import Callable

import redis
import structlog
from redis.exceptions import RedisError

from orchestrator.keeper import lasting
from orchestrator.store.connection import key

# Redis is asked whether it is still there when it said nothing for so long.
SILENCE_S = 15.0
RETRY_S = 1.0

WAKE, CANCEL = key("wake"), key("cancel")

log = structlog.get_logger()


class Listener:
    """One thread that waits for messages."""

    def __init__(
        self,
        client: redis.Redis,
        on_wake: Callable[[], None],
        on_cancel: Callable[[str], None],
    ) -> None:
        """`on_cancel` hears the id of a job."""
        self._redis = client
        self._on_wake = on_wake
        self._on_cancel = on_cancel
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=lasting,
            args=(self._step, lambda: not self._closed.is_set()),
            name="listener",
            daemon=True,
        )

    def start(self) -> None:
        """Begins to listen."""
        self._thread.start()

    def close(self) -> None:
        """What comes now is not heard any more. The thread ends with the process."""
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
            # Whatever was said before is lost.
            self._on_wake()
            ask_at_s = time.monotonic() + SILENCE_S
            while not self._closed.is_set():
                message = channels.get_message(timeout=SILENCE_S)
                if message is not None:
                    self._hear(message["channel"], message["data"])
                # None is also what redis-py makes of the answer to a ping.
                elif time.monotonic() >= ask_at_s:
                    channels.ping()
                    ask_at_s = time.monotonic() + SILENCE_S

    def _hear(self, channel: str, text: str) -> None:
        if channel == CANCEL:
            self._on_cancel(text)
        elif channel == WAKE:
            self._on_wake()
