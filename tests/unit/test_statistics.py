"""Our statistics against scipy, on figures that real runs gave."""

import importlib
import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hostbench.judge.statistics import (
    CONFIDENCE,
    OUTLIER_SCORE,
    describe,
    instability,
    median_interval,
    outliers,
)

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


@pytest.mark.parametrize("values", SERIES)
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


@pytest.mark.parametrize("values", [s for s in SERIES if len(s) >= 6])
def test_interval_is_scipys(values: list[float], stats: ModuleType) -> None:
    theirs = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
    ours = median_interval(values)
    assert (ours.low, ours.high) == (theirs.low, theirs.high)


@pytest.mark.parametrize("n", [*range(6, 80), 250, 1000])
def test_interval_covers_at_least_95_percent_and_no_narrower_one_does(
    n: int, stats: ModuleType
) -> None:
    interval = median_interval([float(i) for i in range(n)])
    rank = int(interval.low) + 1
    assert interval.high == n - rank
    assert interval.confidence == pytest.approx(1 - 2 * stats.binom.cdf(rank - 1, n, 0.5))
    assert interval.confidence >= CONFIDENCE
    assert 1 - 2 * stats.binom.cdf(rank, n, 0.5) < CONFIDENCE


@pytest.mark.parametrize(
    ("n", "confidence"), [(1, 0.0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)]
)
def test_below_six_trials_the_whole_range_with_the_coverage_it_has(
    n: int, confidence: float
) -> None:
    values = [7.0, 3.0, 5.0, 4.0, 6.0][:n]
    interval = median_interval(values)
    assert (interval.low, interval.high) == (min(values), max(values))
    assert interval.confidence == confidence


def test_coverage_is_what_a_simulation_finds() -> None:
    """The claim itself, not only the formula: how often is the true median inside?"""
    random = np.random.default_rng(20261120)
    for n in (3, 6, 15):
        samples = random.exponential(size=(4000, n))
        intervals = [median_interval(list(row)) for row in samples]
        inside = np.mean([one.low <= math.log(2) <= one.high for one in intervals])
        assert inside == pytest.approx(intervals[0].confidence, abs=0.02)


def test_half_width_ratio() -> None:
    assert describe([98.0, 100.0, 104.0]).half_width_ratio == pytest.approx(0.03)
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
