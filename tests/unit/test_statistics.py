"""Our statistics against scipy, on figures that real runs gave."""

import importlib
import json
import math
import statistics
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hostbench.judge.statistics import (
    CLASS_DEGREES_MOST,
    OUTLIER_SCORE,
    POWER,
    Spreads,
    case_spread,
    describe,
    instability,
    least_difference_ratio,
    median_interval,
    outliers,
    student_quantile,
)
from hostbench.model.result import ClassSpread
from tests.each import each

RECORDED: dict[str, list[float]] = json.loads(
    (Path(__file__).parent / "fixtures" / "recorded.json").read_text()
)
SERIES = [
    values[:n]
    for values in RECORDED.values()
    for n in (1, 2, 3, 5, 6, 7, 9, 15, len(values))
    if n <= len(values)
]


@pytest.fixture(scope="module")
def stats() -> ModuleType:
    """scipy.stats, whose import takes half a second: not at collection, which is in every lane."""
    return importlib.import_module("scipy.stats")


@each("values", SERIES)
def test_moments_and_deviation(values: list[float], stats: ModuleType) -> None:
    ours = describe(values)
    assert ours.n == len(values)
    assert ours.median == pytest.approx(np.median(values), rel=1e-12)
    assert ours.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert (ours.minimum, ours.maximum) == (min(values), max(values))
    assert ours.median_absolute_deviation == pytest.approx(
        stats.median_abs_deviation(values), rel=1e-9, abs=1e-9
    )
    if len(values) > 1:
        assert ours.standard_deviation == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_students_quantiles_are_scipys(stats: ModuleType) -> None:
    for degrees in (1, 2, 3, 4, 5, 6, 7, 10, 29, 30, 100):
        for probability in (POWER, 0.975):
            theirs = stats.t.ppf(probability, degrees)
            assert student_quantile(probability, degrees) == pytest.approx(theirs, rel=1e-9)


def test_one_trial_knows_its_spread_from_others_only(stats: ModuleType) -> None:
    alone = median_interval([7.0])
    assert (alone.low, alone.high, alone.confidence) == (7.0, 7.0, 0.0)
    of_class = ClassSpread(deviation_ratio=0.1, degrees=9, cases=3)
    known = median_interval([7.0], of_class)
    factor = math.exp(stats.t.ppf(0.975, CLASS_DEGREES_MOST) * 0.1)
    assert (known.low, known.high) == pytest.approx((7.0 / factor, 7.0 * factor))


def test_values_that_are_not_positive_have_an_interval_of_differences() -> None:
    of_class = ClassSpread(deviation_ratio=5.0, degrees=9, cases=3)
    ours = median_interval([-1.0, 0.0, 1.0], of_class)
    assert ours.low == -ours.high and 2 < ours.high < 4
    assert least_difference_ratio([0.0, 1.0], of_class) is None


def simulated(
    n: int, deviations: float, others: bool, drift: float = 0.0, known_drift: float = 0.0
) -> tuple[float, float]:
    """How often the true value is inside, and the median half-width over the deviation, where the
    deviations of the cases of a class differ by a factor of e to the power of `deviations`, and
    jobs as a whole by `drift`; `known_drift` of it is known."""
    random = np.random.default_rng(20261123)
    inside, widths = [], []
    for _ in range(1500):
        sigmas = 0.02 * np.exp(random.normal(0, deviations, 9))
        cases = [list(np.exp(random.normal(0, sigma, n))) for sigma in sigmas]
        moved = math.exp(random.normal(0, drift))
        of_class = Spreads(map(case_spread, cases[1:])).together if others else None
        one = median_interval([moved * value for value in cases[0]], of_class, known_drift)
        inside.append(one.low <= 1 <= one.high)
        widths.append((one.high - one.low) / 2 / sigmas[0])
    return float(np.mean(inside)), float(np.median(widths))


def test_coverage_is_what_a_simulation_finds() -> None:
    """The claim itself, not only the formula: how often is the true value inside? And sharp: the
    range of three trials' medians in 95 of 100 is 1.31 deviations to either side."""
    for n, deviations in ((3, 0.0), (3, 0.5), (3, 1.0), (5, 0.5)):
        covered, _ = simulated(n, deviations, others=True)
        assert covered >= 0.94, (n, deviations)
    _, alone = simulated(3, 0.5, others=False)
    _, moderated = simulated(3, 0.5, others=True)
    assert moderated < 1.5 * 1.31 < alone


