"""When a case has been measured often enough."""

from typing import Any

import pytest

from hostbench.judge.case import stop_reason
from hostbench.judge.figure import Measured
from hostbench.judge.trial import failed_trial, measured_trial, skipped_trial
from hostbench.model.result import ClassSpreads, StopReason, TrialRecord
from hostbench.model.suite import Repeats
from hostbench.model.trial import TrialFailed
from tests.unit.records import RATE_METRIC, bare_trial, end, planned, skipped, start


def trials(values: list[float], disturbed: int = 0, wall_s: float = 1.0) -> list[TrialRecord]:
    """The last `disturbed` of them are disturbed."""
    quiet = len(values) - disturbed
    return [
        measured_trial(
            bare_trial(
                index,
                wall_s=wall_s,
                events=(start(), end(value, cpu_ratio=0.999 if index < quiet else 0.5)),
            ),
            (RATE_METRIC,),
            {},
        )
        for index, value in enumerate(values)
    ]


def stopped(records: list[TrialRecord], **repeats: Any) -> StopReason | None:
    plain: dict[str, Any] = {"min_trials": 3, "max_trials": 6, "max_time_s": 100.0}
    case = planned(repeats=Repeats(**(plain | repeats)))
    return stop_reason(Measured(case, (RATE_METRIC,), records), ClassSpreads())


CALM = [100.0, 100.5, 99.5, 100.2, 99.8, 100.0]
WILD = [80.0, 100.0, 120.0, 90.0, 110.0, 100.0]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_least_number_of_trials_is_always_run(count: int) -> None:
    assert stopped(trials(CALM[:count], wall_s=1000.0)) is None


def test_stops_as_soon_as_the_interval_is_narrow() -> None:
    assert stopped(trials(CALM[:3])) is StopReason.TARGET_REACHED
    assert stopped(trials(WILD[:3])) is None
    assert stopped(trials(WILD)) is StopReason.MAX_TRIALS


def test_goes_on_for_undisturbed_trials() -> None:
    assert stopped(trials(CALM[:3], disturbed=1)) is None
    assert stopped(trials(CALM[:5], disturbed=2)) is StopReason.TARGET_REACHED
    assert stopped(trials(CALM, disturbed=6)) is StopReason.MAX_TRIALS


def test_stops_before_a_trial_that_would_take_too_long() -> None:
    assert stopped(trials(WILD[:4], wall_s=20.0)) is None
    assert stopped(trials(WILD[:4], wall_s=20.1)) is StopReason.MAX_TIME


def test_one_trial_has_no_interval_to_reach() -> None:
    assert stopped(trials(CALM[:1]), min_trials=1) is None
    assert stopped(trials(CALM[:1]), min_trials=1, max_trials=1) is StopReason.MAX_TRIALS


def test_what_was_skipped_or_failed_is_not_repeated() -> None:
    assert stopped([skipped_trial(skipped())]) is StopReason.SKIPPED
    failed = failed_trial(bare_trial(), TrialFailed("killed", "killed by signal 9"))
    assert stopped([failed]) is StopReason.FAILED


def test_disturbed_trials_count_only_where_there_are_no_others() -> None:
    case = planned(repeats=Repeats(min_trials=3, max_trials=6))
    for disturbed, counted in ((2, 3), (4, 1), (5, 5)):
        measured = Measured(case, (RATE_METRIC,), trials(CALM[:5], disturbed=disturbed))
        assert len(measured.counted) == counted
