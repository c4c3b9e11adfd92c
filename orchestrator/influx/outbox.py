"""Points on their way to InfluxDB: a Redis stream that any orchestrator empties.

An entry leaves the stream only when InfluxDB has taken its points, so an outage of InfluxDB, of an
orchestrator or of both loses none. A point that InfluxDB refuses is kept as rejected; one too
old for its retention policy is only counted.
"""

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator
from typing import Any, cast

import redis
from pydantic import BaseModel

from orchestrator.influx.points import Point, line

STREAM = "{hostbench}:points"
DEAD = "{hostbench}:points:dead"
COUNTS = "{hostbench}:points:counts"

# A day or two of uninterrupted measuring, about 100 MB; the memory of Redis is for jobs.
ENTRIES_MOST = 20_000
LINES_AN_ENTRY = 1_000
DEAD_LETTERS_KEPT = 1_000


class OutboxStatus(BaseModel):
    """How the outbox is, for /healthz. `entries` wait, the oldest since `oldest_s` seconds.
    `dead_letters`: points that InfluxDB refused; `expired`: those that were too old for their
    retention policy; `left_out`: those that found the outbox full or Redis away for too long:
    orchestrator.influx.reindex writes them. `error`: why this orchestrator's last attempt failed,
    None when it did not."""

    entries: int
    oldest_s: float | None
    dead_letters: int
    expired: int
    left_out: int
    error: str | None

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong; entries that have just been handed over are not."""
        return self.error is None and not self.dead_letters and not self.left_out


class Outbox:
    """Takes points and counts those that wait. Threads may share it."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._uncounted = 0
        self._counting = threading.Lock()

    def put(self, points: Iterable[Point]) -> None:
        """Hand points over, in one write. Raise redis.RedisError: then it is unknown whether
        Redis has them, and handing them over again is harmless."""
        entries = list(_entries(points))
        if not entries:
            return
        if self._redis.xlen(STREAM) >= ENTRIES_MOST:
            self.leave_out(sum(entry["lines"].count("\n") + 1 for entry in entries))
            return
        with self._redis.pipeline(transaction=True) as pipeline:
            for entry in entries:
                pipeline.xadd(STREAM, cast(Any, entry))
            pipeline.execute()

    def leave_out(self, points: int) -> None:
        """Count points that are given up; those given up because Redis is away are counted when
        it is back."""
        with self._counting:
            self._uncounted += points
        with contextlib.suppress(redis.RedisError):
            self._count()

    def _count(self) -> None:
        with self._counting:
            if self._uncounted:
                self._redis.hincrby(COUNTS, "left_out", self._uncounted)
                self._uncounted = 0

    def status(self, error: str | None = None) -> OutboxStatus:
        """How it is; `error` is the writer's last. Raise redis.RedisError."""
        self._count()
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.xlen(STREAM)
            pipeline.xrange(STREAM, count=1)
            pipeline.time()
            pipeline.hgetall(COUNTS)
            entries, oldest, (seconds, microseconds), raw = pipeline.execute()
        counts = {text_of(name): int(value) for name, value in raw.items()}
        oldest_s = None
        if oldest:
            added_ms = int(text_of(oldest[0][0]).partition("-")[0])
            oldest_s = max(0.0, seconds + microseconds / 1e6 - added_ms / 1000)
        return OutboxStatus(
            entries=entries,
            oldest_s=oldest_s,
            dead_letters=counts.get("dead", 0),
            expired=counts.get("expired", 0),
            left_out=counts.get("left_out", 0),
            error=error,
        )

    def dead_letters(self, most: int = DEAD_LETTERS_KEPT) -> list[dict[str, Any]]:
        """The last points that InfluxDB refused, newest first: line, retention, reason, time.
        Raise redis.RedisError."""
        found = cast(list[bytes], self._redis.lrange(DEAD, 0, most - 1))
        return [json.loads(letter) for letter in found]

    def forget_dead_letters(self) -> None:
        """Empty the list and its count, once an operator has dealt with it. Raise
        redis.RedisError."""
        with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.delete(DEAD)
            pipeline.hdel(COUNTS, "dead")
            pipeline.execute()

    def forget_dead_letters_before(self, unix_s: float) -> None:
        """Forget those that were refused before then. Raise redis.RedisError."""
        letters = self.dead_letters()
        old = sum(letter["time_unix_s"] < unix_s for letter in letters)
        if old == len(letters):
            self.forget_dead_letters()
        elif old:
            with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.rpop(DEAD, old)
                pipeline.hincrby(COUNTS, "dead", -old)
                pipeline.execute()

    def left_out(self) -> int:
        """How many points were. Raise redis.RedisError."""
        return int(self._redis.hget(COUNTS, "left_out") or 0)

    def made_up_for(self, points: int) -> None:
        """So many of those left out were written in another way. Raise redis.RedisError."""
        self._redis.hincrby(COUNTS, "left_out", -points)


class NoOutbox(Outbox):
    """An outbox for a stack without InfluxDB."""

    def __init__(self) -> None:
        pass

    def put(self, points: Iterable[Point]) -> None:
        """Drop them."""

    def leave_out(self, points: int) -> None:
        """Does not count them."""


def _entries(points: Iterable[Point]) -> Iterator[dict[str, str]]:
    """Entries of the stream: lines of one retention policy each."""
    by_retention: dict[str, list[str]] = {}
    for point in points:
        by_retention.setdefault(point.retention or "", []).append(line(point))
    for retention, lines in by_retention.items():
        for begin in range(0, len(lines), LINES_AN_ENTRY):
            some = lines[begin : begin + LINES_AN_ENTRY]
            yield {"retention": retention, "lines": "\n".join(some)}


def text_of(value: bytes | str) -> str:
    """What Redis answered, whether the client decodes or not."""
    return value.decode() if isinstance(value, bytes) else value
