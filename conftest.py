"""Selects the cases that `make test` and CI leave to `make test-all`, orders the files, and has
tests that measure wait for a CPU."""

import contextlib
import fcntl
import functools
import gc
import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parent
SERVICES = ROOT / "services"
# The files below services/ are through when this share of the others is: lanes that measure would
# wait for one another at the end. So are files with a test that may take this long: it would go on
# alone.
THROUGH_AT = 0.7
LONG_S = 600
RELEASE = "release"


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare --share."""
    parser.addoption(
        "--share",
        default="0/1",
        metavar="K/N",
        help="of each test, have only every N-th of the cases of other builds than the release "
        "and of those that `sampled` leaves to `make test-all`; K, from 0 to N - 1, says which",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases of a `sampled(every)` test `exhaustive`, all but each `every`-th.

    Of stacked parameters that is a diagonal: with `every` coprime to the number of values of each
    of them, all values come up."""
    counted: Counter[str] = Counter()
    further: dict[str, list[pytest.Item]] = {}
    for item in items:
        function = item.nodeid.partition("[")[0]
        mark = item.get_closest_marker("sampled")
        left_out = mark is not None and counted[function] % mark.args[0] != 0
        counted[function] += 1
        if left_out:
            item.add_marker(pytest.mark.exhaustive)
        if left_out or _build(item) != RELEASE:
            further.setdefault(function, []).append(item)
    _leave_out(config, items, further)
    items.sort(key=_place_among(items))


def _build(item: pytest.Item) -> str:
    """Return the name of the build whose programs a test looks at."""
    callspec = getattr(item, "callspec", None)
    return RELEASE if callspec is None else str(callspec.params.get("variant", RELEASE))


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], further: Mapping[str, list[pytest.Item]]
) -> None:
    """Deselect what is not of the share that --share names. Raise UsageError."""
    match = re.fullmatch(r"(\d+)/([1-9]\d*)", share := config.getoption("share"))
    if match is None or int(match[1]) >= int(match[2]):
        raise pytest.UsageError(f"--share {share} is not allowed: give K/N, K from 0 to N - 1")
    number, of = map(int, match.groups())
    # Each test begins elsewhere: many have one further case.
    out = {
        case
        for function, cases in further.items()
        for at, case in enumerate(cases, zlib.crc32(function.encode()))
        if at % of != number
    }
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def _place_among(items: list[pytest.Item]) -> Callable[[pytest.Item], float]:
    """Return the order that spreads the files of each subsystem among all others, so that lanes
    which compute and lanes which wait for servers, disks and networks fill the CPUs together.

    Items of a file stay together, and files of a kind in their order."""
    number = Counter(_subsystem(item.path) for item in items)
    long = {item.path for item in items if _may_take_s(item) >= LONG_S}
    counted: Counter[str] = Counter()
    places: dict[Path, float] = {}
    for item in items:
        kind = _subsystem(item.path)
        share = counted[kind] / number[kind]
        soon = kind or item.path in long
        places.setdefault(item.path, share * THROUGH_AT if soon else share)
        counted[kind] += 1
    return lambda item: places[item.path]


def _may_take_s(item: pytest.Item) -> float:
    """Return the time limit that a test has of its own, or 0."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None and mark.args else 0.0


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
