"""Jobs in Redis: queued, started, ended, and what is stored about each."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import redis
from redis.exceptions import OutOfMemoryError

from hostbench.model.jobs import JobView, QueueMemory, StackState
from orchestrator.queue.connection import Scripts, flat, key
from orchestrator.queue.record import (
    MICROSECONDS,
    VIEWED,
    Fields,
    JobTask,
    NewJob,
    StartedJob,
    queued_view,
    view_of,
    worth_us,
)

LEASE_S = 15.0
# How long a registration lasts: see orchestrator/queue/hosts.py.
ALIVE_S = 45.0
IDEMPOTENCY_S = 86400
QUEUED_MOST = 20_000
ENDED_KEPT_S = 7 * 86400.0
ENDED_MOST = 20_000
FORGET_BATCH = 200
SCAN_BATCH = 500
# Shares of Redis' memory limit (maxmemory). Above the first, the oldest ended jobs are removed;
# above the second, no new job is accepted. The rest is for running jobs and for points.
FORGET_SHARE, REFUSE_SHARE = 0.5, 0.8
# For a Redis without maxmemory.
FORGET_BYTES = 200 << 20

# The reason of a queued job while there is no room for results; /healthz has the figures.
NO_ROOM = "the volume of results is full; free space there (see /healthz), and this job starts"

Lease = Literal["held", "cancel", "gone"]


@dataclass(frozen=True)
class Enqueued:
    """The outcome of a submission.

    known: the same submission was made before as `id`; other: another submission used this
    idempotency key; taken: the id is in use; full: the queue is full. `view`: the job, if it was
    queued.
    """

    outcome: Literal["queued", "known", "other", "taken", "full"]
    id: str
    view: JobView | None = None


@dataclass(frozen=True)
class Changed:
    """The outcome of a cancellation or resumption, and the state before it. stopping: the job's
    orchestrator will end it; ended: there is nothing to cancel; full: the queue is full."""

    outcome: Literal["unknown", "ended", "cancelled", "stopping", "queued", "full", "refused"]
    before: str


@dataclass(frozen=True)
class Reaped:
    """The result of a look at all jobs.

    `ended`: (job, state) of those whose leases are gone; `signs`: all signs of life; `changed`: the
    jobs whose states must be noted, each with a mark of its last change.
    """

    ended: list[tuple[str, StackState]]
    signs: dict[str, str]
    changed: dict[str, str]


class JobStore:
    """All methods raise RedisError when Redis cannot be used."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._run = Scripts(client)

    # ---- from submission to start ----

    def enqueue(self, job: NewJob, idempotency: str | None, body: bytes) -> Enqueued:
        """Accept a job, once for each idempotency key; `body` is that of the request. Raise
        OutOfMemoryError, with the remedy, when Redis is full."""
        outcome, job_id, *place = self._take_up(
            "enqueue",
            job.id,
            _digest(idempotency.encode()) if idempotency is not None else "",
            _digest(body),
            IDEMPOTENCY_S,
            QUEUED_MOST,
            job.queue,
            worth_us(job.spec.priority),
            *flat(job.fields),
        )
        view = queued_view(job, *map(int, place)) if place else None
        return Enqueued(outcome, job_id, view)

    def _take_up(self, name: str, *arguments: str | int) -> Any:
        """Run a script that adds a job. Raise OutOfMemoryError, with the remedy, when Redis is
        full."""
        memory = self.memory()
        if memory.full:
            self.forget()
            memory = self.memory()
        if not memory.full:
            with contextlib.suppress(OutOfMemoryError):
                return self._run(name, *arguments, grows=True)
        raise OutOfMemoryError(memory.refusal)

    def submitted(self, idempotency: str, body: bytes) -> Enqueued | None:
        """Return what was submitted earlier with this key, or None."""
        name = key("idempotency", _digest(idempotency.encode()))
        before, job_id = cast(list[str | None], self._redis.hmget(name, ["body", "id"]))
        if before is None or job_id is None:
            return None
        return Enqueued("known" if before == _digest(body) else "other", job_id)

    def dispatch(self, owner: str, most: int, *, has_room: bool = True) -> list[StartedJob]:
        """Start every job that can start, at most `most`; they then hold their leases. Without room
        for results none starts, and the first job of each queue gets the reason."""
        answer = self._run("dispatch", owner, most, NO_ROOM, int(not has_room))
        return [
            StartedJob(job_id, int(fence), owner, int(waited_us) / MICROSECONDS)
            for job_id, fence, waited_us in answer
        ]

    def queued(self) -> int:
        """Return how many jobs wait in a queue."""
        return self._redis.zcard(key("state", StackState.QUEUED))

    def queued_by_host(self) -> dict[str, int]:
        """Return how many queued jobs want each host; hosts that none wants are missing."""
        queues = sorted(cast(set[str], self._redis.smembers(key("queues"))))
        with self._redis.pipeline(transaction=False) as pipeline:
            for queue in queues:
                pipeline.zcard(key("queue", queue))
            lengths: list[int] = pipeline.execute()
        found: Counter[str] = Counter()
        for queue, length in zip(queues, lengths, strict=True):
            for host in queue.partition("|")[0].split(","):
                found[host] += length
        return dict(found)

    # ---- from start to end, called by the orchestrator that runs the job ----

    def task(self, job_id: str) -> tuple[JobTask, int] | None:
        """Return what a job must measure, and how often it began before; None: it is gone."""
        fields = self._fields([job_id], ("suite", "hosts", "spec", "submitted_us", "sessions"))[0]
        if fields["suite"] is None:
            return None
        return JobTask.read(fields), int(fields["sessions"] or 0)

    def renew(self, job: StartedJob) -> Lease:
        """Renew the job's leases. gone: it no longer holds them; cancel: it must stop."""
        return cast(Lease, self._run("renew", job.id, job.fence, job.owner))

    def record(
        self,
        job: StartedJob,
        *,
        number: int,
        state: StackState | None = None,
        fields: Mapping[str, str] | None = None,
        live: Sequence[str] = (),
        events: Sequence[str] = (),
    ) -> bool:
        """Store state, fields and events in one step. Return False, with nothing written, if the
        job no longer has this fence.

        `live` events are published first and not stored. While Redis is full, all events are
        treated so. `number` counts the calls for this fence: a second call with the same number
        does nothing.
        """
        pairs = flat(dict(fields or {}))
        call = ("record", job.id, job.fence, number, state or "", len(pairs))
        try:
            answer = self._run(*call, len(live), *pairs, *live, *events, grows=True)
        except OutOfMemoryError:
            answer = self._run(*call, len(live) + len(events), *pairs, *live, *events)
        return bool(answer)

    def finish(
        self, job: StartedJob, state: StackState, reason: str | None, fields: Mapping[str, str]
    ) -> bool:
        """End a job and free its hosts. Return False, with nothing changed, if it no longer has
        this fence."""
        answer = self._run("finish", job.id, job.fence, state, reason or "", *flat(dict(fields)))
        return bool(answer)

    def put_back(
        self, job: StartedJob, reason: str, *held: str
    ) -> Literal["queued", "cancelled", "gone"]:
        """Queue a job again in its old place, only before it has measured anything. `held`: a host
        that is held from outside the queue, and by whom."""
        answer = self._run("put_back", job.id, job.fence, reason, *held)
        return cast(Literal["queued", "cancelled", "gone"], answer)

    def publish(self, messages: Iterable[tuple[str, str]]) -> bool:
        """Publish live events, each as (job, event), which are not kept; return whether anybody
        listens."""
        with self._redis.pipeline(transaction=False) as pipeline:
            for job_id, event in messages:
                pipeline.publish(key("live", job_id), f" {event}")
            return any(pipeline.execute())

    # ---- from outside ----

    def cancel(self, job_id: str) -> Changed:
        """Cancel a queued job, or tell its orchestrator to stop it."""
        return Changed(*self._run("cancel", job_id))

    def resume(self, job_id: str, priority: int, archived: Mapping[str, str]) -> Changed:
        """Queue an ended job again. `archived` are its fields, if Redis no longer has them. Raise
        OutOfMemoryError, with the remedy, when Redis is full."""
        fields = flat(dict(archived))
        return Changed(*self._take_up("resume", job_id, worth_us(priority), QUEUED_MOST, *fields))

    # ---- housekeeping: any orchestrator does it ----

    def reap(self, silent: Mapping[str, str]) -> Reaped:
        """End the leases and registrations whose signs of life are `silent`, and the jobs without
        leases: see orchestrator/queue/signs.py."""
        reaped, signs, changed = self._run("reap", *flat(dict(silent)))
        return Reaped(
            [(job_id, StackState(state)) for job_id, state in reaped],
            dict(zip(signs[::2], signs[1::2], strict=True)),
            dict(zip(changed[::2], changed[1::2], strict=True)),
        )

    def noted(self, changed: Mapping[str, str]) -> None:
        """Clear the marks of these jobs, whose states are now noted; `changed` as returned by
        `reap`."""
        self._run("noted", *flat(dict(changed)))

    def forget(self) -> int:
        """Remove jobs that ended long ago, and the oldest ended jobs while Redis uses too much
        memory; return how many."""
        kept_us = int(ENDED_KEPT_S * MICROSECONDS)
        dropped = kept = 0
        while True:
            pressed = int(_is_pressed(self.memory()))
            limits = (kept_us, ENDED_MOST, FORGET_BATCH, pressed)
            gone, seen = cast(list[int], self._run("forget", *limits, kept))
            dropped += gone
            kept += seen - gone
            if seen < FORGET_BATCH:
                return dropped

    def bound_ended(self) -> None:
        """Trim what an older version kept of ended jobs; the present version does so when they
        end."""
        ids = cast(list[str], self._redis.zrange(key("ended"), 0, -1))
        for start in range(0, len(ids), FORGET_BATCH):
            self._run("bound_ended", *ids[start : start + FORGET_BATCH])

    # ---- looking ----

    def memory(self) -> QueueMemory:
        """Return the memory that Redis uses, and the ended jobs that it keeps."""
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.info("memory")
            pipeline.zcard(key("ended"))
            pipeline.zrange(key("ended"), 0, 0, withscores=True)
            info, ended, oldest = pipeline.execute()
        # The value that Redis compares with maxmemory.
        used = info["used_memory"] - info.get("mem_not_counted_for_evict", 0)
        limit = info["maxmemory"] or None
        return QueueMemory(
            used_bytes=used,
            limit_bytes=limit,
            full=limit is not None and used >= REFUSE_SHARE * limit,
            ended_jobs=ended,
            oldest_ended_unix_s=oldest[0][1] / MICROSECONDS if oldest else None,
        )

    def view(self, job_id: str) -> JobView | None:
        """Return the job, or None if Redis does not have it."""
        return next(iter(self.views([job_id])), None)

    def views(self, job_ids: Sequence[str]) -> list[JobView]:
        """Return the jobs that Redis has, in the same order."""
        known = [one for one in self._fields(job_ids, VIEWED) if one["state"] is not None]
        positions = self._positions(known)
        return [view_of(one, positions.get(one["id"] or "")) for one in known]

    def state(self, job_id: str) -> StackState | None:
        """Return the job's state, or None if Redis does not have the job."""
        state = cast(str | None, self._redis.hget(key("job", job_id), "state"))
        return None if state is None else StackState(state)

    def submitted_unix_s(self, job_id: str) -> float | None:
        """Return when the job was submitted, or None if Redis does not have it."""
        score = self._redis.zscore(key("jobs"), job_id)
        return None if score is None else score / MICROSECONDS

    def knows(self, job_ids: Sequence[str]) -> set[str]:
        """Return which of the jobs Redis has."""
        scores = self._redis.zmscore(key("jobs"), list(job_ids))
        return {job_id for job_id, score in zip(job_ids, scores, strict=True) if score is not None}

    def newest(
        self, state: StackState | None, before_unix_s: float | None
    ) -> Iterator[tuple[float, str]]:
        """Yield (time of submission, id) of the jobs in a state, submitted before that time, newest
        first."""
        index = key("state", state) if state else key("jobs")
        most = "+inf" if before_unix_s is None else f"({before_unix_s * MICROSECONDS:.0f}"
        start = 0
        while True:
            batch = cast(
                list[tuple[str, float]],
                self._redis.zrevrangebyscore(
                    index, most, "-inf", start=start, num=SCAN_BATCH, withscores=True
                ),
            )
            for job_id, score in batch:
                yield score / MICROSECONDS, job_id
            if len(batch) < SCAN_BATCH:
                return
            start += SCAN_BATCH

    def hosts_of(self, job_ids: Sequence[str]) -> list[list[str]]:
        """Return the hosts of each job."""
        return [(one["hosts"] or "").split(",") for one in self._fields(job_ids, ("hosts",))]

    def counts(self) -> dict[StackState, int]:
        """Return how many jobs are in each state."""
        with self._redis.pipeline(transaction=False) as pipeline:
            for state in StackState:
                pipeline.zcard(key("state", state))
            return dict(zip(StackState, pipeline.execute(), strict=True))

    def _fields(self, job_ids: Sequence[str], names: Sequence[str]) -> list[Fields]:
        with self._redis.pipeline(transaction=False) as pipeline:
            for job_id in job_ids:
                pipeline.hmget(key("job", job_id), list(names))
            answers: list[Any] = pipeline.execute()
        return [dict(zip(names, values, strict=True)) for values in answers]

    def _positions(self, jobs: Sequence[Fields]) -> dict[str, int]:
        """Return the positions of the queued jobs among those that want one of their hosts, from
        1."""
        waiting = [job for job in jobs if job["state"] == StackState.QUEUED]
        if not waiting:
            return {}
        queues = sorted(cast(set[str], self._redis.smembers(key("queues"))))
        counted: list[str] = []
        with self._redis.pipeline(transaction=False) as pipeline:
            for job in waiting:
                wanted = set((job["hosts"] or "").split(","))
                for queue in queues:
                    if wanted & set(queue.partition("|")[0].split(",")):
                        pipeline.zcount(key("queue", queue), "-inf", f"({job['score']}")
                        counted.append(job["id"] or "")
            counts: list[int] = pipeline.execute()
        positions = {job["id"] or "": 1 for job in waiting}
        for job_id, count in zip(counted, counts, strict=True):
            positions[job_id] += count
        return positions


def _is_pressed(memory: QueueMemory) -> bool:
    limit = memory.limit_bytes
    return memory.used_bytes > (FORGET_BYTES if limit is None else FORGET_SHARE * limit)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
