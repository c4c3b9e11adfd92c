"""A job's events as what the progress of `hostbench run` understands."""

import time

from hostbench.models.jobs import (
    CaseEndedEvent,
    EstimateEvent,
    GateEvent,
    JobEvent,
    PlanEvent,
    SampleTakenEvent,
    StackState,
    StateEvent,
    TrialBeginsEvent,
    TrialEndedEvent,
    WaitingEvent,
)
from hostbench.models.result import OWN_TOOL, PlannedCase
from hostbench.notices import GateWaits, Notice, SampleTaken, Timed, TrialBegins
from hostbench.plan import Plan
from hostbench.progress import PlainProgress


class Follower:
    """Tells a progress what the events of one job say."""

    def __init__(self, progress: PlainProgress) -> None:
        self._progress = progress
        self._cases: dict[str, PlannedCase] = {}
        self._current: str | None = None
        self._index = 0
        self._heard_unix_s = 0.0
        self._began_unix_s: float | None = None
        self._said_why_it_waits = False

    def take(self, event: JobEvent) -> None:
        """One event; those about cases count only once their plan is known."""
        if isinstance(event, StateEvent):
            self._state(event)
        elif isinstance(event, PlanEvent):
            self._plan(event)
        elif self._cases and (notice := self._notice(event)) is not None:
            self._progress.take(notice)

    def _state(self, event: StateEvent) -> None:
        if event.state is StackState.WAITING:
            # What the idle gate saw says more, and is shown in place.
            if not self._said_why_it_waits:
                self._progress.say(f"job {event.job} waits{_why(event)}")
        elif event.state is StackState.QUEUED and event.reason:
            self._progress.say(f"job {event.job} is queued again: {event.reason}")
        elif event.state is StackState.RUNNING:
            self._said_why_it_waits = False
            self._began_unix_s = self._began_unix_s or event.time_unix_s

    def _plan(self, event: PlanEvent) -> None:
        self._cases = {case.case: case for case in event.cases}
        plan = Plan(suite=event.suite, cases=tuple(event.cases))
        self._progress.planned(plan, event.metrics, event.kept)
        if self._began_unix_s is not None:
            self._progress.began(max(0.0, time.time() - self._began_unix_s))

    def _notice(self, event: JobEvent) -> Notice | None:
        """The same for the progress; None for a case that is not in the plan."""
        case = self._cases.get(_case(event))
        if isinstance(event, WaitingEvent):
            self._said_why_it_waits = True
            return GateWaits(event.window)
        if isinstance(event, GateEvent):
            return event.idle
        if isinstance(event, EstimateEvent):
            return Timed(event.estimate)
        if case is None:
            return None
        if isinstance(event, TrialBeginsEvent):
            return self._begins(case, event.index, event.tool)
        if isinstance(event, SampleTakenEvent):
            return SampleTaken(case, event.sample, self._index, self._heard_unix_s, start=None)
        if isinstance(event, TrialEndedEvent):
            self._catch_up(case, event.trial.index, event.trial.tool)
            return event.trial
        if isinstance(event, CaseEndedEvent):
            self._catch_up(case, 0, OWN_TOOL)
            return event.record
        return None

    def _begins(self, case: PlannedCase, index: int, tool: str) -> TrialBegins:
        self._current, self._index, self._heard_unix_s = case.case, index, time.time()
        return TrialBegins(case, index, tool)

    def _catch_up(self, case: PlannedCase, index: int, tool: str) -> None:
        """Says which case is measured where nobody listened when its trial began: that a trial
        begins is told live only."""
        if case.case != self._current:
            self._progress.take(self._begins(case, index, tool))


def _why(event: StateEvent) -> str:
    return f": {event.reason}" if event.reason else " until its host is idle"


def _case(event: JobEvent) -> str:
    """The hash of the case an event is about, or nothing."""
    if isinstance(event, TrialBeginsEvent | SampleTakenEvent):
        return event.case
    if isinstance(event, TrialEndedEvent):
        return event.trial.case
    return event.record.case if isinstance(event, CaseEndedEvent) else ""
