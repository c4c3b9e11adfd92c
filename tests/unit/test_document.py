"""The document is derived from the journal's records, and from nothing else."""

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.judge.trial import failed_trial, measured_trial, skipped_trial
from hostbench.model.limit import Limit
from hostbench.model.result import (
    CaseRecord,
    JobState,
    Record,
    ResultDocument,
    StopReason,
    TrialRecord,
    Verdict,
)
from hostbench.model.trial import TrialFailed
from hostbench.results.document import assemble, job_exit_code, replay
from tests.growth import growth
from tests.unit.records import (
    RATE,
    RATE_METRIC,
    bare_trial,
    done,
    end,
    limit,
    planned,
    sampled,
    session,
    skipped,
    start,
)

SAMPLES = 600


def trial(value: float, index: int, top: float | None = 100.0, case: str = "aaaa") -> TrialRecord:
    known: dict[str, Limit] = {RATE: limit(top)}
    record = bare_trial(index, case, events=(start(), *sampled(3), end(value)))
    return measured_trial(record, (RATE_METRIC,), known)


def document(*records: Record) -> ResultDocument:
    return assemble(replay([session(), *records]))


def case_record(stopped: StopReason, verdict: Verdict) -> CaseRecord:
    return CaseRecord(case="aaaa", stopped=stopped, verdict=verdict)


def failed(exit_code: ExitCode) -> TrialRecord:
    return failed_trial(bare_trial(), TrialFailed("broken", "it broke", exit_code))


def test_a_measured_case() -> None:
    (case,) = document(
        trial(98.0, 0, 100.0), trial(97.5, 1, 99.5), trial(98.5, 2, 100.5), done()
    ).cases
    figure = case.metrics[RATE]
    assert case.verdict is Verdict.CLEAN
    assert (figure.statistics.n, figure.statistics.median) == (3, 98.0)
    assert figure.efficiency == pytest.approx(0.98)
    assert figure.limit is not None and figure.limit.value == 100.0
    assert case.best == 98.5
    assert case.counted == (0, 1, 2)
    assert [len(one.samples) for one in case.trials] == [3, 3, 3]


def test_every_sample_of_a_long_trial_is_in_the_document() -> None:
    record = bare_trial(events=(start(), *sampled(SAMPLES), end(100.0)))
    stored = document(measured_trial(record, (RATE_METRIC,), {}), done()).model_dump_json()
    (case,) = ResultDocument.model_validate_json(stored).cases
    assert [sample.metrics[RATE] for sample in case.trials[0].samples] == [
        100.0 + i for i in range(SAMPLES)
    ]


def test_what_is_written_is_what_is_read() -> None:
    written = document(trial(98.0, 0), trial(99.0, 1), trial(98.5, 2), done())
    assert ResultDocument.model_validate_json(written.model_dump_json()) == written


def test_an_unknown_limit_gives_no_efficiency() -> None:
    """What was reached at best stands beside it."""
    (case,) = document(trial(98.0, 0, None), trial(99.0, 1, None), done()).cases
    known = case.metrics[RATE].limit
    assert known is not None and known.value is None
    assert case.metrics[RATE].efficiency is None
    assert case.best == 99.0


def test_the_best_time_is_the_shortest_and_none_of_a_disturbed_trial() -> None:
    time_metric = RATE_METRIC.model_copy(update={"direction": "lower"})
    made = session(workloads={"cpu.fma": (time_metric,)})
    quiet = [trial(98.0, 0), trial(97.0, 1)]
    busy = bare_trial(2, events=(start(), end(90.0, clean_slice_ratio=0.3)))
    disturbed = measured_trial(busy, (time_metric,), {})
    (case,) = assemble(replay([made, *quiet, disturbed, done()])).cases
    assert (case.trials[2].verdict, case.best) == (Verdict.DISTURBED, 97.0)


def test_an_unfinished_case_has_no_verdict() -> None:
    unfinished = document(trial(98.0, 0))
    assert unfinished.cases[0].verdict is None
    assert unfinished.job.state is JobState.INTERRUPTED
    assert unfinished.job.verdicts == {}


def test_a_case_that_failed_in_one_trial_has_no_figure_from_the_others() -> None:
    (case,) = document(
        trial(98.0, 0), failed(ExitCode.CASE_FAILED), case_record(StopReason.FAILED, Verdict.FAILED)
    ).cases
    assert case.verdict is Verdict.FAILED
    assert case.metrics == {} and case.best is None
    assert len(case.trials) == 2


def test_a_resumption_forgets_what_it_does_not_keep() -> None:
    cases = (planned("aaaa"), planned("bbbb"))
    progress = replay(
        [
            session(cases),
            trial(98.0, 0),
            done(),
            trial(50.0, 0, case="bbbb"),
            session(cases, kept=("aaaa",), time_unix_s=1.9e9),
            trial(60.0, 0, case="bbbb"),
        ]
    )
    first, second = assemble(progress).cases
    assert [one.value for one in first.trials] == [98.0]
    assert [one.value for one in second.trials] == [60.0]
    assert progress.created_unix_s == 1.8e9
    assert set(progress.done) == {"aaaa"}


SKIPPED_CASE = (skipped_trial(skipped()), case_record(StopReason.SKIPPED, Verdict.SKIPPED))


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ((trial(98.0, 0), done()), ExitCode.OK),
        ((trial(150.0, 0), case_record(StopReason.MAX_TRIALS, Verdict.INVALID)), ExitCode.INVALID),
        (SKIPPED_CASE, ExitCode.NOTHING_RAN),
        *(
            ((failed(code), case_record(StopReason.FAILED, Verdict.FAILED)), code)
            for code in (
                ExitCode.CASE_FAILED,
                ExitCode.USAGE,
                ExitCode.RESOURCE,
                ExitCode.INVALID,
                ExitCode.CORRUPT,
            )
        ),
    ],
)
def test_exit_code(records: tuple[Record, ...], code: ExitCode) -> None:
    assert job_exit_code(document(*records)) is code


def test_exit_code_of_one_failure_among_measured_cases() -> None:
    cases = (planned("aaaa"), planned("bbbb"))
    records: list[Record] = [
        session(cases),
        failed(ExitCode.RESOURCE),
        case_record(StopReason.FAILED, Verdict.FAILED),
        trial(98.0, 0, case="bbbb"),
        done("bbbb"),
    ]
    assert job_exit_code(assemble(replay(records))) is ExitCode.CASE_FAILED


def test_a_job_that_was_ended_early_costs_no_more_for_each_case_when_it_has_many() -> None:
    def ended_early(cases: int) -> ResultDocument:
        plan = tuple(planned(f"{number:04x}") for number in range(cases))
        return assemble(replay([session(plan), trial(98.0, 0, case="0000")]))

    # Ten times as many cases: a hundred times the work where each looks at each.
    assert growth(ended_early, 400, 4000) < 30
