"""Empties the outbox into InfluxDB, on a thread of its own; every orchestrator runs one."""

import json
import random
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import redis
import structlog

from hostbench.base.errors import HostbenchError
from orchestrator.influx.client import (
    InfluxClient,
    InfluxError,
    Rejected,
    RejectedLine,
    ensure_database,
)
from orchestrator.influx.outbox import COUNTS, DEAD, DEAD_LETTERS_KEPT, STREAM, text_of

GROUP = "writers"
ENTRIES_A_WRITE = 64
BLOCK_S = 5.0
BACK_OFF_S = 1.0
BACK_OFF_MOST_S = 30.0
STOP_S = 1.0
# If a slow writer is taken for dead, its points are written twice, which changes nothing.
ABANDONED_S = 20.0
CLAIM_EVERY_S = 10.0
# A writer's name is removed when no entry waits for it and it has read none for this many times the
# claim interval.
FORGOTTEN_AFTER = 10

log = structlog.get_logger(__name__)

# A full Redis refuses to create a group or to append to a list, unless a script with this flag does
# it. Without these scripts no point would be written, and Redis would stay full.
_CREATE_GROUP = """#!lua flags=allow-oom
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
if made.err and not string.find(made.err, 'BUSYGROUP') then return redis.error_reply(made.err) end
"""
# KEYS: stream, rejected points, counts. ARGV: group, how many rejected points to keep, how many
# points were too old, the number of ids, the ids, the rejected points.
_DONE = """#!lua flags=allow-oom
local last = 4 + tonumber(ARGV[4])
redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, 5, last))
redis.call('XDEL', KEYS[1], unpack(ARGV, 5, last))
if tonumber(ARGV[3]) > 0 then redis.call('HINCRBY', KEYS[3], 'expired', ARGV[3]) end
if #ARGV > last then
  for i = last + 1, #ARGV do redis.call('LPUSH', KEYS[2], ARGV[i]) end
  redis.call('LTRIM', KEYS[2], 0, ARGV[2] - 1)
  redis.call('HINCRBY', KEYS[3], 'dead', #ARGV - last)
end
"""
# Check and remove in one step: a writer that woke up in between would lose its entries.
_REMOVE_GONE_WRITERS = """
for _, writer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #writer, 2 do consumer[writer[i]] = writer[i + 1] end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) and consumer.name ~= ARGV[3] then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
  end
end
"""


@dataclass(frozen=True)
class Entry:
    """An entry of the stream: lines of one retention policy."""

    id: str
    retention: str | None
    lines: tuple[str, ...]


