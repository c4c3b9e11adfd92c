"""Writes every point of a results directory to InfluxDB: after a wiped or a new InfluxDB, or when
an outage lasted longer than the outbox keeps. Running it again changes nothing.

Beside the results of `hostbench run` it needs no more packages than that; in the stack, whose
outbox counts the points it left out, it needs redis too.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.packages import needs_packages
from hostbench.base.units import plural
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.job import JobDecider
from hostbench.model.jobs import TERMINAL
from hostbench.results.ids import results_directory
from hostbench.results.store import ResultsStore
from orchestrator.influx.client import (
    InfluxClient,
    Rejected,
    RejectedLine,
    Unauthorized,
    ensure_database,
)
from orchestrator.influx.options import add_options, options_of
from orchestrator.influx.points import (
    DECISION,
    SAMPLES,
    SAMPLES_RETENTION_DAYS,
    Point,
    decision_points,
    document_points,
    job_point,
    line,
    stored_text,
)
from orchestrator.queue.address import RedisSettings
from orchestrator.results.archive import Archive

if TYPE_CHECKING:
    from orchestrator.influx.outbox import Outbox

# The batch size that InfluxDB's documentation recommends.
LINES_A_WRITE = 5_000
# How often to delete outdated points until none are left.
DELETED_MOST = 3
SECONDS_A_DAY = 86_400
PRINTED_EVERY_S = 2.0
REJECTED_SHOWN = 3


@dataclass
class Reindexed:
    """What was done with a results directory.

    - `too_old`: points that their retention policy would drop at once.
    - `unreadable`: one sentence for each job that could not be read.
    - `kept`: one sentence for each point with outdated fields that InfluxDB does not delete.
    """

    jobs: int = 0
    points: int = 0
    too_old: int = 0
    rejected: list[RejectedLine] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """What was done, in one line."""
        text = f"{plural(self.points, 'point')} of {plural(self.jobs, 'job')} written"
        if self.too_old:
            text += (
                f", {self.too_old} left out: older than the {SAMPLES_RETENTION_DAYS} days "
                "that samples are kept"
            )
        if self.rejected:
            text += f", {self.rejected_count} rejected"
        if self.unreadable:
            text += f", {plural(len(self.unreadable), 'job')} unreadable"
        if self.kept:
            text += f", {plural(len(self.kept), 'point')} with outdated fields"
        return text

    @property
    def rejected_count(self) -> int:
        """The number of points that InfluxDB refused."""
        return len(self.rejected)


class _Batches:
    """Collects lines by retention policy and writes them when there are enough."""

    def __init__(self, influx: InfluxClient, done: Reindexed) -> None:
        self._influx = influx
        self._done = done
        self._lines: dict[str | None, list[str]] = {}

    def add(self, point: Point) -> None:
        lines = self._lines.setdefault(point.retention, [])
        lines.append(line(point))
        if len(lines) >= LINES_A_WRITE:
            self._write(point.retention)

    def finish(self) -> None:
        for retention in list(self._lines):
            self._write(retention)

    def _write(self, retention: str | None) -> None:
        lines = self._lines.pop(retention)
        refused = self._influx.write_each(lines, retention)
        expired = sum(one.expired for one in refused)
        self._done.too_old += expired
        self._done.points += len(lines) - len(refused)
        self._done.rejected += [one for one in refused if not one.expired]


def reindex(
    store: ResultsStore, influx: InfluxClient, progress: Callable[[int, int, Reindexed], None]
) -> Reindexed:
    """Write every point of every job, including unfinished jobs as far as they are.

    `progress` gets the number of jobs read, the number of jobs, and what was done so far. Raise
    InfluxError.
    """
    ensure_database(influx)
    done = Reindexed()
    batches = _Batches(influx, done)
    oldest_ms = int((time.time() - SAMPLES_RETENTION_DAYS * SECONDS_A_DAY) * 1000)
    ids = store.ids()
    decisions: dict[tuple[str, int, str], Point] = {}
    archive = Archive(store)
    with FigureIndex(store.root) as index:
        decider = JobDecider(index, os.environ)
        for number, job_id in enumerate(ids, start=1):
            try:
                document = store.job(job_id).load()
            except HostbenchError as error:
                done.unreadable.append(f"{job_id}: {error.message}")
                continue
            done.jobs += 1
            for point in document_points(document):
                if point.retention == SAMPLES and point.time_ms < oldest_ms:
                    done.too_old += 1
                else:
                    batches.add(point)
            # A job that has not ended writes its states itself.
            if (view := archive.view(job_id)) is not None and view.state in TERMINAL:
                batches.add(job_point(view))
            # Each job states again where the host changed; the last job's statement counts.
            decisions |= {
                (point.measurement, point.time_ms, repr(point.tags)): point
                for point in decision_points(document, decider.of(document))
            }
            progress(number, len(ids), done)
    done.kept = _write_decisions(influx, batches, decisions.values())
    return done


def _write_decisions(
    influx: InfluxClient, batches: _Batches, decisions: Collection[Point]
) -> list[str]:
    """Replace the stored decisions; return a sentence for each outdated one that InfluxDB does not
    delete.

    InfluxDB is queried again afterwards: version 2 was seen to keep deleted points, most likely
    those that it was writing to disk at that moment.
    """
    kept: list[str] = []
    for attempt in range(DELETED_MOST):
        outdated = list(_outdated(influx, decisions))
        kept = [refusal for place in outdated if (refusal := _refusal(influx, place))]
        if attempt and len(kept) == len(outdated):
            break
        for point in decisions:
            batches.add(point)
        batches.finish()
    return kept


def _refusal(influx: InfluxClient, place: str) -> str | None:
    """Delete these points; return why InfluxDB refuses, or None if they are deleted. Raise
    InfluxError without an answer."""
    try:
        influx.query(f"DELETE {place}")
    except (Rejected, Unauthorized) as error:
        return f"InfluxDB does not delete {place}: {error.message}"
    return None


def _outdated(influx: InfluxClient, decisions: Iterable[Point]) -> Iterator[str]:
    """Yield where points have fields that the new decisions in their place lack, such as those of a
    removed baseline: InfluxDB would keep these fields."""
    fields = {
        (_as_stored(point.tags), point.time_ms): point.fields.keys()
        for point in decisions
        if point.measurement == DECISION
    }
    for series in influx.query(f'SELECT * FROM "{DECISION}" GROUP BY *'):
        tags = {name: value for name, value in series.tags.items() if value}
        for row in series.rows():
            time_ms = int(row.pop("time"))
            new = fields.get((frozenset(tags.items()), time_ms))
            if new is None or row.keys() <= new:
                continue
            where = " AND ".join(f'"{name}" = {_quoted(value)}' for name, value in tags.items())
            yield f'FROM "{DECISION}" WHERE {where} AND time = {time_ms}ms'


def _as_stored(tags: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, stored_text(value)) for name, value in tags.items())


def _quoted(text: str) -> str:
    """Return the text as a string of InfluxQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def run(results: Path | None, influx: InfluxClient) -> ExitCode:
    """Reindex and report on standard error; return the exit code of the command. Raise
    HostbenchError."""
    store = ResultsStore(results_directory(results))
    if not store.root.is_dir():
        raise UsageError(
            f"there is no directory {store.root}; name the one with the results with --results "
            "or HOSTBENCH_RESULTS"
        )
    outbox = _outbox()
    left_out = _left_out(outbox)
    done = reindex(store, influx, _Progress().say)
    for text in done.unreadable:
        _print(text)
    for one in done.rejected[:REJECTED_SHOWN]:
        _print(f"InfluxDB refuses {one.line[:200]}: {one.reason}")
    for text in done.kept[:REJECTED_SHOWN]:
        _print(text)
    _print(done.sentence)
    if done.rejected or done.unreadable or done.kept:
        return ExitCode.CASE_FAILED
    if outbox is not None and left_out:
        from redis.exceptions import RedisError

        with contextlib.suppress(RedisError):
            outbox.made_up_for(left_out)
    return ExitCode.OK


