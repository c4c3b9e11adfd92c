"""Which cases of a test `make test` leaves to `make test-all`, in which order files are tested, and
which tests wait for a CPU."""

import contextlib
import fcntl
import functools
import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parent
SERVICES = ROOT / "services"
# The files below services/ are through when this share of the others is: lanes that measure would
# wait for one another at the end.
THROUGH_AT = 0.7


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look through what was collected: six thousand
    tests stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a `sampled(every)` test `exhaustive`, all but each `every`-th.

    Of stacked parameters that is a diagonal: with `every` coprime to the number of values of each
    of them, all values come up."""
    met: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None:
            continue
        function = item.nodeid.partition("[")[0]
        if met[function] % mark.args[0] != 0:
            item.add_marker(pytest.mark.exhaustive)
        met[function] += 1
    items.sort(key=_place_among(items))


def _place_among(items: list[pytest.Item]) -> Callable[[pytest.Item], float]:
    """Return the order that spreads the files of each subsystem among all others, so that lanes
    which compute and lanes which wait for servers, disks and networks fill the CPUs together.

    Items of a file stay together, and files of a kind in their order."""
    number = Counter(_subsystem(item.path) for item in items)
    met: Counter[str] = Counter()
    places: dict[Path, float] = {}
    for item in items:
        kind = _subsystem(item.path)
        share = met[kind] / number[kind]
        places.setdefault(item.path, share * THROUGH_AT if kind else share)
        met[kind] += 1
    return lambda item: places[item.path]


@functools.cache
def _subsystem(file: Path) -> str:
    """Whose program a test runs; nothing for those that are not below services/."""
    return file.relative_to(SERVICES).parts[0] if file.is_relative_to(SERVICES) else ""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have no more tests of programs run at once than there are CPUs, and one more: they wait for
    a part of their time.

    Most other tests wait most of the time, so there are more lanes than that."""
    if _subsystem(item.path):
        with _place_to_measure():
            return (yield)
    return (yield)


@contextlib.contextmanager
def _place_to_measure() -> Iterator[None]:
    """Hold one of as many locks as there are CPUs, and one more."""
    directory = ROOT / "build/lanes"
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as files:
        places = [
            files.enter_context((directory / str(place)).open("w"))
            for place in range(len(os.sched_getaffinity(0)) + 1)
        ]
        while not any(map(_take, places)):
            time.sleep(0.02)
        yield


def _take(place: IO[str]) -> bool:
    """Take a lock if it is free; return whether it was."""
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
