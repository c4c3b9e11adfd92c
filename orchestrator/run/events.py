"""The events of a run on their way to Redis and to those who follow the job."""

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from redis.exceptions import RedisError

from hostbench.model.job_events import (
    CaseEndedEvent,
    EstimateEvent,
    JobEvent,
    SampleTakenEvent,
    TrialBeginsEvent,
    TrialEndedEvent,
    WaitingEvent,
)
from hostbench.model.jobs import StackState
from hostbench.model.peer import PeerStartEvent
from hostbench.model.result import CaseRecord, Estimate, PlannedCase, Verdict
from hostbench.run.session import Setup
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.keeper import HeldJob

# So many are kept for a Redis that is slow; the oldest are dropped.
PENDING_MOST = 1000
INTERVAL_S = 1.0
# After events that nobody listened to.
UNHEARD_S = 5.0
Publish = Callable[[Sequence[tuple[str, str]]], bool]
RETRY_S = 0.5
# Published, and kept by no stream: a late reader does not need them.
LIVE_ONLY = (SampleTakenEvent, TrialBeginsEvent, WaitingEvent)
Answer = TypeVar("Answer")


class LivePublisher:
    """One thread that publishes at most once a second, and less often while nobody listens: a trial
    may be running."""

    def __init__(self, publish: Publish) -> None:
        """`publish` takes (job, event) each and returns whether anybody listens; after a RedisError
        the events are dropped."""
        self._publish = publish
        self._pending: deque[tuple[str, str]] = deque(maxlen=PENDING_MOST)
        self._using = threading.Lock()
        # Held from taking to having published: what is withdrawn is not on its way any more.
        self._publishing = threading.Lock()
        self._something = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def publish_soon(self, job_id: str, event: str) -> None:
        """Publish an event within a moment, in a thread of its own."""
        with self._using:
            self._pending.append((job_id, event))
        self._something.set()

    def withdraw(self, job_id: str) -> list[str]:
        """Remove and return the pending events of a job, to be recorded with its next one. Waits
        for those that are being published, so it is not for the middle of a trial."""
        with self._publishing, self._using:
            mine = [event for job, event in self._pending if job == job_id]
            others = [one for one in self._pending if one[0] != job_id]
            self._pending.clear()
            self._pending.extend(others)
        return mine

    def close(self) -> None:
        """End the thread; what is pending is dropped."""
        self._closed.set()
        self._something.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._something.wait()
            self._something.clear()
            is_heard = True
            # Whoever watches sees the durable events later.
            with contextlib.suppress(RedisError), self._publishing:
                is_heard = self._publish_pending()
            self._closed.wait(INTERVAL_S if is_heard else UNHEARD_S)

    def _publish_pending(self) -> bool:
        with self._using:
            batch = list(self._pending)
            self._pending.clear()
        return not batch or self._publish(batch)


def retry_while_held(held: HeldJob, call: Callable[[], Answer]) -> Answer:
    """What `call` returns, however long Redis is away. Raise JobStopped when the job may not go
    on meanwhile."""
    while True:
        try:
            return call()
        except RedisError:
            held.wait(RETRY_S)


def _estimate_fields(estimate: Estimate) -> dict[str, str]:
    return {"estimate_low_s": str(estimate.low_s), "estimate_high_s": str(estimate.high_s)}


class EventSink:
    """Writes down what a late reader needs, and publishes the rest; keeps the job's state and
    progress in Redis. Raises JobStopped when the job is no longer its own."""

    def __init__(self, held: HeldJob, store: JobStore, live: LivePublisher) -> None:
        self._held = held
        self._store = store
        self._live = live
        self._state = StackState.WAITING
        self._cases: dict[str, PlannedCase] = {}
        self._current: str | None = None
        self._done = 0
        self._recorded = 0
        self._holder = ""
        self._verdicts: dict[Verdict, int] = {}

    def begin(self, setup: Setup, kept: Mapping[str, Verdict], session: int) -> None:
        """The job is about to measure: from here on it counts as started. `kept`: the cases of
        earlier sessions that count; `session` counts from 1."""
        self._cases = {case.case: case for case in setup.plan.cases}
        self._done = len(kept)
        verdicts = list(kept.values())
        self._verdicts = {verdict: verdicts.count(verdict) for verdict in verdicts}
        estimate = setup.plan.without(kept.keys()).estimate()
        fields = {
            "begun": "1",
            "sessions": str(session),
            "cases": str(len(setup.plan.cases)),
            **_estimate_fields(estimate),
            **self._tally,
        }
        self._record(fields=fields, events=[setup.plan_event(list(kept)).model_dump_json()])

    @property
    def _tally(self) -> dict[str, str]:
        return {"done": str(self._done), "verdicts": json.dumps(self._verdicts)}

    def take(self, event: JobEvent) -> None:
        """See Sink.take."""
        if not isinstance(event, LIVE_ONLY):
            self._record(fields=self._fields(event), events=[published(event).model_dump_json()])
            return
        if isinstance(event, TrialBeginsEvent):
            self._enter_case(self._cases[event.case].title)
        self._live.publish_soon(self._held.job.id, event.model_dump_json())
        if isinstance(event, WaitingEvent):
            self.set_waiting()
        elif isinstance(event, SampleTakenEvent) and self._state is StackState.WAITING:
            self._enter(StackState.RUNNING)

    def set_waiting(self, holder: str = "") -> None:
        """Set the job's state back to waiting while its host is busy; `holder`: the reason, where
        another process has the host's lock."""
        if self._state is StackState.RUNNING:
            self._enter(StackState.WAITING)
        if holder and holder != self._holder:
            self._record(fields={"reason": holder})
            self._holder = holder

    def _enter(self, state: StackState) -> None:
        self._record(state=state)

    def _enter_case(self, title: str) -> None:
        if self._current != title or self._state is not StackState.RUNNING:
            self._current = title
            self._record(state=StackState.RUNNING, fields={"current": title})

    def _fields(self, event: JobEvent) -> dict[str, str]:
        """What an event changes of the job's progress."""
        if isinstance(event, EstimateEvent):
            return _estimate_fields(event.estimate)
        if isinstance(event, CaseEndedEvent):
            return self._count(event.record)
        return {}

    def _count(self, record: CaseRecord) -> dict[str, str]:
        self._done += 1
        self._verdicts[record.verdict] = self._verdicts.get(record.verdict, 0) + 1
        return self._tally

    def _record(
        self,
        state: StackState | None = None,
        fields: Mapping[str, str] | None = None,
        events: Collection[str] = (),
    ) -> None:
        job = self._held.job
        live = self._live.withdraw(job.id)
        self._recorded += 1
        written = retry_while_held(
            self._held,
            lambda: self._store.record(
                job,
                number=self._recorded,
                state=state,
                fields=fields,
                live=live,
                events=list(events),
            ),
        )
        if not written:
            self._held.lose()
            self._held.check()
        if state is not None:
            # A new state has no reason yet.
            self._state, self._holder = state, ""


def published(event: JobEvent) -> JobEvent:
    """The event as the API has it: trials without events of their own, but for the unit of a peer's
    figure, and cases without their figures."""
    if isinstance(event, TrialEndedEvent):
        kept = tuple(one for one in event.trial.events if isinstance(one, PeerStartEvent))
        return TrialEndedEvent(trial=event.trial.model_copy(update={"events": kept}))
    if isinstance(event, CaseEndedEvent):
        return CaseEndedEvent(record=event.record.model_copy(update={"figures": None}))
    return event