def test_an_interval_holds_what_drifts_from_job_to_job() -> None:
    unknown, _ = simulated(3, 0.5, others=True, drift=0.05)
    known, _ = simulated(3, 0.5, others=True, drift=0.05, known_drift=0.05)
    assert unknown < 0.75 and 0.94 <= known < 0.99
    least, of_class = [0.98, 1.0, 1.02], ClassSpread(deviation_ratio=0.02, degrees=60, cases=30)
    by_trials, by_both = (least_difference_ratio(least, of_class, drift) for drift in (0, 0.05))
    assert by_trials is not None and by_both is not None
    # Alone: (1.96 + 0.84) times the root of 2 times 5 %.
    assert by_both**2 > by_trials**2 + 0.19**2


def test_the_least_difference_is_found_in_four_of_five() -> None:
    random = np.random.default_rng(20261123)
    of_class = ClassSpread(deviation_ratio=0.02, degrees=60, cases=30)
    found = least_difference_ratio([0.98, 1.0, 1.02], of_class)
    assert found is not None and 0.05 < found < 0.10
    # Of pairs that differ by it, the logarithms' difference is above t standard errors.
    error = 0.02 * math.sqrt(2 * math.pi / (4 + math.pi))
    limit = student_quantile(0.975, 2 + CLASS_DEGREES_MOST) * error
    pairs = np.log(1 + found) + random.normal(0, error, 4000)
    assert np.mean(pairs > limit) == pytest.approx(POWER, abs=0.05)


def test_one_bad_case_does_not_widen_all_others() -> None:
    calm = [[1.0, 1.01, 0.99]] * 6
    assert Spreads([case_spread([1.0]), case_spread([-1.0, 1.0])]).together is None
    quiet = Spreads(map(case_spread, calm)).together
    wild = Spreads(map(case_spread, [*calm, [1.0, 3.0, 0.2]])).together
    assert quiet is not None and wild is not None
    assert wild.deviation_ratio == quiet.deviation_ratio
    assert (wild.cases, wild.degrees) == (7, 14)


def test_a_case_is_left_out_of_its_class_and_comes_back() -> None:
    random = np.random.default_rng(20261126)
    cases = [case_spread(list(np.exp(random.normal(0, 0.1, n)))) for n in (2, 3, 1, 5, 3, 2, 7)]
    spreads = Spreads(cases)
    for position, one in enumerate(cases):
        spreads.remove(one)
        others = [other for other in (*cases[:position], *cases[position + 1 :]) if other]
        together = spreads.together
        assert together is not None and together.cases == len(others)
        assert together.degrees == sum(other.degrees for other in others)
        variance = statistics.median(other.mean_variance for other in others)
        assert together.deviation_ratio == math.sqrt(variance)
        spreads.add(one)
    assert spreads.together == Spreads(cases).together


def test_half_width_ratio() -> None:
    assert describe([98.0, 100.0, 104.0]).half_width_ratio == pytest.approx(0.086, abs=0.001)
    assert describe([100.0]).half_width_ratio is None
    assert describe([-1.0, 0.0, 1.0]).half_width_ratio is None


@pytest.mark.parametrize("values", [s for s in SERIES if len(s) >= 5])
def test_outliers_by_the_modified_z_score(values: list[float], stats: ModuleType) -> None:
    deviation = stats.median_abs_deviation(values)
    scores = np.abs(np.array(values) - np.median(values)) / deviation
    assert outliers(values) == tuple(np.flatnonzero(scores > OUTLIER_SCORE))


def test_an_outlier_is_found_and_rounding_is_none() -> None:
    assert outliers([100.0, 100.1, 99.9, 100.05, 99.95, 150.0]) == (5,)
    assert outliers([100.0, 100.0, 100.0, 100.0, 100.0001]) == ()
    assert outliers([100.0, 100.0, 100.0, 100.0, 120.0]) == (4,)
    assert outliers([0.0, 0.0, 0.0, 0.0, 0.0]) == ()
    assert outliers([100.0, 100.1, 200.0]) == ()


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([100.0, 101.0, 99.0], None),
        ([100.0, 120.0, 90.0], "standard deviation"),
        ([100.0] * 60 + [160.0], "highest"),
        ([100.0] * 60 + [40.0], "lowest"),
        ([100.0], None),
    ],
)
def test_instability(values: list[float], word: str | None) -> None:
    text = instability(values)
    assert text is None if word is None else text is not None and word in text


def test_a_figure_that_is_not_finite_is_a_programming_error() -> None:
    with pytest.raises(AssertionError):
        describe([1.0, math.nan])
