"""Which trials are requested, one after another; the transport only writes it down."""

import json
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host.idle import LocalWatch
from hostbench.model.events import ParamValue
from hostbench.model.job_events import (
    CaseEndedEvent,
    JobEvent,
    SampleTakenEvent,
    TrialEndedEvent,
)
from hostbench.model.peer import TrialEvent
from hostbench.model.result import RECORD, CaseRecord, PlannedCase, StopReason, TrialRecord, Verdict
from hostbench.model.service import IdleAnswer
from hostbench.model.suite import IdleRules, Repeats, Suite, SuiteCase
from hostbench.model.table import Metric
from hostbench.model.trial import Trial, TrialFailed
from hostbench.plan.estimate import Plan
from hostbench.results.csv import case_table
from hostbench.results.document import assemble, replay
from hostbench.run.execute import Execution, HostLimits
from hostbench.run.resume import resumption
from orchestrator.influx.points import document_points
from orchestrator.run.events import published
from tests.growth import growth
from tests.unit.records import (
    RATE,
    RATE_METRIC,
    bare_trial,
    done,
    end,
    host,
    param,
    planned,
    sampled,
    session,
    start,
)

TRIED = Metric(
    name="rate_of_nt",
    unit="operation/s",
    direction="higher",
    primary=False,
    description="what was tried out",
)
AUTOMATIC = ("engine", "send_path", "receive_path", "udp_path")
PARAMS = (
    param("threads").meaning,
    param("size_bytes", resolved=("auto",)).meaning,
    *(
        param(name, type="choice", resolved=("best",), resolved_once=True).meaning
        for name in ("isa", "store", "streams")
    ),
    *(
        param(name, type="choice", resolved=("auto",), resolved_once=True).meaning
        for name in AUTOMATIC
    ),
)
METRICS = {"mem.copy": (RATE_METRIC, TRIED)}
BOTH = {RATE: 100.0, TRIED.name: 90.0}
OPEN: dict[str, ParamValue] = {"threads": 2, "isa": "scalar", "store": "best"}


class Undecided:
    """A program whose `best` is another store in each trial."""

    def __init__(self) -> None:
        self.calls: list[dict[str, ParamValue]] = []
        self._stores = iter(("nt", "plain", "libc"))

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        self.calls.append(dict(trial.params))
        chosen = trial.params.get("store", "best")
        tried = 90.0 if chosen == "best" else None
        if chosen == "best":
            chosen = next(self._stores)
        params = {"threads": 2, "isa": "scalar", "store": chosen, "streams": None}
        yield start(params=params)
        yield end().model_copy(update={"metrics": {RATE: 100.0, TRIED.name: tried}})


class Written:
    """A sink that keeps the trials, and the records of the cases."""

    def __init__(self) -> None:
        self.trials: list[TrialRecord] = []
        self.cases: list[CaseRecord] = []

    def take(self, event: JobEvent) -> None:
        """See Sink.take."""
        if isinstance(event, TrialEndedEvent):
            self.trials.append(event.trial)
        elif isinstance(event, CaseEndedEvent):
            self.cases.append(event.record)


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    with closing(Interrupt()) as made:
        yield made


def case(**changes: Any) -> PlannedCase:
    plain: dict[str, Any] = {
        "workload": "mem.copy",
        "params": OPEN,
        "given": ("threads",),
        "repeats": Repeats(min_trials=3, max_trials=3),
    }
    return planned(**(plain | changes))


def measured(case: PlannedCase, transport: Any, interrupt: Interrupt) -> list[TrialRecord]:
    """The trials of one case."""
    return executed(case, transport, interrupt).trials


def executed(case: PlannedCase, transport: Any, interrupt: Interrupt) -> Written:
    """What a sink heard of one case."""
    suite = Suite(
        name="quick", cases=(SuiteCase(workload="mem.copy"),), idle=IdleRules(policy="force")
    )
    written = Written()
    Execution(
        plan=Plan(suite=suite, cases=(case,)),
        metrics=METRICS,
        params={"mem.copy": PARAMS},
        transport=transport,
        watch=LocalWatch(),
        limits=HostLimits(host(), ("mem",)),
        sinks=(written,),
        interrupt=interrupt,
    ).run(replay([session((case,), workloads=METRICS)]))
    return written


