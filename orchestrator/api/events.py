"""/jobs/{id}/events: the events of a job, as server-sent events."""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, cast

import redis.asyncio
from fastapi import APIRouter, Depends, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from redis.exceptions import RedisError
from starlette.concurrency import run_in_threadpool

from hostbench.model.job_events import StateEvent
from hostbench.model.jobs import TERMINAL, JobView, StackState
from hostbench.web.problem import Problem, problem_responses
from orchestrator.api.common import Core, Job
from orchestrator.core import Orchestrator
from orchestrator.queue.connection import key

REPLAY_BATCH = 200
# After this long without a message, read the stream anyway: a message may have been lost.
SILENCE_S = 15.0
WATCHERS_MOST = 100
RETRY_MS = 2000
_EVENT_ID = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
# The beginning of an event that hostbench wrote, not a script of Redis.
_NAMED = re.compile(r'\{"event":"(\w+)"', re.ASCII)
BEGINNING = "0-0"
_EXAMPLE = """\
event: state
id: 1763683201543-0
data: {"event":"state","job":"20261120T174501Z-quick-3f2a","state":"waiting","reason":null,…}

event: sample
data: {"event":"sample","case":"f3a97b2c01de","sample":{"event":"sample","t_s":1.0,…}}

: ping

event: state
id: 1763683263002-0
data: {"event":"state","job":"20261120T174501Z-quick-3f2a","state":"succeeded","reason":null,…}
"""

router = APIRouter(tags=["jobs"])


class Watchers:
    """Counts the clients that watch jobs."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> AsyncIterator[None]:
        """Count one more client while its answer lasts, as a dependency. Raise Problem if there are
        too many."""
        if self.count >= WATCHERS_MOST:
            raise Problem(
                429,
                "too_many_watchers",
                f"{WATCHERS_MOST} watch already; ask GET /jobs/{{id}} instead",
            )
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


@router.get(
    "/jobs/{job_id}/events",
    summary="Follow a job live",
    description=(
        "Events with an id are stored with the job: a client that reconnects with Last-Event-ID "
        "gets those that it missed. Events without an id are live only. The stream ends after a "
        "terminal state. Ten minutes later only that state is kept, with the path of the result."
    ),
    response_class=EventSourceResponse,
    dependencies=[Depends(Watchers())],
    responses={
        200: {"content": {"text/event-stream": {"example": _EXAMPLE}}},
        **problem_responses([401, 403, 404, 422, 429, 503]),
    },
)
async def events(
    job: Job,
    core: Core,
    last_event_id: Annotated[
        str | None, Header(max_length=64, description="The id of the last event received.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """GET /jobs/{id}/events."""
    after = BEGINNING
    if last_event_id is not None and _EVENT_ID.fullmatch(last_event_id):
        after = last_event_id
    try:
        async for event in _Follower(core, job.id, after).events():
            yield event
    except RedisError:
        return  # the client connects again, with the id of its last event
    if (final := await _without_events(core, job.id)) is not None:
        has_result = await run_in_threadpool(core.archive.has, job.id)
        yield _final(final, f"/jobs/{job.id}/result" if has_result else None)


async def _without_events(core: Orchestrator, job_id: str) -> JobView | None:
    """Return a job that has ended and whose events are no longer kept, in its present state; else
    None."""
    with contextlib.suppress(RedisError, Problem):
        if not await core.redis_async.exists(key("events", job_id)):
            view = await run_in_threadpool(core.catalogue.view, job_id)
            return view if view.state in TERMINAL else None
    return None


def _final(job: JobView, result: str | None) -> ServerSentEvent:
    event = StateEvent(
        job=job.id,
        state=job.state,
        reason=job.reason,
        time_unix_s=job.ended_unix_s or job.submitted_unix_s,
        result=result,
    )
    return ServerSentEvent(raw_data=event.model_dump_json(), event="state", retry=RETRY_MS)


class _Follower:
    """One watcher of one job."""

    def __init__(self, core: Orchestrator, job_id: str, after: str) -> None:
        self._redis = core.redis_async
        self._job = job_id
        self._stream = key("events", job_id)
        self._after = after

    async def events(self) -> AsyncIterator[ServerSentEvent]:
        """Yield the events after `after` until the job has ended. Raise RedisError."""
        async with self._redis.pubsub() as channel:
            # No event is lost between subscribing and reading: the stream is read on another
            # connection, after Redis confirmed the subscription.
            await channel.subscribe(key("live", self._job))
            await channel.get_message(timeout=SILENCE_S)
            await self._begin_where_it_is()
            async for event in self._recorded():
                yield event
            while not await self._is_over():
                async for event in self._heard(channel):
                    yield event

    async def _begin_where_it_is(self) -> None:
        """Start from the beginning if the client's id is beyond the end: it is from an earlier
        stream that is gone."""
        if await self._last() < _position(self._after):
            self._after = BEGINNING

    async def _last(self) -> tuple[int, int]:
        """Return the position of the stream's end."""
        last: list[Any] = cast(Any, await self._redis.xrevrange(self._stream, count=1))
        return _position(last[0][0] if last else BEGINNING)

    async def _heard(self, channel: redis.asyncio.client.PubSub) -> AsyncIterator[ServerSentEvent]:
        """Yield what is published, until the state changes or nothing is published any more."""
        while (message := await channel.get_message(timeout=SILENCE_S)) is not None:
            if message["type"] != "message":
                continue
            event_id, _, text = str(message["data"]).partition(" ")
            if not event_id:
                yield _sent(None, text)
            elif _position(event_id) > _position(self._after):
                self._after = event_id
                event = _sent(event_id, text)
                yield event
                if event.event == "state":
                    return
        async for event in self._recorded():
            yield event

    async def _recorded(self) -> AsyncIterator[ServerSentEvent]:
        """Yield what the stream holds."""
        while True:
            batch: list[tuple[str, dict[str, str]]] = cast(
                Any,
                await self._redis.xrange(self._stream, min=f"({self._after}", count=REPLAY_BATCH),
            )
            for event_id, fields in batch:
                self._after = event_id
                yield _sent(event_id, fields["event"])
            if len(batch) < REPLAY_BATCH:
                return

    async def _is_over(self) -> bool:
        """Whether the job has ended and everything was sent."""
        state = cast(str | None, await self._redis.hget(key("job", self._job), "state"))
        if state is not None and StackState(state) not in TERMINAL:
            return False
        return await self._last() <= _position(self._after)


def _position(event_id: str) -> tuple[int, int]:
    milliseconds, _, number = event_id.partition("-")
    return int(milliseconds), int(number)


def _sent(event_id: str | None, text: str) -> ServerSentEvent:
    # A plan of ten thousand cases has megabytes, so it is not parsed on the event loop.
    named = _NAMED.match(text)
    name = named[1] if named else json.loads(text)["event"]
    return ServerSentEvent(raw_data=text, event=name, id=event_id, retry=RETRY_MS)
