"""A real job that all lanes of the tests share: the first that needs it measures it."""

import fcntl
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostbench.results.store import JobDirectory
from orchestrator.influx.outbox import Outbox
from orchestrator.influx.points import Point, line
from orchestrator.influx.sink import PointSink
from tests.influx.jobs import SUITE, few_of, measured


class Kept(Outbox):
    """An outbox that keeps what it is given, and how it came."""

    def __init__(self) -> None:
        self.handed_over: list[list[Point]] = []

    def put(self, points: object) -> None:
        assert isinstance(points, list)
        if points:
            self.handed_over.append(points)

    @property
    def lines(self) -> Counter[str]:
        return Counter(line(point) for points in self.handed_over for point in points)


@dataclass(frozen=True)
class RealJob:
    """A job, alone in its results directory, and the points that its sink made while it ran."""

    directory: JobDirectory
    lines: Counter[str]


def real_job(factory: pytest.TempPathFactory) -> RealJob:
    """The job; measured now if no lane has."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The directory of a lane stands in that of all.
        root = root.parent
    found = root / "real_job.json"
    with (root / "real_job.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            outbox = Kept()
            results = factory.mktemp("results")
            directory, _ = measured(results, lambda one: PointSink(one, outbox), few_of(SUITE))
            found.write_text(json.dumps([str(directory.path), outbox.lines]))
        path, lines = json.loads(found.read_text())
    return RealJob(JobDirectory(Path(path)), Counter(lines))
