"""Where the mean of a series changed: binary segmentation, judged by permutations that repeat the
whole search.

The place of a change is chosen from the data, so a t test of the two sides finds one in almost any
series. Here the statistic is the largest over all splits. It is compared with the largest over all
splits of the same values in other orders (as in E-Divisive: Matteson and James, "A Nonparametric
Approach for Multiple Change Point Analysis of Multivariate Data", 2014).

Other orders show the effect of chance only if a value does not depend on those before it. Jobs that
follow each other share neighbours and heat, so the means of two runs of jobs differ more than those
of as many independent values. How much more depends on how fast the host drifts, and a few dozen
jobs cannot rule a drift out. So the squared statistic of a split, before the comparison, is divided
by the most that two kinds of drift make of it:

- Neighbours resemble each other, with an autocorrelation r (AR(1)): (1 + r) / (1 - r). r is one
  standard error more than the series itself shows, and at least ASSUMED_AUTOCORRELATION.
- Neighbours have ASSUMED_AUTOCORRELATION because a part of the variance drifts slowly: DRIFT_KEPT
  of it remains from one job to the next, and the rest is independent. Its effect grows with the
  length of the runs, which AR(1) does not show.
"""

import functools
import itertools
import math
import operator
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# One or two strange jobs are not a change.
SEGMENT_LEAST = 3
# The number of orders for a whole series. A part of the series has a part of the error rate, and so
# needs more.
ORDERS = 500
# The autocorrelation of neighbouring jobs: no figure of real jobs on a shared guest, 70 to 90 s
# apart, showed more than 0.33 (benchmarks/decisions).
ASSUMED_AUTOCORRELATION = 0.4
# For a slow drift. In those jobs, such a drift had at most a quarter of a figure's variance; with
# the autocorrelation assumed above, it has at most four ninths.
DRIFT_KEPT = 0.9
# In a series with more autocorrelation than this, no widening makes a change certain.
_AUTOCORRELATION_MOST = 0.95
# Equal statistics may differ in their last digits.
_EQUAL = 1e-9
# For a history and the parts between its changes.
LENGTHS_KEPT = 8


@dataclass(frozen=True)
class Split:
    """A change between two runs of values: from `begin` to `after`, and from `after` to `end`, as
    positions in the series.

    `difference` is that of their means, and `error` its standard error, autocorrelation included.
    `quantile` is that of the largest |t| over all splits of the runs.
    """

    begin: int
    after: int
    end: int
    difference: float
    error: float
    quantile: float


def series_least(confidence: float) -> int:
    """Return the least number of values that can show a change. With fewer, even the best-sorted
    order is too frequent.

    With a confidence of 95 % it is eight; with a tenth of that error rate, twelve.
    """
    return next(n for n in itertools.count(2 * SEGMENT_LEAST) if _rarest(n) <= 1 - confidence)


