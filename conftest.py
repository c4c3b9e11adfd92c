"""Which cases of a test `make test` leaves to `make test-all`, and which tests wait for a CPU."""

import contextlib
import fcntl
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parent


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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have no more tests of programs measure at once than there are CPUs.

    Most other tests wait most of the time, so there are more lanes than that."""
    if item.path.is_relative_to(ROOT / "services"):
        with _place_to_measure():
            return (yield)
    return (yield)


@contextlib.contextmanager
def _place_to_measure() -> Iterator[None]:
    """Hold one of as many locks as there are CPUs."""
    directory = ROOT / "build/lanes"
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as files:
        places = [
            files.enter_context((directory / str(cpu)).open("w"))
            for cpu in range(len(os.sched_getaffinity(0)))
        ]
        while not any(map(_is_taken, places)):
            time.sleep(0.02)
        yield


def _is_taken(place: IO[str]) -> bool:
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
