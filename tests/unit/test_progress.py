"""What people see of a run here, and of a job that they follow through the API: the same lines."""

import io

from pydantic import TypeAdapter

from hostbench.cli.progress import PlainProgress
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
from hostbench.model.jobs import StackState
from hostbench.model.result import Estimate, IdleRecord, IdleWindow, Reason
from orchestrator.run.events import published
from tests.unit.records import RATE_METRIC, bare_trial, done, planned, sampled, session, skipped

EVENT: TypeAdapter[JobEvent] = TypeAdapter(JobEvent)
WINDOW = IdleWindow(
    seconds=1.0,
    busy_ratio=0.5,
    steal_ratio=None,
    busiest_cpu_ratio=None,
    psi_cpu_ratio=None,
    reasons=(Reason(code="busy", text="its CPUs were busy"),),
)
PLAN = PlanEvent(
    cases=[planned("aaaa"), planned("bbbb", label="4 threads")],
    metrics={"cpu.fma": (RATE_METRIC,)},
    kept=[],
    suite=session().suite,
)
IDLE = IdleRecord(
    time_unix_s=1.8e9,
    cases=("aaaa", "bbbb"),
    policy="flag",
    idle=False,
    waited_s=1.0,
    window=WINDOW,
)
RUN: list[JobEvent] = [
    PLAN,
    EstimateEvent(
        estimate=Estimate(
            low_s=1.0,
            high_s=90.0,
            trials_low=3,
            trials_high=5,
            peer_trials_low=0,
            peer_trials_high=0,
            complete=True,
        )
    ),
    WaitingEvent(window=WINDOW),
    GateEvent(idle=IDLE),
    TrialBeginsEvent(case="aaaa", index=0, tool="hostbench"),
    SampleTakenEvent(case="aaaa", sample=sampled(1)[0], index=0, time_unix_s=1.8e9),
    TrialEndedEvent(trial=bare_trial(value=100.0, efficiency=0.5)),
    CaseEndedEvent(record=done("aaaa")),
    TrialBeginsEvent(case="bbbb", index=0, tool="hostbench"),
    TrialEndedEvent(trial=skipped().model_copy(update={"case": "bbbb"})),
    CaseEndedEvent(record=done("bbbb")),
]


def shown(events: list[JobEvent]) -> list[str]:
    text = io.StringIO()
    with PlainProgress(text) as progress:
        for event in events:
            progress.take(event)
    return text.getvalue().splitlines()


def through_the_api(events: list[JobEvent]) -> list[JobEvent]:
    return [EVENT.validate_json(published(event).model_dump_json()) for event in events]


def test_a_run_here_and_one_that_is_followed_look_the_same() -> None:
    lines = shown(RUN)
    assert shown(through_the_api(RUN)) == lines
    assert lines[1:] == [
        "estimate: 3 to 5 trials, 1 s to 1 min 30 s",
        "waiting for an idle host: its CPUs were busy",
        "the host was not idle before the measurement: its CPUs were busy",
        "[1/6] cpu.fma 2 threads #1: 100.0 op/s, 50.0 % of the limit",
        "[1/2 cases] cpu.fma 2 threads: clean",
        "[2/4] cpu.fma 4 threads #1: clean: ",
        "[2/2 cases] cpu.fma 4 threads: clean",
    ]


def test_a_case_whose_beginning_was_missed_has_its_name() -> None:
    """That a trial begins is published live only."""
    late: list[JobEvent] = [
        event for event in RUN if not isinstance(event, TrialBeginsEvent | SampleTakenEvent)
    ]
    assert shown(late) == shown(RUN)


def test_events_before_the_plan_and_of_unknown_cases_are_ignored() -> None:
    unknown: list[JobEvent] = [
        TrialBeginsEvent(case="cccc", index=0, tool="hostbench"),
        SampleTakenEvent(case="cccc", sample=sampled(1)[0]),
        TrialEndedEvent(trial=bare_trial(case="cccc")),
        CaseEndedEvent(record=done("cccc")),
    ]
    assert shown(RUN[1:]) == []
    assert shown([PLAN, *unknown]) == shown([PLAN])


def test_a_job_that_waits_says_why_once() -> None:
    waits = StateEvent(job="j", state=StackState.WAITING, reason=None, time_unix_s=1.8e9)
    runs = waits.model_copy(update={"state": StackState.RUNNING})
    assert shown([waits]) == ["job j waits until its host is idle"]
    by_window = shown([PLAN, WaitingEvent(window=WINDOW), waits])
    assert by_window[1:] == ["waiting for an idle host: its CPUs were busy"]
    assert shown([PLAN, WaitingEvent(window=WINDOW), waits, runs, waits])[-1].startswith("job j")
    queued = waits.model_copy(update={"state": StackState.QUEUED, "reason": "its service is gone"})
    assert shown([queued]) == ["job j is queued again: its service is gone"]
