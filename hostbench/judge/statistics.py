"""Statistics of a handful of trials, in pure Python.

n counts trials, never samples (Hoefler and Belli, "Scientific Benchmarking of Parallel Computing
Systems", SC'15). tests/unit/test_statistics.py compares every figure with scipy.
"""

import bisect
import functools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hostbench.base.units import percent
from hostbench.model.result import ClassSpread, ConfidenceInterval, Statistics

CONFIDENCE = 0.95
# The other cases of a class add at most this many degrees of freedom to a case's own: as many as
# three trials of its own have. With its own trials alone, the interval of three trials is 1.5 times
# as wide. With more degrees, the interval holds the true value in fewer than 95 of 100 jobs where
# the spreads of cases differ by a factor of e (simulated).
CLASS_DEGREES_MOST = 2
# How often a second job like this one would show the least detectable difference.
POWER = 0.80
NORMAL = statistics.NormalDist()

# From hyperfine, src/outlier_detection.rs: ten standard deviations. The factor 1.4826 turns the
# median absolute deviation into an estimate of the standard deviation.
OUTLIER_SCORE = 14.826
# Of three values two are often close together, and then the third looks far away.
OUTLIER_TRIALS_LEAST = 5
# With a median absolute deviation of 0, any difference would be an outlier. Less than a
# ten-thousandth of the median is irrelevant for a benchmark.
LEAST_DEVIATION_RATIO = 1e-4

# From pyperf, pyperf/_checks.py: where it warns that a benchmark is unstable.
UNSTABLE_DEVIATION_RATIO = 0.10
UNSTABLE_RANGE_RATIO = 0.50


def describe(
    values: Sequence[float], others: ClassSpread | None = None, drift_ratio: float = 0.0
) -> Statistics:
    """Return the statistics of at least one trial, in the unit of `values`. `others`,
    `drift_ratio`: see median_interval."""
    assert values and all(math.isfinite(value) for value in values)
    median = statistics.median(values)
    interval = median_interval(values, others, drift_ratio)
    return Statistics(
        n=len(values),
        median=median,
        mean=statistics.fmean(values),
        standard_deviation=_standard_deviation(values) if len(values) > 1 else None,
        median_absolute_deviation=median_absolute_deviation(values),
        minimum=min(values),
        maximum=max(values),
        interval=interval,
        half_width_ratio=_half_width_ratio(interval, median),
        outliers=outliers(values),
        unstable=instability(values),
    )


def scaled(figures: Statistics, factor: float) -> Statistics:
    """Return the same statistics multiplied by `factor`, which is positive, for another unit."""
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
    """Return the median distance from the median, not scaled."""
    median = statistics.median(values)
    return statistics.median(abs(value - median) for value in values)


def median_interval(
    values: Sequence[float], others: ClassSpread | None = None, drift_ratio: float = 0.0
) -> ConfidenceInterval:
    """Return the interval that holds the true median with 95 % confidence.

    It is Student's interval: of the logarithms for positive values (a factor up and down), else of
    the values themselves.

    The variance is a weighted mean (Smyth, "Linear models and empirical Bayes methods", 2004): that
    of these trials with n - 1 degrees of freedom, and that of `others`, the other cases of the
    class, with at most CLASS_DEGREES_MOST. `drift_ratio` is the standard deviation between jobs,
    which the trials of one job cannot show. Half the interval is the root of the sum of two
    squares: half the interval by the trials alone, and by the drift alone.

    If a value is not positive, `others` and the drift do not count: they are relative. One trial
    without `others` shows no spread: its interval has no width and confidence 0.
    """
    middle = statistics.median(values)
    relative = min(values) > 0
    error, degrees = _median_error(values, others if relative else None, relative=relative)
    if not degrees:
        return ConfidenceInterval(low=middle, high=middle, confidence=0.0)
    within = (1 + CONFIDENCE) / 2
    half = student_quantile(within, degrees) * error
    if relative:
        half = math.hypot(half, NORMAL.inv_cdf(within) * drift_ratio)
    low, high = (
        (middle * math.exp(-half), middle * math.exp(half))
        if relative
        else (middle - half, middle + half)
    )
    return ConfidenceInterval(low=low, high=high, confidence=CONFIDENCE)


def least_difference_ratio(
    values: Sequence[float], others: ClassSpread | None, drift_ratio: float = 0.0
) -> float | None:
    """Return the least relative change that a second job like this one would show in 80 of 100
    attempts, at a level of 5 %. Return None if the spread is unknown."""
    if min(values) <= 0:
        return None
    error, degrees = _median_error(values, others, relative=True)
    if not degrees:
        return None
    within = (1 + CONFIDENCE) / 2
    by_trials = (student_quantile(within, degrees) + student_quantile(POWER, degrees)) * error
    by_drift = (NORMAL.inv_cdf(within) + NORMAL.inv_cdf(POWER)) * drift_ratio
    return math.expm1(math.sqrt(2) * math.hypot(by_trials, by_drift))


@dataclass(frozen=True)
class CaseSpread:
    """The variance of the logarithms of a case's trials, and its degrees of freedom."""

    variance: float
    degrees: int

    @property
    def mean_variance(self) -> float:
        """The mean of a variance whose median is this one: with d degrees of freedom, the median is
        below the mean (Wilson and Hilferty)."""
        return self.variance / (1 - 2 / (9 * self.degrees)) ** 3


