"""Turns the events of a running job into points and hands them to the outbox."""

import time
from collections.abc import Callable, Iterable

import redis
import structlog

from hostbench.model.job_events import (
    CaseEndedEvent,
    GateEvent,
    JobEvent,
    SampleTakenEvent,
    TrialEndedEvent,
)
from hostbench.model.registry import find_subsystem
from hostbench.model.result import (
    CaseRecord,
    PlannedCase,
    ResultDocument,
    SessionRecord,
    TrialRecord,
)
from hostbench.results.document import Progress, case_result
from orchestrator.influx.outbox import Outbox
from orchestrator.influx.points import (
    CaseTags,
    JobContext,
    Point,
    case_points,
    document_points,
    sample_points,
    trial_points,
)

HAND_OVER_S = 10.0
RETRY_S = 0.5
# The most points held for a job while Redis is unreachable for hours; orchestrator.influx.reindex
# writes the others.
HELD_MOST = 200_000

log = structlog.get_logger(__name__)


class PointSink:
    """A hostbench.model.job_events.Sink for one session of a job. When Redis is unreachable or
    full, the job goes on: its points are held and handed over with the next ones."""

    def __init__(
        self, session: SessionRecord, outbox: Outbox, hand_over_s: float = HAND_OVER_S
    ) -> None:
        """`hand_over_s`: during a trial, samples are collected for at least this long before they
        are handed over."""
        self._outbox = outbox
        self._job = JobContext.of_session(session)
        self._cases = {case.case: case for case in session.cases}
        self._progress = Progress(session, session.time_unix_s)
        self._held: list[Point] = []
        self._hand_over_s = hand_over_s
        self._handed_over_s = time.monotonic()
        self._refused = False

    def take(self, event: JobEvent) -> None:
        """See hostbench.model.job_events.Sink.take."""
        if isinstance(event, SampleTakenEvent):
            self._sample(event)
        elif isinstance(event, TrialEndedEvent):
            self._trial(event.trial)
        elif isinstance(event, CaseEndedEvent):
            self._case(event.record)
        elif isinstance(event, GateEvent):
            self._progress.take(event.idle)

    def repeat(self, document: ResultDocument) -> None:
        """Hand over what earlier sessions measured: they may have ended before they could. Points
        that InfluxDB already has change nothing."""
        for point in document_points(document):
            self._hold([point])
        self._hand_over()

    def add(self, points: Iterable[Point]) -> None:
        """Hand over points that no event makes."""
        self._hold(list(points))
        self._hand_over()

    def close(self, may_wait: Callable[[], bool] = lambda: False) -> None:
        """Hand over what is left; call it however the job ends.

        While Redis is unreachable, it retries as long as `may_wait` returns True. It does not wait
        for a full Redis, which may stay full for days.
        """
        self._hand_over()
        while self._held and not self._refused and may_wait():
            time.sleep(RETRY_S)
            self._hand_over()
        self._leave_out(len(self._held))
        self._held = []

    def _sample(self, event: SampleTakenEvent) -> None:
        case = self._cases[event.case]
        tags = _tags(case)
        self._hold(sample_points(self._job, tags, event.index, event.time_unix_s, event.sample))
        due = time.monotonic() - self._handed_over_s >= self._hand_over_s
        # Redis writes every entry to disk.
        if due and not find_subsystem(case.subsystem).is_quiet:
            self._hand_over()

    def _trial(self, trial: TrialRecord) -> None:
        self._progress.take(trial)
        tags = _tags(self._cases[trial.case])
        self._hold(trial_points(self._job, tags, trial))
        self._hand_over()

    def _case(self, record: CaseRecord) -> None:
        self._progress.take(record)
        self._hold(case_points(self._job, case_result(self._progress, self._cases[record.case])))
        self._hand_over()
        # Drop the trials, so that a job of ten thousand cases need not keep them all.
        self._progress.trials.pop(record.case, None)
        self._progress.peer_trials.pop(record.case, None)

    def _hold(self, points: list[Point]) -> None:
        room = HELD_MOST - len(self._held)
        self._leave_out(max(0, len(points) - room))
        self._held += points[:room]

    def _leave_out(self, count: int) -> None:
        if count:
            log.warning("points left out", count=count, job=self._job.job)
            self._outbox.leave_out(count)

    def _hand_over(self) -> None:
        self._handed_over_s = time.monotonic()
        try:
            self._outbox.put(self._held)
        except redis.RedisError as error:
            self._refused = isinstance(error, redis.exceptions.OutOfMemoryError)
            log.warning("points held", count=len(self._held), reason=str(error))
            return
        self._held = []


def _tags(case: PlannedCase) -> CaseTags:
    """Return the case's tags, equal to those from the document."""
    return CaseTags(case.case, case.workload, case.label)