def test_all_trials_of_a_case_measure_what_the_first_one_chose(interrupt: Interrupt) -> None:
    program = Undecided()
    trials = measured(case(), program, interrupt)
    assert program.calls == [
        {"threads": 2},
        {"threads": 2, "store": "nt"},
        {"threads": 2, "store": "nt"},
    ]
    assert [trial.start.params["store"] for trial in trials if trial.start] == ["nt"] * 3


class Fallen:
    """A program whose engine and whose number of streams are others each time it may choose."""

    def __init__(self, streams: Sequence[ParamValue], automatic: str) -> None:
        self.calls: list[dict[str, ParamValue]] = []
        self._automatic = automatic
        self._streams = iter(streams)
        self._engines = iter(("io_uring", "libaio", "psync"))

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        params = dict(trial.params)
        self.calls.append(dict(trial.params))
        for name, open_, others in (
            ("streams", "best", self._streams),
            (self._automatic, "auto", self._engines),
        ):
            if params.get(name, open_) == open_:
                params[name] = next(others)
        yield start(params=params | {"size_bytes": 4096})
        yield end().model_copy(update={"metrics": {RATE: 100.0, TRIED.name: None}})


@pytest.mark.parametrize("automatic", AUTOMATIC)
@pytest.mark.parametrize("streams", [("4", "8", "1"), (4, 8, 1), (0.5, 0.25, 1)])
def test_numbers_engines_and_paths_are_handed_on_as_well(
    interrupt: Interrupt, streams: Sequence[ParamValue], automatic: str
) -> None:
    program = Fallen(streams, automatic)
    left_open: dict[str, ParamValue] = {
        "threads": 2, "streams": "best", automatic: "auto", "size_bytes": "auto",
    }  # fmt: skip
    measured(case(params=left_open), program, interrupt)
    later = {"threads": 2, "streams": streams[0], automatic: "io_uring"}
    assert program.calls == [{"threads": 2}, later, later]


def test_a_choice_that_was_given_is_left_alone(interrupt: Interrupt) -> None:
    program = Undecided()
    given = case(params=OPEN | {"store": "plain"}, given=("threads", "store"))
    measured(given, program, interrupt)
    assert program.calls == [{"threads": 2, "store": "plain"}] * 3


def test_a_case_that_is_skipped_asks_no_program_and_no_gate(interrupt: Interrupt) -> None:
    program = Undecided()

    class Never(LocalWatch):
        def look(self, interrupt: Interrupt) -> IdleAnswer:
            raise AssertionError("the gate was called")

    suite = Suite(name="quick", cases=(SuiteCase(workload="mem.copy"),))
    skipped = case(skip="there is no second host", peers=("mbw",))
    written = Written()
    Execution(
        plan=Plan(suite=suite, cases=(skipped,)),
        metrics=METRICS,
        params={"mem.copy": PARAMS},
        transport=program,
        watch=Never(),
        limits=HostLimits(host(), ("mem",)),
        sinks=(written,),
        interrupt=interrupt,
    ).run(replay([session((skipped,), workloads=METRICS)]))
    (trial,) = written.trials
    assert trial.verdict is Verdict.SKIPPED
    assert [reason.text for reason in trial.reasons] == ["there is no second host"]
    assert not program.calls
    record = session((skipped,), workloads=METRICS)
    (result,) = assemble(replay([record, trial, done(stopped=StopReason.SKIPPED)])).cases
    assert result.verdict is Verdict.SKIPPED
    assert [reason.code for reason in result.reasons] == ["no_far_host"]


def test_a_case_chooses_for_itself_alone(interrupt: Interrupt) -> None:
    program = Undecided()
    measured(case(), program, interrupt)
    measured(case(case="bbbb"), program, interrupt)
    assert program.calls[3] == {"threads": 2}


def test_a_first_trial_that_failed_hands_nothing_on(interrupt: Interrupt) -> None:
    class Broken(Undecided):
        def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
            self.calls.append(dict(trial.params))
            yield from ()
            raise TrialFailed("broken", "it broke")

    program = Broken()
    (trial,) = measured(case(), program, interrupt)
    assert trial.verdict is Verdict.FAILED
    assert program.calls == [{"threads": 2}]


