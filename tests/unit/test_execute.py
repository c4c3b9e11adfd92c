"""What trials are asked for, one after another; the transport only writes it down."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from hostbench.document import assemble, replay
from hostbench.execute import Execution
from hostbench.idle import LocalWatch
from hostbench.interrupt import Interrupt
from hostbench.limits import HostLimits
from hostbench.models.events import ParamValue
from hostbench.models.peer import TrialEvent
from hostbench.models.result import PlannedCase, StopReason, TrialRecord, Verdict
from hostbench.models.service import IdleAnswer
from hostbench.models.suite import IdleRules, Repeats, Suite, SuiteCase
from hostbench.models.table import Metric
from hostbench.notices import Notice
from hostbench.plan import Plan
from hostbench.report.check import contradictions
from hostbench.trial import Trial, TrialFailed
from tests.unit.records import (
    RATE,
    RATE_METRIC,
    bare_trial,
    done,
    end,
    host,
    planned,
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
METRICS = {"mem.copy": (RATE_METRIC, TRIED)}
BOTH = {RATE: 100.0, TRIED.name: 90.0}
OPEN: dict[str, ParamValue] = {"threads": 2, "isa": "scalar", "store": "best"}


class Undecided:
    """A program whose `best` is another store each time it is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, ParamValue]] = []
        self._stores = iter(("nt", "plain", "libc"))

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        self.asked.append(dict(trial.params))
        chosen = trial.params.get("store", "best")
        tried = 90.0 if chosen == "best" else None
        if chosen == "best":
            chosen = next(self._stores)
        params = {"threads": 2, "isa": "scalar", "store": chosen, "streams": None}
        yield start(params=params)
        yield end().model_copy(update={"metrics": {RATE: 100.0, TRIED.name: tried}})


class Written:
    """A sink that keeps the trials."""

    def __init__(self) -> None:
        self.trials: list[TrialRecord] = []

    def take(self, notice: Notice) -> None:
        """See Sink.take."""
        if isinstance(notice, TrialRecord):
            self.trials.append(notice)


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
    suite = Suite(
        name="quick", cases=(SuiteCase(workload="mem.copy"),), idle=IdleRules(policy="force")
    )
    written = Written()
    Execution(
        plan=Plan(suite=suite, cases=(case,)),
        metrics=METRICS,
        transport=transport,
        watch=LocalWatch(),
        limits=HostLimits(host(), ("mem",)),
        sinks=(written,),
        interrupt=interrupt,
    ).run()
    return written.trials


def test_all_trials_of_a_case_measure_what_the_first_one_chose(interrupt: Interrupt) -> None:
    program = Undecided()
    trials = measured(case(), program, interrupt)
    assert program.asked == [
        {"threads": 2},
        {"threads": 2, "store": "nt"},
        {"threads": 2, "store": "nt"},
    ]
    assert [trial.start.params["store"] for trial in trials if trial.start] == ["nt"] * 3


class Fallen:
    """A program whose engine and whose number of streams are others each time it may choose."""

    def __init__(self, streams: Sequence[ParamValue], automatic: str) -> None:
        self.asked: list[dict[str, ParamValue]] = []
        self._automatic = automatic
        self._streams = iter(streams)
        self._engines = iter(("io_uring", "libaio", "psync"))

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run."""
        asked = dict(trial.params)
        self.asked.append(dict(trial.params))
        for name, open_, others in (
            ("streams", "best", self._streams),
            (self._automatic, "auto", self._engines),
        ):
            if asked.get(name, open_) == open_:
                asked[name] = next(others)
        yield start(params=asked | {"size_bytes": 4096})
        yield end().model_copy(update={"metrics": {RATE: 100.0, TRIED.name: None}})


@pytest.mark.parametrize("automatic", ["engine", "send_path", "receive_path", "udp_path"])
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
    assert program.asked == [{"threads": 2}, later, later]


def test_a_choice_that_was_given_is_left_alone(interrupt: Interrupt) -> None:
    program = Undecided()
    given = case(params=OPEN | {"store": "plain"}, given=("threads", "store"))
    measured(given, program, interrupt)
    assert program.asked == [{"threads": 2, "store": "plain"}] * 3


def test_a_case_that_is_skipped_asks_no_program_and_no_gate(interrupt: Interrupt) -> None:
    program = Undecided()

    class Never(LocalWatch):
        def look(self, interrupt: Interrupt) -> IdleAnswer:
            raise AssertionError("the gate was asked")

    suite = Suite(name="quick", cases=(SuiteCase(workload="mem.copy"),))
    skipped = case(skip="there is no second host", peers=("mbw",))
    written = Written()
    Execution(
        plan=Plan(suite=suite, cases=(skipped,)),
        metrics=METRICS,
        transport=program,
        watch=Never(),
        limits=HostLimits(host(), ("mem",)),
        sinks=(written,),
        interrupt=interrupt,
    ).run()
    (trial,) = written.trials
    assert trial.verdict is Verdict.SKIPPED
    assert [reason.text for reason in trial.reasons] == ["there is no second host"]
    assert not program.asked
    record = session((skipped,), workloads=METRICS)
    (result,) = assemble(replay([record, trial, done(stopped=StopReason.SKIPPED)])).cases
    assert result.verdict is Verdict.SKIPPED
    assert [reason.code for reason in result.reasons] == ["no_far_host"]


def test_a_case_chooses_for_itself_alone(interrupt: Interrupt) -> None:
    program = Undecided()
    measured(case(), program, interrupt)
    measured(case(case="bbbb"), program, interrupt)
    assert program.asked[3] == {"threads": 2}


def test_a_first_trial_that_failed_hands_nothing_on(interrupt: Interrupt) -> None:
    class Broken(Undecided):
        def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
            self.asked.append(dict(trial.params))
            yield from ()
            raise TrialFailed("broken", "it broke")

    program = Broken()
    (trial,) = measured(case(), program, interrupt)
    assert trial.verdict is Verdict.FAILED
    assert program.asked == [{"threads": 2}]


def test_what_the_first_trial_tried_out_stays_in_the_document(interrupt: Interrupt) -> None:
    trials = measured(case(), Undecided(), interrupt)
    record = session((case(),), workloads=METRICS)
    document = assemble(replay([record, *trials, done()]))
    (result,) = document.cases
    assert result.label == "2 threads nt"
    assert result.metrics[RATE].statistics.n == 3
    assert result.metrics[TRIED.name].statistics.n == 1
    assert result.metrics[TRIED.name].statistics.median == 90.0
    assert not list(contradictions(document))


def test_a_metric_that_one_of_several_trials_lacks_has_no_statistics(interrupt: Interrupt) -> None:
    given = case(params=OPEN | {"store": "plain"}, given=("threads", "store"))
    trials = measured(given, Undecided(), interrupt)
    first = bare_trial(events=(start(), end().model_copy(update={"metrics": BOTH})), value=100.0)
    (result,) = assemble(
        replay([session((given,), workloads=METRICS), first, *trials[1:], done()])
    ).cases
    assert set(result.metrics) == {RATE}