def case_spread(values: Sequence[float]) -> CaseSpread | None:
    """Return how much the trials of one case differ, or None for fewer than two trials or for
    values that are not positive."""
    if len(values) < 2 or min(values) <= 0:
        return None
    return CaseSpread(_variance([math.log(value) for value in values]), len(values) - 1)


class Spreads:
    """How much the trials of one case differ, over a set of cases.

    The set may have thousands of cases, and each of them is in turn left out. So adding or removing
    a case and reading the result take only microseconds.
    """

    def __init__(self, cases: Iterable[CaseSpread | None] = ()) -> None:
        """Start with these cases; None stands for a case without a known spread."""
        self._variances: list[float] = []  # in order
        self._degrees = 0
        for one in cases:
            self.add(one)

    def add(self, one: CaseSpread | None) -> None:
        """Add a case."""
        if one is not None:
            bisect.insort(self._variances, one.mean_variance)
            self._degrees += one.degrees

    def remove(self, one: CaseSpread | None) -> None:
        """Remove a case that was added."""
        if one is not None:
            position = bisect.bisect_left(self._variances, one.mean_variance)
            removed = self._variances.pop(position)
            assert removed == one.mean_variance, "it was never added"
            self._degrees -= one.degrees

    @property
    def together(self) -> ClassSpread | None:
        """The median of the variances, so that one bad case does not dominate; None if no spread is
        known."""
        cases = len(self._variances)
        if not cases:
            return None
        variance = (self._variances[(cases - 1) // 2] + self._variances[cases // 2]) / 2
        return ClassSpread(deviation_ratio=math.sqrt(variance), degrees=self._degrees, cases=cases)


def _median_error(
    values: Sequence[float], others: ClassSpread | None, *, relative: bool
) -> tuple[float, int]:
    """Return the standard error of the median (of logarithms, if `relative`) and its degrees of
    freedom; 0 degrees mean that the spread is unknown."""
    n = len(values)
    shown = [math.log(value) for value in values] if relative else list(values)
    total, degrees = 0.0, n - 1
    if degrees:
        total = _variance(shown) * degrees
    if others is not None:
        weight = min(others.degrees, CLASS_DEGREES_MOST)
        total += others.deviation_ratio**2 * weight
        degrees += weight
    if not degrees:
        return 0.0, 0
    # The variance of the median of normal values, over that of one value: 1 for n = 1, towards
    # pi/2n for many.
    factor = math.pi / (2 * n - 2 + math.pi)
    return math.sqrt(total / degrees * factor), degrees


@functools.cache
def student_quantile(probability: float, degrees: int) -> float:
    """Return the value that Student's t with `degrees` degrees of freedom stays below with
    `probability`, which must be above 0.5."""
    low, high = 0.0, 1.0
    while student_below(high, degrees) < probability:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if student_below(middle, degrees) < probability else (low, middle)
        )
    return high


def student_below(t: float, degrees: int) -> float:
    """Return the probability that Student's t is below `t`, which must not be negative.

    After Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan2(t, math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    square = cosine**2
    for k in range(2 + odd, degrees, 2):
        term *= (k - 1) / k * square
        total += term
    within = (angle + sine * total) * 2 / math.pi if odd else sine * total
    return (1 + within) / 2


def _variance(values: Sequence[float]) -> float:
    """Return the variance with n - 1 in the denominator. It uses floating point:
    statistics.variance is exact and twenty times as slow."""
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _standard_deviation(values: Sequence[float]) -> float:
    return math.sqrt(_variance(values))


def _half_width_ratio(interval: ConfidenceInterval, median: float) -> float | None:
    if not interval.confidence or median == 0:
        return None
    return (interval.high - interval.low) / 2 / abs(median)


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Return the positions of outliers: values whose modified z-score (distance from the median
    over the median absolute deviation) is above 14.826. Fewer than 5 values have none."""
    if len(values) < OUTLIER_TRIALS_LEAST:
        return ()
    median = statistics.median(values)
    deviation = max(median_absolute_deviation(values), LEAST_DEVIATION_RATIO * abs(median))
    if deviation == 0:
        return ()
    scores = [abs(value - median) / deviation for value in values]
    return tuple(i for i, score in enumerate(scores) if score > OUTLIER_SCORE)


def instability(values: Sequence[float]) -> str | None:
    """Return why these trials are unstable by pyperf's rules, or None when they are stable.

    Unstable means a standard deviation of at least 10 % of the mean, or a minimum or maximum at
    least 50 % off the mean.
    """
    mean = statistics.fmean(values)
    if len(values) < 2 or mean == 0:
        return None
    deviation_ratio = _standard_deviation(values) / abs(mean)
    if deviation_ratio >= UNSTABLE_DEVIATION_RATIO:
        return (
            f"the standard deviation is {percent(deviation_ratio)} of the mean (10 % is too much)"
        )
    for name, extreme in (("lowest", min(values)), ("highest", max(values))):
        distance_ratio = abs(extreme - mean) / abs(mean)
        if distance_ratio >= UNSTABLE_RANGE_RATIO:
            return f"the {name} trial is {percent(distance_ratio)} off the mean (50 % is too much)"
    return None