def test_what_the_first_trial_tried_out_stays_in_the_document(interrupt: Interrupt) -> None:
    trials = measured(case(), Undecided(), interrupt)
    record = session((case(),), workloads=METRICS)
    document = assemble(replay([record, *trials, done()]))
    (result,) = document.cases
    assert result.label == "2 threads nt"
    assert result.metrics[RATE].statistics.n == 3
    assert result.metrics[TRIED.name].statistics.n == 1
    assert result.metrics[TRIED.name].statistics.median == 90.0


def test_figures_are_computed_once_and_read_from_the_record_of_the_case(
    interrupt: Interrupt,
) -> None:
    """Document, CSV and points show what the record says, whatever the trials would make it."""
    heard = executed(case(), Undecided(), interrupt)
    (done_case,) = heard.cases
    assert done_case.figures is not None
    metric = done_case.figures.metrics[RATE]
    assert (metric.statistics.n, metric.statistics.median) == (3, 100.0)
    assert RECORD.validate_json(RECORD.dump_json(done_case)) == done_case
    changed = metric.statistics.model_copy(update={"median": 77.5})
    metrics = {RATE: metric.model_copy(update={"statistics": changed})}
    update = {"figures": done_case.figures.model_copy(update={"metrics": metrics})}
    record = session((case(),), workloads=METRICS)
    document = assemble(replay([record, *heard.trials, done_case.model_copy(update=update)]))
    assert document.cases[0].metrics[RATE].statistics.median == 77.5
    assert ",77.5," in case_table(document)
    assert [point.fields.get("value") for point in document_points(document)].count(77.5) == 1


def test_the_api_s_event_of_a_case_has_no_figures(interrupt: Interrupt) -> None:
    (done_case,) = executed(case(), Undecided(), interrupt).cases
    event = published(CaseEndedEvent(record=done_case))
    record = {"record": "case", "case": "aaaa", "stopped": "max_trials", "verdict": "clean"}
    assert json.loads(event.model_dump_json()) == {"event": "case", "record": record}


def test_the_api_s_event_of_a_sample_is_the_sample_alone() -> None:
    event = SampleTakenEvent(case="aaaa", sample=sampled(1)[0], index=3, time_unix_s=1.8e9)
    sample = json.loads(sampled(1)[0].model_dump_json())
    assert json.loads(published(event).model_dump_json()) == {
        "event": "sample",
        "case": "aaaa",
        "sample": sample,
    }


def test_a_metric_that_one_of_several_trials_lacks_has_no_statistics(interrupt: Interrupt) -> None:
    given = case(params=OPEN | {"store": "plain"}, given=("threads", "store"))
    trials = measured(given, Undecided(), interrupt)
    first = bare_trial(events=(start(), end().model_copy(update={"metrics": BOTH})), value=100.0)
    (result,) = assemble(
        replay([session((given,), workloads=METRICS), first, *trials[1:], done()])
    ).cases
    assert set(result.metrics) == {RATE}


class Steady:
    """A program whose figure is always the same."""

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        yield start(params=dict(trial.params))
        yield end().model_copy(update={"metrics": {RATE: 100.0, TRIED.name: None}})


class Slow(Steady):
    """One whose trials take longer than planned, by the clock of this process."""

    def __init__(self, clock: "SetClock") -> None:
        self._clock = clock

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        yield from super().run(trial)
        self._clock.now_s += 9.0