def _outbox() -> "Outbox | None":
    """Return the outbox of the stack that this command runs in, or None. The stack's health counts
    the points that the outbox left out."""
    stack = RedisSettings.from_environment()
    if stack.redis_url is None:
        return None
    with needs_packages("orchestrator"):
        from orchestrator.influx.outbox import Outbox
        from orchestrator.queue.connection import connect
    return Outbox(connect(stack.redis_url, stack.redis_password))


def _left_out(outbox: "Outbox | None") -> int:
    """Return how many points the outbox had left out before the results were read; reindex does not
    make up for later ones."""
    if outbox is None:
        return 0
    from redis.exceptions import RedisError

    with contextlib.suppress(RedisError):
        return outbox.left_out()
    return 0


class _Progress:
    """Prints a line of progress now and then."""

    def __init__(self) -> None:
        self._printed_s = time.monotonic()

    def say(self, number: int, jobs: int, done: Reindexed) -> None:
        if time.monotonic() - self._printed_s >= PRINTED_EVERY_S:
            self._printed_s = time.monotonic()
            _print(f"{number} of {plural(jobs, 'job')} read, {done.points} points written")


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m orchestrator.influx.reindex", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--url", help="address of InfluxDB; default: HOSTBENCH_INFLUXDB_URL")
    add_options(parser)
    parser.add_argument("--results", type=Path, help="default: HOSTBENCH_RESULTS, else ./results")
    given = parser.parse_args(arguments)
    try:
        with options_of(given, given.url).client() as influx:
            return run(given.results, influx)
    except HostbenchError as error:
        _print(f"hostbench: {error.message}")
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
