"""Points on their way to InfluxDB: a Redis stream that any orchestrator empties.

An entry leaves the stream only after InfluxDB has taken its points, so an outage of InfluxDB, of an
orchestrator or of both loses none. A point that InfluxDB refuses is kept as rejected; one that is
too old for its retention policy is only counted.
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

# One or two days of uninterrupted measuring, about 100 MB; most of Redis' memory is for jobs.
ENTRIES_MOST = 20_000
LINES_AN_ENTRY = 1_000
DEAD_LETTERS_KEPT = 1_000


class OutboxStatus(BaseModel):
    """The state of the outbox, for /healthz.

    - `entries`: how many wait, the oldest for `oldest_s` seconds.
    - `dead_letters`: points that InfluxDB refused.
    - `expired`: points that were too old for their retention policy.
    - `left_out`: points given up because the outbox was full, or Redis unreachable for too long;
      orchestrator.influx.reindex writes them.
    - `error`: why this orchestrator's last attempt failed; None when it did not.
    """

    entries: int
    oldest_s: float | None
    dead_letters: int
    expired: int
    left_out: int
    error: str | None

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong. Entries that still wait are not a fault."""
        return self.error is None and not self.dead_letters and not self.left_out


class Outbox:
    """Takes points and counts those that wait. Threads may share it."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._uncounted = 0
        self._counting = threading.Lock()

    def put(self, points: Iterable[Point]) -> None:
        """Hand points over, in one write. Raise redis.RedisError: then it is unknown whether Redis
        has them, and handing them over again is harmless."""
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
        """Count points that are given up. While Redis is unreachable, they are counted here and
        added later."""
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
        """Return the outbox's state; `error` is the writer's last one. Raise redis.RedisError."""
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
        """Return the last points that InfluxDB refused, newest first: line, retention, reason,
        time. Raise redis.RedisError."""
        found = cast(list[bytes], self._redis.lrange(DEAD, 0, most - 1))
        return [json.loads(letter) for letter in found]

    def forget_dead_letters(self) -> None:
        """Empty the list and its count, after an operator has dealt with them. Raise
        redis.RedisError."""
        with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.delete(DEAD)
            pipeline.hdel(COUNTS, "dead")
            pipeline.execute()

    def forget_dead_letters_before(self, unix_s: float) -> None:
        """Remove the points that were refused before that time. Raise redis.RedisError."""
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
        """Return how many points were left out. Raise redis.RedisError."""
        return int(self._redis.hget(COUNTS, "left_out") or 0)

    def made_up_for(self, points: int) -> None:
        """Subtract `points` from those left out, because they were written in another way. Raise
        redis.RedisError."""
        self._redis.hincrby(COUNTS, "left_out", -points)


class NoOutbox(Outbox):
    """An outbox for a stack without InfluxDB."""

    def __init__(self) -> None:
        pass

    def put(self, points: Iterable[Point]) -> None:
        """Drop the points."""

    def leave_out(self, points: int) -> None:
        """Do nothing: dropped points are not counted."""


def _entries(points: Iterable[Point]) -> Iterator[dict[str, str]]:
    """Yield entries of the stream, each with lines of one retention policy."""
    by_retention: dict[str, list[str]] = {}
    for point in points:
        by_retention.setdefault(point.retention or "", []).append(line(point))
    for retention, lines in by_retention.items():
        for begin in range(0, len(lines), LINES_AN_ENTRY):
            some = lines[begin : begin + LINES_AN_ENTRY]
            yield {"retention": retention, "lines": "\n".join(some)}


def text_of(value: bytes | str) -> str:
    """Return Redis' answer as text, whether or not the client decodes answers."""
    return value.decode() if isinstance(value, bytes) else value
