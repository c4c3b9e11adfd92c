"""A job that people watch: followed once, however many they are.

A browser gets its samples in batches, and a message when to fetch the page again; it makes no
request while a trial runs.
"""

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

import structlog
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError
from redis.exceptions import RedisError

from hostbench.base.units import human, percent
from hostbench.judge.trial import primary_metric
from hostbench.model.job_events import (
    CaseEndedEvent,
    EstimateEvent,
    GateEvent,
    JobEvent,
    PlanEvent,
    SampleTakenEvent,
    StateEvent,
    TrialBeginsEvent,
    TrialEndedEvent,
    WaitingEvent,
)
from hostbench.model.jobs import TERMINAL
from hostbench.model.result import (
    OWN_TOOL,
    Estimate,
    IdleRecord,
    IdleWindow,
    PlannedCase,
    TrialRecord,
    Verdict,
)
from hostbench.model.table import Metric
from hostbench.plan.estimate import Plan
from orchestrator.core import Orchestrator
from orchestrator.queue.connection import key

_EVENT: TypeAdapter[JobEvent] = TypeAdapter(JobEvent)
# Longer ones, such as a plan of thousands of cases, are parsed in a thread.
SHORT_BYTES = 16 << 10
SAMPLES_KEPT = 600
READ_AT_ONCE = 200
# How long a job without watchers is followed: a page without scripts is loaded again and again.
UNWATCHED_S = 30.0
# Without a message for so long, the stream is read anyway: a message may have been lost.
SILENCE_S = 15.0
CATCH_UP_S = 2.0
# A watcher that does not read so many messages is cut off, and connects again.
UNREAD_MOST = 50
CLEAN = "clean_slice_ratio"
BEGINNING = "0-0"
log = structlog.get_logger()

# When (seconds since 1970), the figure, and which share of the time was disturbed.
Sample = tuple[float, float | None, float | None]


class JobState:
    """What is known about a running job from its events."""

    def __init__(self) -> None:
        self.cases: dict[str, PlannedCase] = {}
        self.metrics: Mapping[str, Sequence[Metric]] = {}
        self.kept: tuple[str, ...] = ()
        self.trials: dict[str, list[TrialRecord]] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.estimate: Estimate | None = None
        self.gate: IdleRecord | None = None
        self.window: IdleWindow | None = None
        self.waited_s = 0.0
        self.current: TrialBeginsEvent | None = None
        self.newest: TrialRecord | None = None
        self.samples: deque[Sample] = deque(maxlen=SAMPLES_KEPT)
        self._began_unix_s = 0.0

    @property
    def trials_done(self) -> int:
        """How many of our own trials are over."""
        return sum(trial.tool == OWN_TOOL for trials in self.trials.values() for trial in trials)

    @property
    def trials_least(self) -> int:
        """The least number of trials of the whole job."""
        left = sum(
            max(0, self._least(case) - len(self.own_trials(case.case)))
            for case in self.cases.values()
            if case.case not in self.verdicts and case.case not in self.kept
        )
        return self.trials_done + left

    def _least(self, case: PlannedCase) -> int:
        return 0 if case.skip else case.repeats.min_trials

    def own_trials(self, case: str) -> list[TrialRecord]:
        """Return the trials of a case, without those of peers."""
        return [trial for trial in self.trials.get(case, ()) if trial.tool == OWN_TOOL]

    def primary(self, case: str) -> Metric | None:
        """Return the metric of a case's figure."""
        planned = self.cases.get(case)
        found = None if planned is None else self.metrics.get(planned.workload)
        return None if found is None else primary_metric(found)

    def take(self, event: JobEvent) -> None:
        """Take an event; ignore one about a case that is not in the plan."""
        if isinstance(event, PlanEvent):
            self._plan(event)
        elif isinstance(event, EstimateEvent):
            self.estimate = event.estimate
        elif isinstance(event, WaitingEvent):
            self.window = event.window
        elif isinstance(event, GateEvent):
            self.gate, self.window = event.idle, None
            self.waited_s += event.idle.waited_s
        elif isinstance(event, TrialBeginsEvent):
            self.current, self.window = event, None
            self._began_unix_s = time.time()
        elif isinstance(event, SampleTakenEvent):
            self._sample(event)
        elif isinstance(event, TrialEndedEvent):
            self.trials.setdefault(event.trial.case, []).append(event.trial)
            self.newest = event.trial
        elif isinstance(event, CaseEndedEvent):
            self.verdicts[event.record.case] = event.record.verdict

    def _plan(self, event: PlanEvent) -> None:
        self.cases = {case.case: case for case in event.cases}
        self.metrics, self.kept = event.metrics, tuple(event.kept)
        self.trials, self.verdicts = {}, {}
        plan = Plan(suite=event.suite, cases=tuple(event.cases))
        self.estimate = plan.without(event.kept).estimate()

    def _sample(self, event: SampleTakenEvent) -> None:
        metric = self.primary(event.case)
        if metric is None:
            return
        sample = event.sample
        if self.current is None or self.current.case != event.case:
            # It began before this process followed the job.
            self.current = TrialBeginsEvent(
                case=event.case, index=len(self.own_trials(event.case)), tool=OWN_TOOL
            )
            self._began_unix_s = time.time() - sample.t_s
        clean = sample.metrics.get(CLEAN)
        self.samples.append(
            (
                round(self._began_unix_s + sample.t_s, 3),
                sample.metrics.get(metric.name),
                None if clean is None else round(1 - clean, 4),
            )
        )

    def title(self, case: str) -> str:
        """Return the name of a case."""
        planned = self.cases.get(case)
        return case if planned is None else planned.title

    def trial_text(self, trial: TrialRecord) -> str:
        """Return a trial in short: `cpu.fma avx2 #3: 113.2 Gop/s, 98.1 % of the limit, clean`."""
        metric = self.primary(trial.case)
        unit = trial.peer_start.unit if trial.peer_start else metric.unit if metric else "1"
        tool = "" if trial.tool == OWN_TOOL else f", {trial.tool}"
        text = f"{self.title(trial.case)}{tool} #{trial.index + 1}: "
        if trial.value is None:
            return f"{text}{trial.verdict}"
        text += human(trial.value, unit)
        if trial.efficiency is not None and trial.peer_start is None:
            text += f", {percent(trial.efficiency)} of the limit"
        return f"{text}, {trial.verdict}"


