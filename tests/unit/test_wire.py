"""Coroutines for callers that block."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.remote.wire import Ended, Wire
from tests.patience import PATIENCE_S

Put = Callable[[int], None]


@pytest.fixture
def wire() -> Iterator[Wire]:
    one = Wire("test")
    yield one
    one.close()


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


async def counts(put: Put) -> None:
    for i in range(5):
        put(i)
        await asyncio.sleep(0.01)


async def fails(put: Put) -> None:
    put(1)
    raise ValueError("after one")


class Endless:
    """Puts one item and waits; says when it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    async def run(self, put: Put) -> None:
        put(1)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def test_items_come_in_order(wire: Wire) -> None:
    assert list(wire.items(counts, None)) == [0, 1, 2, 3, 4]


def test_what_it_raises_comes_after_its_items(wire: Wire) -> None:
    items = wire.items(fails, None)
    assert next(items) == 1
    with pytest.raises(ValueError, match="after one"):
        next(items)


def test_a_result(wire: Wire) -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert wire.call(answer()) == 42


def test_several_threads_at_a_time(wire: Wire) -> None:
    results: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(list(wire.items(counts, None))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results == [[0, 1, 2, 3, 4]] * 8


def test_the_interrupt_cancels(wire: Wire, interrupt: Interrupt) -> None:
    endless = Endless()
    threading.Timer(0.2, interrupt.trip).start()
    with pytest.raises(Interrupted):
        list(wire.items(endless.run, interrupt))
    assert endless.cancelled.is_set()


def test_an_interrupt_that_came_before(wire: Wire, interrupt: Interrupt) -> None:
    interrupt.trip()
    with pytest.raises(Interrupted):
        list(wire.items(Endless().run, interrupt))


def test_leaving_early_cancels(wire: Wire) -> None:
    endless = Endless()
    items = wire.items(endless.run, None)
    assert next(items) == 1
    items.close()
    assert endless.cancelled.is_set()


def test_what_does_not_end_does_not_hold_us_up(wire: Wire) -> None:
    may_end, ended = threading.Event(), threading.Event()

    async def stubborn(put: Put) -> None:
        put(1)
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        ended.set()

    items = wire.items(stubborn, None)
    next(items)
    items.close()
    assert not ended.is_set()
    may_end.set()
    assert ended.wait(PATIENCE_S)


def test_nothing_is_left_open(wire: Wire) -> None:
    list(wire.items(counts, None))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        list(wire.items(counts, None))
        items = wire.items(Endless().run, None)
        next(items)
        items.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_is_followed_runs_meanwhile(wire: Wire) -> None:
    with contextlib.closing(wire.follow(counts)) as following:
        assert following.take(None) == 0
        time.sleep(0.3)
        assert [following.take(None, seconds=0) for _ in range(4)] == [1, 2, 3, 4]
        with pytest.raises(Ended):
            following.take(None)


def test_what_does_not_come_in_time(wire: Wire) -> None:
    endless = Endless()
    with contextlib.closing(wire.follow(endless.run)) as following:
        assert following.take(None, seconds=PATIENCE_S) == 1
        with pytest.raises(TimeoutError):
            following.take(None, seconds=0.05)
        assert not endless.cancelled.is_set()
    assert endless.cancelled.is_set()


def test_an_end_without_items_is_reported_in_its_own_words(wire: Wire) -> None:
    with contextlib.closing(wire.follow(fails)) as following:
        following.take(None)
        with pytest.raises(ValueError, match="after one"):
            following.take(None, seconds=PATIENCE_S)