def _rarest(length: int) -> float:
    """Return how often a random order is the best-sorted one, or its mirror image."""
    return 2 / math.comb(length, length // 2)


@dataclass(frozen=True)
class Found:
    """What a series shows.

    - `splits`: its changes, the earliest first.
    - `error`: the largest standard error of a difference between two parts of a series without a
      change, each with at least `side` values; `quantile`: that of the largest |t| over all its
      splits.
    - `autocorrelation`: that of neighbours; None: too few values.
    """

    splits: tuple[Split, ...]
    side: int
    error: float
    quantile: float
    autocorrelation: float | None


def change_points(
    values: Sequence[float], *, confidence: float, side: int = SEGMENT_LEAST
) -> Found:
    """Return the changes of a series.

    `side` is the number of values before and after the change for which `error` is given, at most
    half of the series. The same series always gives the same answer.
    """
    side = min(side, len(values) // 2)
    if len(values) < series_least(confidence):
        return Found((), side, 0.0, 0.0, None)
    search = _Search(values, confidence, ASSUMED_AUTOCORRELATION)
    afters = search.afters(0, len(values))
    # With more autocorrelation than assumed, drift alone may explain the changes.
    shown = _autocorrelation(values, afters)
    likely = _likely_at_most(shown, len(values))
    if likely > ASSUMED_AUTOCORRELATION:
        search = _Search(values, confidence, likely)
        afters = search.afters(0, len(values))
    afters = _moved_to_best(values, afters)
    ends = [0, *afters, len(values)]
    residuals = _residuals(values, afters)
    spread = math.sqrt(_squares(residuals) / (len(values) - len(ends) + 1))
    return Found(
        splits=tuple(
            search.described(begin, after, end)
            for begin, after, end in zip(ends, ends[1:], ends[2:], strict=False)
        ),
        side=side,
        error=max(
            search.error(spread, before, len(values))
            for before in range(side, len(values) - side + 1)
        ),
        quantile=_quantile(residuals, confidence),
        autocorrelation=shown,
    )


def _residuals(values: Sequence[float], afters: Sequence[int]) -> list[float]:
    """Return the distances of the values from the means between the changes."""
    ends = [0, *afters, len(values)]
    return [one for begin, end in itertools.pairwise(ends) for one in _centred(values[begin:end])]


def _autocorrelation(values: Sequence[float], afters: Sequence[int]) -> float:
    """Return the autocorrelation of neighbours around the means between the changes.

    Kendall's correction allows for means of the same values ("Note on Bias in the Estimation of
    Autocorrelation", 1954).
    """
    residuals = _residuals(values, afters)
    squares = _squares(residuals)
    if squares <= 0:
        return 0.0
    found = math.fsum(map(operator.mul, residuals, residuals[1:])) / squares
    found += (1 + 3 * found) * (len(afters) + 1) / len(values)
    # For a few alternating values, the corrected one is below -1.
    return max(-_AUTOCORRELATION_MOST, min(found, _AUTOCORRELATION_MOST))


def _likely_at_most(shown: float, count: int) -> float:
    """Return the autocorrelation plus one standard error for that number of values.

    The error is that of AR(1): Bartlett, "On the Theoretical Specification and Sampling Properties
    of Autocorrelated Time-Series", 1946. False changes are found where the values drifted most, and
    the means between them hide that drift, so the remaining values show too little.
    """
    return min(shown + math.sqrt((1 - shown**2) / count), _AUTOCORRELATION_MOST)


class _Search:
    def __init__(self, values: Sequence[float], confidence: float, autocorrelation: float) -> None:
        self._values = values
        self._confidence = confidence
        self._of_neighbours = (1 + autocorrelation) / (1 - autocorrelation)

    def afters(self, begin: int, end: int) -> list[int]:
        """Return the changes between two places, in order.

        Each part of the series has its share of the error rate, so that all parts without a change
        together do not exceed it.
        """
        length = end - begin
        if length < 2 * SEGMENT_LEAST:
            return []
        share = length / len(self._values)
        if _rarest(length) > (1 - self._confidence) * share:
            return []
        values = _centred(self._values[begin:end])
        before = _best_split(values)
        if not self._is_change(values, before, share):
            return []
        after = begin + before
        return [*self.afters(begin, after), after, *self.afters(after, end)]

    def _is_change(self, values: list[float], before: int, share: float) -> bool:
        weights = _weights(len(values))
        total = _squares(values)
        if total <= 0:
            return False
        explained = _largest(values, weights) * (1 - _EQUAL)
        # Relative to the total, which is the same in all orders: t squared, which grows with
        # explained / (total - explained), divided by the effect of drift.
        inflation = self._inflation(before, len(values))
        true = total * explained / (explained + inflation * (total - explained))
        count = math.ceil(ORDERS / share)
        allowed = math.floor((1 - self._confidence) * share * count * (1 + _EQUAL))
        as_large = 1  # the true order is one of them
        for reordered in _orders(len(values), count - 1):
            as_large += _largest(reordered(values), weights) >= true
            if as_large > allowed:
                return False
        return True

    def described(self, begin: int, after: int, end: int) -> Split:
        first, second = self._values[begin:after], self._values[after:end]
        residuals = [*_centred(first), *_centred(second)]
        spread = math.sqrt(_squares(residuals) / (len(residuals) - 2))
        return Split(
            begin=begin,
            after=after,
            end=end,
            difference=statistics.fmean(second) - statistics.fmean(first),
            error=self.error(spread, len(first), len(residuals)),
            quantile=_quantile(residuals, self._confidence),
        )

    def error(self, spread: float, before: int, length: int) -> float:
        """Return the standard error of the difference between the means before and after a split,
        for values with the standard deviation `spread`."""
        inflation = self._inflation(before, length)
        return spread * math.sqrt(inflation * (1 / before + 1 / (length - before)))

    def _inflation(self, before: int, length: int) -> float:
        return max(self._of_neighbours, _of_slow_drift(before, length))


def _of_slow_drift(before: int, length: int) -> float:
    """Return by which factor a slow drift increases the variance of the difference of the means of
    two runs, over what the spread around them suggests for independent values."""
    after = length - before
    of_first, of_second, of_all = map(_variance_of_sum, (before, after, length))
    shared = (of_all - of_first - of_second) / 2
    difference = of_first / before**2 + of_second / after**2 - 2 * shared / (before * after)
    spread = (length - of_first / before - of_second / after) / (length - 2)
    return difference / (1 / before + 1 / after) / spread


@functools.cache
def _variance_of_sum(count: int) -> float:
    """Return the variance of the sum of `count` values of variance 1 with a slow drift, from the
    covariances of all pairs.

    The covariance of two values `apart` places from each other is ASSUMED_AUTOCORRELATION x
    DRIFT_KEPT^(apart - 1).
    """
    pairs = (count - (1 - DRIFT_KEPT**count) / (1 - DRIFT_KEPT)) / (1 - DRIFT_KEPT)
    return count + 2 * ASSUMED_AUTOCORRELATION * pairs


def _moved_to_best(values: Sequence[float], afters: list[int]) -> list[int]:
    """Return the changes, each moved to its best place between its neighbours: it was found before
    some of these were known."""
    moved = list(afters)
    for number in range(len(moved)):
        begin = moved[number - 1] if number else 0
        end = moved[number + 1] if number + 1 < len(moved) else len(values)
        moved[number] = begin + _best_split(_centred(values[begin:end]))
    return moved


def _centred(values: Sequence[float]) -> list[float]:
    mean = statistics.fmean(values)
    return [value - mean for value in values]


def _squares(values: Sequence[float]) -> float:
    return math.fsum(value * value for value in values)


def _weights(length: int) -> list[float]:
    """Return the weight of the squared sum before each split: with it, the sum of squares that the
    split explains."""
    splits = range(SEGMENT_LEAST, length - SEGMENT_LEAST + 1)
    return [length / (before * (length - before)) for before in splits]


def _explained(values: Sequence[float], weights: Sequence[float]) -> "map[float]":
    """Return the sum of squares that each split explains, for values with a mean of 0."""
    sums = list(
        itertools.islice(
            itertools.accumulate(values), SEGMENT_LEAST - 1, len(values) - SEGMENT_LEAST
        )
    )
    return map(operator.mul, map(operator.mul, sums, sums), weights)


def _largest(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the statistic. The total does not depend on the order, so the largest explained sum of
    squares belongs to the largest t."""
    return max(_explained(values, weights))


def _best_split(values: Sequence[float]) -> int:
    """Return how many values are before the best split."""
    explained = list(_explained(values, _weights(len(values))))
    return SEGMENT_LEAST + explained.index(max(explained))


def _quantile(residuals: Sequence[float], confidence: float) -> float:
    """Return the quantile of the largest |t| over all splits of values without a change."""
    total = _squares(residuals)
    if total <= 0:
        return 0.0
    weights = _weights(len(residuals))
    orders = _orders(len(residuals), ORDERS - 1)
    found = sorted(_largest(reordered(residuals), weights) / total for reordered in orders)
    share = min(found[-math.floor((1 - confidence) * ORDERS * (1 + _EQUAL))], 1 - _EQUAL)
    return math.sqrt(share / (1 - share) * (len(residuals) - 2))


Reordered = Callable[[Sequence[float]], tuple[float, ...]]


def _orders(length: int, count: int) -> Iterator[Reordered]:
    """Yield orders of `length` values, drawn at random, each as a function of the values.

    All series of one length share the same orders, as each figure of a job has that length: drawing
    an order takes longer than using it.
    """
    drawn, draw = _drawn(length)
    for number in range(count):
        if number == len(drawn):
            drawn.append(draw())
        yield drawn[number]


@functools.lru_cache(maxsize=LENGTHS_KEPT)
def _drawn(length: int) -> tuple[list[Reordered], Callable[[], Reordered]]:
    """Return the orders drawn so far, and a function that draws the next one."""
    rng = random.Random(length)  # noqa: S311 - the same series, the same answer
    places = list(range(length))

    def draw() -> Reordered:
        keys = [rng.random() for _ in places]
        return operator.itemgetter(*sorted(places, key=keys.__getitem__))

    return [], draw