class OutboxWriter:
    """Writes the entries of the outbox for as long as it runs. It starts without Redis or InfluxDB,
    and continues when they are back."""

    def __init__(
        self, client: redis.Redis, influx: InfluxClient, abandoned_s: float = ABANDONED_S
    ) -> None:
        """Only this writer's thread uses `client`. `abandoned_s`: how long another writer may show
        no sign of life before its entries are taken over."""
        self._redis = client
        self._influx = influx
        self._abandoned_ms = int(abandoned_s * 1000)
        self._claim_every_s = min(CLAIM_EVERY_S, abandoned_s)
        self._claimed_s = self._forgot_s = float("-inf")
        self._name = uuid.uuid4().hex
        self._ready = False
        self._may_owe = True
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox-writer", daemon=True)
        self._error: str | None = None

    @property
    def error(self) -> str | None:
        """Why the last attempt failed; None when it did not."""
        if self._thread.ident is not None and not self._thread.is_alive():
            return "the writer has ended; the log says why"
        return self._error

    def start(self) -> None:
        """Start to write."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, or leave it behind if it waits for Redis or InfluxDB. The next writer
        writes what is left."""
        self._stopping.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        wait_s = BACK_OFF_S
        while not self._stopping.is_set():
            error = self._attempt()
            if error is None:
                self._error, wait_s = None, BACK_OFF_S
                continue
            self._may_owe = True
            if error != self._error:
                log.warning("points wait", reason=error)
            self._error = error
            # A random part, so that several orchestrators do not return at the same moment.
            self._stopping.wait(wait_s * random.uniform(0.8, 1.0))  # noqa: S311
            wait_s = min(2 * wait_s, BACK_OFF_MOST_S)

    def _attempt(self) -> str | None:
        """Write what there is, or wait a while for entries; return why it failed, or None."""
        try:
            self._prepare()
            self._claim()
            entries = self._owed() or self._read(">")
            if entries and not self._stopping.is_set():
                self._write(entries)
        except redis.ResponseError as error:
            # Redis was wiped, so the group is gone.
            self._ready = False
            return f"Redis: {error}"
        except redis.RedisError as error:
            return f"Redis does not answer: {error}"
        except HostbenchError as error:
            return error.message
        return None

    def _prepare(self) -> None:
        if self._ready:
            return
        self._redis.eval(_CREATE_GROUP, 1, STREAM, GROUP)
        ensure_database(self._influx)
        self._ready = True

    def _claim(self) -> None:
        """Take over the entries of a dead writer; our next read finds them."""
        if time.monotonic() - self._claimed_s < self._claim_every_s:
            return
        self._claimed_s = time.monotonic()
        claimed = self._redis.xautoclaim(
            STREAM, GROUP, self._name, self._abandoned_ms, count=ENTRIES_A_WRITE, justid=True
        )
        self._may_owe |= bool(claimed)
        if self._claimed_s - self._forgot_s < FORGOTTEN_AFTER * self._claim_every_s:
            return
        self._forgot_s = self._claimed_s
        gone_ms = FORGOTTEN_AFTER * self._abandoned_ms
        self._redis.eval(_REMOVE_GONE_WRITERS, 1, STREAM, GROUP, gone_ms, self._name)

    def _owed(self) -> list[Entry]:
        """Return entries that were given to this writer earlier and are not written: after a failed
        attempt, or taken over from a dead writer.

        Usually there are none, and then Redis is not called: a trial may be running.
        """
        entries = self._read("0") if self._may_owe else []
        self._may_owe = bool(entries)
        return entries

    def _read(self, since: str) -> list[Entry]:
        """Return entries given to this writer earlier (`0`), or new ones (`>`)."""
        answer = cast(
            Any,
            self._redis.xreadgroup(
                GROUP,
                self._name,
                {STREAM: since},
                count=ENTRIES_A_WRITE,
                block=self._block_ms() if since == ">" else None,
            ),
        )
        return [_entry(*entry) for _, entries in answer or () for entry in entries]

    def _block_ms(self) -> int:
        """Return how long to block, well below the client's own time limit, which is five seconds
        by default."""
        patience_s = self._redis.get_connection_kwargs().get("socket_timeout") or BLOCK_S
        return int(1000 * min(BLOCK_S, patience_s / 2))

    def _write(self, entries: Sequence[Entry]) -> None:
        """Write the entries, in one write for each retention policy. If InfluxDB refuses some
        points, write entry by entry and record the refused points."""
        by_retention: dict[str | None, list[Entry]] = {}
        for entry in entries:
            by_retention.setdefault(entry.retention, []).append(entry)
        for retention, some in by_retention.items():
            lines = [line for entry in some for line in entry.lines]
            try:
                if lines:
                    self._influx.write(lines, retention)
                self._done(some, [])
            except Rejected:
                for entry in some:
                    self._done([entry], self._influx.write_each(entry.lines, retention))
            except InfluxError:
                # The group or the database may have to be created again.
                self._ready = False
                raise

    def _done(self, entries: Sequence[Entry], rejected: Sequence[RejectedLine]) -> None:
        """Remove entries from the stream and record what InfluxDB refused, in one atomic step."""
        ids = [entry.id for entry in entries]
        bad = [one for one in rejected if not one.expired]
        letters = [_letter(one, entries[0].retention) for one in bad]
        keys, counts = (STREAM, DEAD, COUNTS), (len(rejected) - len(bad), len(ids))
        self._redis.eval(_DONE, len(keys), *keys, GROUP, DEAD_LETTERS_KEPT, *counts, *ids, *letters)
        if bad:
            log.error("points rejected", count=len(bad), reason=bad[0].reason)


def _entry(entry_id: bytes | str, fields: Mapping[bytes | str, bytes | str] | None) -> Entry:
    """Return an entry as Redis delivers it; of a deleted entry only the id is left."""
    values = {text_of(name): text_of(value) for name, value in (fields or {}).items()}
    lines = values.get("lines")
    return Entry(
        text_of(entry_id),
        values.get("retention") or None,
        tuple(lines.split("\n")) if lines else (),
    )


def _letter(rejected: RejectedLine, retention: str | None) -> str:
    return json.dumps(
        {
            "line": rejected.line,
            "retention": retention,
            "reason": rejected.reason,
            "time_unix_s": time.time(),
        }
    )