class Feed:
    """One job, followed by a task of its own."""

    def __init__(self, core: Orchestrator, job_id: str) -> None:
        self.state = JobState()
        self.caught_up = asyncio.Event()
        self.used_s = time.monotonic()
        self.over = False
        self._core = core
        self._job = job_id
        self._stream = key("events", job_id)
        self._after = BEGINNING
        self._ended = False
        self._listeners: set[asyncio.Queue[str | None]] = set()
        # What the watchers do not know yet.
        self._news = _News()
        self.task = asyncio.create_task(self._run())

    @property
    def is_used(self) -> bool:
        """Whether there are watchers, or were a moment ago."""
        return bool(self._listeners) or time.monotonic() - self.used_s < UNWATCHED_S

    async def messages(self) -> AsyncIterator[str]:
        """Yield server-sent events until the job is over; first the samples so far."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(UNREAD_MOST)
        self._listeners.add(queue)
        try:
            known = len(self.state.samples) - len(self._news.samples)
            yield self._samples(list(self.state.samples)[: max(0, known)])
            while not self.over:
                try:
                    async with asyncio.timeout(SILENCE_S):
                        message = await queue.get()
                except TimeoutError:
                    yield ": ping\n\n"
                    continue
                if message is None:
                    break
                yield message
            # Otherwise the feed ended, or this watcher was too slow: it connects again.
            if self._ended:
                yield _sent("changed", {"over": True})
        finally:
            self._listeners.discard(queue)
            self.used_s = time.monotonic()

    def _tell(self, message: str) -> None:
        for queue in list(self._listeners):
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                self._listeners.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)

    async def _run(self) -> None:
        try:
            await self._follow()
        except (RedisError, OSError) as error:
            log.info("feed_ended", job=self._job, why=str(error))
        except (ValidationError, ValueError) as error:
            log.warning("feed_ended", job=self._job, why=str(error).splitlines()[0])
        finally:
            self.caught_up.set()
            self.over = True
            for queue in list(self._listeners):
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(None)

    async def _follow(self) -> None:
        async with self._core.redis_async.pubsub() as channel:
            # As in orchestrator/api/events.py: no event is lost between subscribing and reading.
            await channel.subscribe(key("live", self._job))
            await channel.get_message(timeout=SILENCE_S)
            await self._read()
            self.caught_up.set()
            while not self._ended and self.is_used:
                await self._hear(channel)

    async def _hear(self, channel: Any) -> None:
        """Take what is published at once as one batch, and tell the watchers."""
        message = await channel.get_message(timeout=SILENCE_S)
        news, recorded = self._news, message is None
        while message is not None:
            if message["type"] == "message":
                event_id, _, text = str(message["data"]).partition(" ")
                if event_id:
                    recorded = True
                else:
                    news.see(await self._take(text), self.state)
            message = await channel.get_message(timeout=0)
        for event in await self._read() if recorded else ():
            news.see(event, self.state)
        self._news = _News()
        if news.samples:
            self._tell(self._samples(news.samples))
        for text in news.messages(self.state):
            self._tell(text)

    async def _read(self) -> list[JobEvent]:
        """Take the recorded events that are new."""
        last: Any = await cast(Any, self._core.redis_async.xrevrange(self._stream, count=1))
        if not last:
            # The events of a job that ended are kept for some minutes.
            self._ended = await self._is_over()
        if _position(last[0][0] if last else BEGINNING) < _position(self._after):
            # The events of a resumed job start again.
            self._after, self.state = BEGINNING, JobState()
        taken: list[JobEvent] = []
        while True:
            batch: Any = await cast(
                Any,
                self._core.redis_async.xrange(
                    self._stream, min=f"({self._after}", count=READ_AT_ONCE
                ),
            )
            for event_id, fields in batch:
                self._after = event_id
                taken.append(await self._take(fields["event"]))
            if len(batch) < READ_AT_ONCE:
                return taken

    async def _take(self, text: str) -> JobEvent:
        if len(text) > SHORT_BYTES:
            event = await run_in_threadpool(_EVENT.validate_json, text)
        else:
            event = _EVENT.validate_json(text)
        self.state.take(event)
        if isinstance(event, StateEvent):
            self._ended = event.state in TERMINAL
        return event

    async def _is_over(self) -> bool:
        state = await cast(Any, self._core.redis_async.hget(key("job", self._job), "state"))
        return state is None or state in TERMINAL

    def _samples(self, samples: Sequence[Sample]) -> str:
        current = self.state.current
        metric = None if current is None else self.state.primary(current.case)
        return _sent(
            "samples",
            {
                "title": "" if current is None else self.state.title(current.case),
                "trial": None if current is None else current.index + 1,
                "tool": None if current is None else current.tool,
                "unit": "1" if metric is None else metric.unit,
                "points": samples,
            },
        )


class _News:
    """What a batch of events means for those who watch."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._trial: TrialRecord | None = None
        self._soon = False
        self._later = False

    def see(self, event: JobEvent, state: JobState) -> None:
        """Note an event that `state` has taken."""
        if isinstance(event, SampleTakenEvent):
            self.samples += list(state.samples)[-1:]
        elif isinstance(event, TrialEndedEvent):
            self._trial = event.trial
        elif isinstance(event, StateEvent | PlanEvent | WaitingEvent):
            self._soon = True
        elif not isinstance(event, TrialBeginsEvent):
            self._later = True

    def messages(self, state: JobState) -> Iterator[str]:
        """Yield what to tell: the newest trial, and whether the page should be fetched anew, in a
        moment (`soon`) or when it is time to."""
        if self._trial is not None:
            yield _sent(
                "trial",
                {
                    "text": state.trial_text(self._trial),
                    "done": state.trials_done,
                    "least": state.trials_least,
                },
            )
        if self._soon or self._later:
            yield _sent("changed", {"soon": self._soon})


class Feeds:
    """The jobs that people watch here."""

    def __init__(self, core: Orchestrator) -> None:
        self._core = core
        self._feeds: dict[str, Feed] = {}

    async def of(self, job_id: str) -> Feed:
        """Return the feed of a job, which has read what is recorded unless Redis is slow."""
        self._feeds = {
            one: feed for one, feed in self._feeds.items() if not feed.over or feed.is_used
        }
        feed = self._feeds.get(job_id)
        if feed is None or feed.over:
            feed = self._feeds[job_id] = Feed(self._core, job_id)
        feed.used_s = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                await feed.caught_up.wait()
        return feed


def _position(event_id: str) -> tuple[int, int]:
    milliseconds, _, number = event_id.partition("-")
    return int(milliseconds), int(number)


def _sent(event: str, content: Mapping[str, Any]) -> str:
    return f"event: {event}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n"