class SetClock:
    """Stands in for time.monotonic()."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_what_has_no_time_is_skipped_and_what_has_trials_ends(
    interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three cases of 3 trials of a second each."""
    names = ("plain", "nt", "libc")
    cases = tuple(
        case(case=name, params=OPEN | {"store": name}, trial_time_s=1.0) for name in names
    )
    monkeypatch.setattr(time, "monotonic", clock := SetClock())
    suite = Suite(
        name="quick",
        cases=(SuiteCase(workload="mem.copy"),),
        idle=IdleRules(policy="force"),
        max_time_ratio=2,
    )
    written = Written()
    Execution(
        plan=Plan(suite=suite, cases=cases),
        metrics=METRICS,
        params={"mem.copy": PARAMS},
        transport=Slow(clock),
        watch=LocalWatch(),
        limits=HostLimits(host(), ("mem",)),
        sinks=(written,),
        interrupt=interrupt,
    ).run(replay([session(cases, workloads=METRICS)]))
    # 9 trials of a second are 9 s, twice that are 18: two trials of 9 s each.
    assert [(one.case, one.verdict) for one in written.trials] == [
        ("plain", Verdict.CLEAN), ("nt", Verdict.CLEAN), ("libc", Verdict.SKIPPED),
    ]  # fmt: skip
    (reason,) = written.trials[-1].reasons
    assert reason.code == "no_time" and "the 18 s that the suite allows are used up" in reason.text
    stopped = {record.case: record.stopped for record in written.cases}
    assert stopped == {
        "plain": StopReason.MAX_TIME, "nt": StopReason.MAX_TIME, "libc": StopReason.SKIPPED,
    }  # fmt: skip
    assert all(record.figures for record in written.cases[:-1])


class Ended:
    """A program that a signal ends at once."""

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        yield from ()
        raise Interrupted(signal.SIGTERM)


@pytest.mark.exhaustive
@pytest.mark.parametrize("trials", [0, 2])
def test_a_case_takes_no_longer_to_begin_or_to_show_among_thousands(
    interrupt: Interrupt, trials: int
) -> None:
    """In one block, as the cases of a grid are, also where some have trials of an earlier
    session."""
    before = [
        bare_trial(n, value=rate, events=(start(), end(rate))) for n, rate in ((0, 99), (1, 101))
    ]
    repeats = Repeats(min_trials=2, max_trials=3, target_half_width=1e-6)

    def begun(count: int) -> None:
        cases = tuple(case(case=f"{number:012x}", repeats=repeats) for number in range(count))
        now = session(cases, workloads=METRICS)
        progress = replay([now])
        if trials:
            progress.trials = {one.case: before[:trials] for one in cases}
        suite = Suite(
            name="quick", cases=(SuiteCase(workload="mem.copy"),), idle=IdleRules(policy="force")
        )
        execution = Execution(
            plan=Plan(suite=suite, cases=cases),
            metrics=METRICS,
            params={"mem.copy": PARAMS},
            transport=Ended(),
            watch=LocalWatch(),
            limits=HostLimits(host(), ("mem",)),
            sinks=(),
            interrupt=interrupt,
        )
        with pytest.raises(Interrupted):
            execution.run(progress)
        resumption(progress, now)
        assert len(assemble(progress).cases) == count

    # Ten times as many cases: a hundred times the work where each looks at each.
    assert growth(begun, 300, 3000) < 30


def test_the_trials_of_cases_are_run_in_turn_and_those_of_before_count(
    interrupt: Interrupt,
) -> None:
    """Two cases of three trials; an earlier session has run two of the first."""
    cases = tuple(case(case=name, params=OPEN | {"store": name}) for name in ("plain", "nt"))
    suite = Suite(
        name="quick", cases=(SuiteCase(workload="mem.copy"),), idle=IdleRules(policy="force")
    )
    before = replay(
        [
            session(cases, workloads=METRICS),
            bare_trial(0, "plain", value=99.0, events=(start(), end(99.0))),
            bare_trial(1, "plain", value=101.0, events=(start(), end(101.0))),
            session(cases, workloads=METRICS, continued=("plain",)),
        ]
    )
    written = Written()
    Execution(
        plan=Plan(suite=suite, cases=cases),
        metrics=METRICS,
        params={"mem.copy": PARAMS},
        transport=Steady(),
        watch=LocalWatch(),
        limits=HostLimits(host(), ("mem",)),
        sinks=(written,),
        interrupt=interrupt,
    ).run(before)
    ran = [(trial.case, trial.index) for trial in written.trials]
    assert ran == [("plain", 2), ("nt", 0), ("nt", 1), ("nt", 2)]
    figures = {record.case: record.figures for record in written.cases}
    assert list(figures) == ["plain", "nt"]
    for found in figures.values():
        assert found is not None and found.undisturbed is not None
        assert (found.undisturbed.value, found.undisturbed.n) == (100.0, 3)
    # The second case ended later: it knows how much the trials of the first one differ.
    first, second = figures.values()
    assert first is not None and second is not None
    assert first.others.figure is None and second.others.figure is not None
