"""An event loop in a thread of its own, for callers that block.

An Interrupt cannot wake a thread that waits for a socket. A coroutine can be cancelled at any
moment, and then closes what it has open. So calls over the network run here, and the caller waits
for their results and for its Interrupt at the same time.
"""

import asyncio
import contextlib
import math
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from hostbench.base.interrupt import Interrupt

Item = TypeVar("Item")
Produce = Callable[[Callable[[Item], None]], Coroutine[Any, Any, None]]
# A cancelled coroutine closes its connections and ends; one that does not must not hold us up.
CANCEL_S_MOST = 2.0


class Ended(Exception):
    """A coroutine has put its last item."""


class _Delivery:
    """The items of one coroutine on their way from the loop's thread to the caller's."""

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.task: asyncio.Task[None] | None = None
        self.ended = threading.Event()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._mutex = threading.Lock()
        self._closed = False

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start the coroutine; call on the loop."""
        self.task = asyncio.get_running_loop().create_task(coroutine)
        self.task.add_done_callback(self._end)

    def cancel(self) -> None:
        """Cancel the coroutine; call on the loop."""
        if self.task is not None:
            self.task.cancel()

    def put(self, item: object) -> None:
        """Add an item; call on the loop."""
        self.items.append(item)
        self._ring()

    def _end(self, _task: asyncio.Task[None]) -> None:
        self.ended.set()
        self._ring()

    def _ring(self) -> None:
        with self._mutex:
            if not self._closed:
                os.eventfd_write(self._wake, 1)

    def wait(self, interrupt: Interrupt | None, seconds: float | None = None) -> None:
        """Wait until there is something new, at most `seconds`. Raise Interrupted."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if interrupt is not None:
            poll.register(interrupt, select.POLLIN)
        poll.poll(None if seconds is None else math.ceil(max(0.0, seconds) * 1e3))
        if interrupt is not None:
            interrupt.check()
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def close(self) -> None:
        """Close it at the end; call in the caller's thread."""
        with self._mutex:
            self._closed = True
            os.close(self._wake)


class Following(Generic[Item]):
    """The items that one coroutine puts, taken one by one; it runs meanwhile, but not after
    `close()`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, produce: "Produce[Item]") -> None:
        self._loop = loop
        self._delivery = _Delivery()
        loop.call_soon_threadsafe(self._delivery.begin, produce(self._delivery.put))

    def take(self, interrupt: Interrupt | None, seconds: float | None = None) -> Item:
        """Return the next item. Raise Ended when none is left, what the coroutine raises,
        Interrupted, or TimeoutError when none came for `seconds`."""
        delivery = self._delivery
        if interrupt is not None:
            interrupt.check()
        until_s = None if seconds is None else time.monotonic() + seconds
        while not delivery.items:
            # In this order: when it has ended, all its items are there.
            if delivery.ended.is_set() and not delivery.items:
                assert delivery.task is not None
                delivery.task.result()
                raise Ended
            left_s = None if until_s is None else until_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise TimeoutError
            delivery.wait(interrupt, left_s)
        item: Item = delivery.items.popleft()
        return item

    def when_it_fails(self, on_error: Callable[[BaseException], None]) -> None:
        """Call `on_error` on the loop with the error that ends the exchange, even one that already
        came. Do not call it when the exchange ends well or is cancelled."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                on_error(error)

        def ask() -> None:
            assert self._delivery.task is not None, "the loop began it before"
            self._delivery.task.add_done_callback(ended)

        self._loop.call_soon_threadsafe(ask)

    def close(self) -> None:
        """Cancel the coroutine, if it has not ended."""
        if not self._delivery.ended.is_set():
            self._loop.call_soon_threadsafe(self._delivery.cancel)
            self._delivery.ended.wait(CANCEL_S_MOST)
        self._delivery.close()


class Wire:
    """The loop and its thread, from the first call until `close()`."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"wire {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def items(
        self, produce: "Produce[Item]", interrupt: Interrupt | None
    ) -> Generator[Item, None, None]:
        """Yield what `produce(put)` puts, as it comes. Raise what it raises, or Interrupted.
        However the generator ends, nothing of it runs on."""
        with contextlib.closing(self.follow(produce)) as following:
            while True:
                try:
                    item = following.take(interrupt)
                except Ended:
                    return
                yield item

    def follow(self, produce: "Produce[Item]") -> "Following[Item]":
        """Start it; the caller must close it."""
        return Following(self._loop, produce)

    def call(
        self, coroutine: Coroutine[Any, Any, Item], interrupt: Interrupt | None = None
    ) -> Item:
        """Return the result of one coroutine. Raise what it raises, or Interrupted."""

        async def produce(put: Callable[[Item], None]) -> None:
            put(await coroutine)

        with contextlib.closing(self.items(produce, interrupt)) as results:
            return next(results)

    def close(self) -> None:
        """End the loop; no call may be in progress."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
