"""What a run tells its sinks, as events of the API."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from redis.exceptions import RedisError

from hostbench.measuring import Setup
from hostbench.models.jobs import (
    CaseEndedEvent,
    EstimateEvent,
    GateEvent,
    PlanEvent,
    SampleTakenEvent,
    StackState,
    TrialBeginsEvent,
    TrialEndedEvent,
    WaitingEvent,
)
from hostbench.models.peer import PeerStartEvent
from hostbench.models.result import CaseRecord, IdleRecord, TrialRecord, Verdict
from hostbench.notices import GateWaits, Notice, SampleTaken, Timed, TrialBegins
from hostbench.plan import Estimate
from orchestrator.keeper import HeldJob
from orchestrator.live import LivePublisher
from orchestrator.store.jobs import JobStore

RETRY_S = 0.5

Answer = TypeVar("Answer")


def insist(held: HeldJob, call: Callable[[], Answer]) -> Answer:
    """What `call` returns, however long Redis is away. Raises JobStopped when the job may not go
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
        self._current: str | None = None
        self._done = 0
        self._recorded = 0
        self._verdicts: dict[Verdict, int] = {}

    def begin(self, setup: Setup, kept: Mapping[str, Verdict], session: int) -> None:
        """The job is about to measure: from here on it counts as started. `kept`: the cases of
        earlier sessions that count; `session` counts from 1."""
        self._done = len(kept)
        verdicts = list(kept.values())
        self._verdicts = {verdict: verdicts.count(verdict) for verdict in verdicts}
        estimate = setup.plan.without(kept.keys()).estimate()
        plan = PlanEvent(
            cases=list(setup.plan.cases),
            metrics=setup.metrics,
            kept=list(kept),
            suite=setup.plan.suite,
        )
        fields = {
            "begun": "1",
            "sessions": str(session),
            "cases": str(len(setup.plan.cases)),
            **_estimate_fields(estimate),
            **self._tally,
        }
        self._record(fields=fields, events=[plan.model_dump_json()])

    @property
    def _tally(self) -> dict[str, str]:
        return {"done": str(self._done), "verdicts": json.dumps(self._verdicts)}

    def take(self, notice: Notice) -> None:
        """See Sink.take."""
        if isinstance(notice, SampleTaken):
            self._say(SampleTakenEvent(case=notice.case.case, sample=notice.sample))
            if self._state is StackState.WAITING:
                self._enter(StackState.RUNNING)
        elif isinstance(notice, Timed):
            event = EstimateEvent(estimate=notice.estimate)
            fields = _estimate_fields(notice.estimate)
            self._record(fields=fields, events=[event.model_dump_json()])
        elif isinstance(notice, GateWaits):
            self._say(WaitingEvent(window=notice.window))
            self.waits()
        elif isinstance(notice, IdleRecord):
            self._record(events=[GateEvent(idle=notice).model_dump_json()])
        elif isinstance(notice, TrialBegins):
            self._begin_trial(notice)
        elif isinstance(notice, TrialRecord):
            self._record(events=[_trial_event(notice).model_dump_json()])
        elif isinstance(notice, CaseRecord):
            self._end_case(notice)

    def waits(self) -> None:
        """The host is busy with something else."""
        if self._state is StackState.RUNNING:
            self._enter(StackState.WAITING)

    def _enter(self, state: StackState) -> None:
        self._record(state=state)

    def _begin_trial(self, notice: TrialBegins) -> None:
        case = notice.case
        if self._current != case.title or self._state is not StackState.RUNNING:
            self._current = case.title
            self._record(state=StackState.RUNNING, fields={"current": case.title})
        self._say(TrialBeginsEvent(case=case.case, index=notice.index, tool=notice.tool))

    def _end_case(self, record: CaseRecord) -> None:
        self._done += 1
        self._verdicts[record.verdict] = self._verdicts.get(record.verdict, 0) + 1
        event = CaseEndedEvent(record=record)
        self._record(fields=self._tally, events=[event.model_dump_json()])

    def _say(self, event: SampleTakenEvent | WaitingEvent | TrialBeginsEvent) -> None:
        self._live.say(self._held.job.id, event.model_dump_json())

    def _record(
        self,
        state: StackState | None = None,
        fields: Mapping[str, str] | None = None,
        events: Collection[str] = (),
    ) -> None:
        job = self._held.job
        live = self._live.withdraw(job.id)
        self._recorded += 1
        written = insist(
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
            self._state = state


def _trial_event(record: TrialRecord) -> TrialEndedEvent:
    """Without the trial's own events, but for the unit of a peer's figure."""
    kept = tuple(event for event in record.events if isinstance(event, PeerStartEvent))
    return TrialEndedEvent(trial=record.model_copy(update={"events": kept}))
