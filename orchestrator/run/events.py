"""The events of a run, on their way to Redis and to those who follow the job."""

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

# At most this many are held for a slow Redis; the oldest are dropped.
PENDING_MOST = 1000
INTERVAL_S = 1.0
# The interval while no client listens.
UNHEARD_S = 5.0
Publish = Callable[[Sequence[tuple[str, str]]], bool]
RETRY_S = 0.5
# Published but not stored: a late reader does not need them.
LIVE_ONLY = (SampleTakenEvent, TrialBeginsEvent, WaitingEvent)
Answer = TypeVar("Answer")


class LivePublisher:
    """One thread that publishes at most once a second, and less often while no client listens: a
    trial may be running."""

    def __init__(self, publish: Publish) -> None:
        """`publish` takes pairs of (job, event) and returns whether anybody listens. After a
        RedisError the events are dropped."""
        self._publish = publish
        self._pending: deque[tuple[str, str]] = deque(maxlen=PENDING_MOST)
        self._using = threading.Lock()
        # Held from taking events until they are published, so a withdrawn event cannot still be on
        # its way.
        self._publishing = threading.Lock()
        self._something = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)

    def start(self) -> None:
        """Start to publish."""
        self._thread.start()

    def publish_soon(self, job_id: str, event: str) -> None:
        """Publish an event within a moment, on the publisher's thread."""
        with self._using:
            self._pending.append((job_id, event))
        self._something.set()

    def withdraw(self, job_id: str) -> list[str]:
        """Remove and return the pending events of a job, to be recorded with its next one. This
        waits for events that are being published, so do not call it during a trial."""
        with self._publishing, self._using:
            mine = [event for job, event in self._pending if job == job_id]
            others = [one for one in self._pending if one[0] != job_id]
            self._pending.clear()
            self._pending.extend(others)
        return mine

    def close(self) -> None:
        """End the thread; pending events are dropped."""
        self._closed.set()
        self._something.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._something.wait()
            self._something.clear()
            is_heard = True
            # Clients see the stored events later.
            with contextlib.suppress(RedisError), self._publishing:
                is_heard = self._publish_pending()
            self._closed.wait(INTERVAL_S if is_heard else UNHEARD_S)

    def _publish_pending(self) -> bool:
        with self._using:
            batch = list(self._pending)
            self._pending.clear()
        return not batch or self._publish(batch)


def retry_while_held(held: HeldJob, call: Callable[[], Answer]) -> Answer:
    """Return what `call` returns, however long Redis is unreachable. Raise JobStopped when the job
    may no longer go on."""
    while True:
        try:
            return call()
        except RedisError:
            held.wait(RETRY_S)


def _estimate_fields(estimate: Estimate) -> dict[str, str]:
    return {"estimate_low_s": str(estimate.low_s), "estimate_high_s": str(estimate.high_s)}


class EventSink:
    """Stores the events that a late reader needs, and publishes the rest; keeps the job's state and
    progress in Redis. Raises JobStopped when the job no longer belongs to this orchestrator."""

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
        """Record that the job is about to measure; from now on it counts as started. `kept`: the
        cases of earlier sessions that count; `session` counts from 1."""
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
        """Set the job's state back to waiting while its host is busy. `holder`: the reason, if
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
        """Return what an event changes in the job's progress."""
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
    """Return the event as the API has it: trials without events of their own except a peer's start,
    which has the unit of its figure, and cases without figures."""
    if isinstance(event, TrialEndedEvent):
        kept = tuple(one for one in event.trial.events if isinstance(one, PeerStartEvent))
        return TrialEndedEvent(trial=event.trial.model_copy(update={"events": kept}))
    if isinstance(event, CaseEndedEvent):
        return CaseEndedEvent(record=event.record.model_copy(update={"figures": None}))
    return event
