"""Statistics of a handful of trials, in pure Python.

n counts trials, never samples (Hoefler and Belli, "Scientific Benchmarking of Parallel Computing
Systems", SC'15). tests/unit/test_statistics.py holds every figure against scipy.
"""

import math
import statistics
from collections.abc import Sequence

from hostbench.base.units import percent
from hostbench.model.result import ConfidenceInterval, Statistics

CONFIDENCE = 0.95

# hyperfine, src/outlier_detection.rs: ten standard deviations, 1.4826 turning the median absolute
# deviation into an estimate of the standard deviation.
OUTLIER_SCORE = 14.826
# Of three values two are often close together, and then the third looks far away.
OUTLIER_TRIALS_LEAST = 5
# With a median absolute deviation of 0 any difference would be an outlier; below a ten-thousandth
# of the median it says nothing about a benchmark.
LEAST_DEVIATION_RATIO = 1e-4

# pyperf, pyperf/_checks.py: what it warns of as unstable.
UNSTABLE_DEVIATION_RATIO = 0.10
UNSTABLE_RANGE_RATIO = 0.50


def describe(values: Sequence[float]) -> Statistics:
    """The statistics of at least one trial, in the unit of `values`."""
    assert values and all(math.isfinite(value) for value in values)
    median = statistics.median(values)
    interval = median_interval(values)
    return Statistics(
        n=len(values),
        median=median,
        mean=statistics.fmean(values),
        standard_deviation=statistics.stdev(values) if len(values) > 1 else None,
        median_absolute_deviation=median_absolute_deviation(values),
        minimum=min(values),
        maximum=max(values),
        interval=interval,
        half_width_ratio=_half_width_ratio(interval, median, len(values)),
        outliers=outliers(values),
        unstable=instability(values),
    )


def scaled(figures: Statistics, factor: float) -> Statistics:
    """The same statistics in another unit: `factor`, which is positive, of it make one of ours."""
    low, high = figures.interval.low * factor, figures.interval.high * factor
    deviation = figures.standard_deviation
    update = {
        "median": figures.median * factor,
        "mean": figures.mean * factor,
        "standard_deviation": None if deviation is None else deviation * factor,
        "median_absolute_deviation": figures.median_absolute_deviation * factor,
        "minimum": figures.minimum * factor,
        "maximum": figures.maximum * factor,
        "interval": figures.interval.model_copy(update={"low": low, "high": high}),
    }
    return figures.model_copy(update=update)


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Median distance from the median, not scaled."""
    median = statistics.median(values)
    return statistics.median(abs(value - median) for value in values)


def median_interval(values: Sequence[float]) -> ConfidenceInterval:
    """The narrowest symmetric interval between two order statistics that covers the median with
    at least 95 %; below 6 trials, where there is none, the whole range with the coverage it has
    (n=5: 93.75 %, n=3: 75 %, n=1: 0 %).

    Between the k-th smallest and the k-th largest of n the median lies with probability
    1 - 2 P(B <= k - 1), B binomial with n and 1/2 (Hoefler and Belli, SC'15, section 3.1.3, exact
    instead of their normal approximation).
    """
    ordered = sorted(values)
    n = len(ordered)
    rank, below = 1, 1
    while rank < (n + 1) // 2 and _coverage(n, below + math.comb(n, rank)) >= CONFIDENCE:
        below += math.comb(n, rank)
        rank += 1
    return ConfidenceInterval(
        low=ordered[rank - 1], high=ordered[n - rank], confidence=_coverage(n, below)
    )


def _coverage(n: int, below: int) -> float:
    everything: int = 2**n
    return (everything - 2 * below) / everything


def _half_width_ratio(interval: ConfidenceInterval, median: float, n: int) -> float | None:
    if n < 2 or median == 0:
        return None
    return (interval.high - interval.low) / 2 / abs(median)


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Positions whose modified z-score (distance from the median over the median absolute
    deviation) is above 14.826; none among fewer than 5 values."""
    if len(values) < OUTLIER_TRIALS_LEAST:
        return ()
    median = statistics.median(values)
    deviation = max(median_absolute_deviation(values), LEAST_DEVIATION_RATIO * abs(median))
    if deviation == 0:
        return ()
    scores = [abs(value - median) / deviation for value in values]
    return tuple(i for i, score in enumerate(scores) if score > OUTLIER_SCORE)


def instability(values: Sequence[float]) -> str | None:
    """Why these trials are unstable by pyperf's rules; None when they are not.

    A standard deviation of at least 10 % of the mean, or a minimum or maximum at least 50 % off.
    """
    mean = statistics.fmean(values)
    if len(values) < 2 or mean == 0:
        return None
    deviation_ratio = statistics.stdev(values) / abs(mean)
    if deviation_ratio >= UNSTABLE_DEVIATION_RATIO:
        return (
            f"the standard deviation is {percent(deviation_ratio)} of the mean (10 % is too much)"
        )
    for name, extreme in (("lowest", min(values)), ("highest", max(values))):
        distance_ratio = abs(extreme - mean) / abs(mean)
        if distance_ratio >= UNSTABLE_RANGE_RATIO:
            return f"the {name} trial is {percent(distance_ratio)} off the mean (50 % is too much)"
    return None
