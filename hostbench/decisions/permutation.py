"""Exact tests of a whole report: which of many figures differ between two groups of jobs.

All figures are judged together, by the largest of their statistics over the arrangements of the
jobs (Westfall and Young, "Resampling-Based Multiple Testing", 1993; in steps: Romano and Wolf,
"Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing", 2005). Where no figure
differs, jobs may change sides. So at most 5 of 100 such reports call any figure different, whatever
the distributions are and however the figures of one job depend on each other.
"""

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

# All arrangements if there are no more than this, else this many, drawn at random. An exact test at
# 5 % needs at least 20.
ARRANGEMENTS_MOST = 2000
# The degrees of freedom with which the other figures of a class count in the variance of one.
CLASS_DEGREES = 2


@dataclass(frozen=True)
class Column:
    """One figure over the jobs: `values` are logarithms, None where a job has none. Columns of one
    `group` have similar variances."""

    group: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Judged:
    """The result for a column: the difference of the means (`second` - `first`), its standard
    error, and the quantile of the joint statistic.

    The column differs if `difference` is more than `quantile` x `error` away from 0.
    """

    difference: float
    error: float
    quantile: float


@dataclass(frozen=True)
class Arrangement:
    """Which jobs are on which side. The other jobs only show how much jobs vary."""

    first: tuple[int, ...]
    second: tuple[int, ...]


def arrangements(first: int, second: int, others: int = 0, seed: str = "") -> list[Arrangement]:
    """Return all arrangements that look different, or ARRANGEMENTS_MOST drawn at random; the true
    one comes first.

    If both sides have the same length, the mirror image of an arrangement is left out. The jobs are
    numbered: from 0 those of the first side, then those of the second, then the others.
    """
    jobs = range(first + second + others)
    true = Arrangement(tuple(jobs[:first]), tuple(jobs[first : first + second]))
    sided = first + second
    images = 2 if first == second else 1
    if math.comb(len(jobs), sided) * math.comb(sided, second) <= images * ARRANGEMENTS_MOST:
        found = [
            Arrangement(tuple(job for job in chosen if job not in on_second), on_second)
            for chosen in itertools.combinations(jobs, sided)
            for on_second in itertools.combinations(chosen[images - 1 :], second)
        ]
        found.remove(true)
        return [true, *found]
    draw = random.Random(seed)  # noqa: S311 - the same jobs, the same answer
    samples = (tuple(draw.sample(jobs, sided)) for _ in range(ARRANGEMENTS_MOST - 1))
    return [true, *(Arrangement(one[:first], one[first:]) for one in samples)]


def two_sides(
    columns: Sequence[Column],
    first: int,
    second: int,
    *,
    confidence: float,
    seed: str = "",
) -> list[Judged] | None:
    """Return the result for every column, or None if there are too few jobs for any arrangement to
    be rare.

    The values of a column are those of the jobs of the first side, of the second, and of the
    others, if any. Each column needs a value on either side, and three in all.
    """
    others = len(columns[0].values) - first - second
    tried = arrangements(first, second, others, seed)
    allowed = math.floor((1 - confidence) * len(tried) * (1 + 1e-9))
    if allowed < 1:
        return None
    sides = _Sides(tried)
    groups: dict[str, list[int]] = {}
    for number, column in enumerate(columns):
        groups.setdefault(column.group, []).append(number)
    estimates: dict[int, _Estimate] = {}
    for own in groups.values():
        of_group = _moderated([sides.spread(columns[number]) for number in own])
        estimates.update(zip(own, of_group, strict=True))
    return _judged([estimates[number] for number in range(len(columns))], allowed)


def sign_flips(
    columns: Sequence[Sequence[float]], *, confidence: float, seed: str = ""
) -> list[Judged] | None:
    """Return the same for pairs, such as blocks of A B B A: each column has one difference for each
    block.

    Where nothing differs, each sign of a block is equally likely.
    """
    blocks = len(columns[0])
    if 1 << blocks <= ARRANGEMENTS_MOST:
        flipped = list(range(1 << blocks))
    else:
        draw = random.Random(seed)  # noqa: S311 - the same blocks, the same answer
        flipped = [0, *(draw.getrandbits(blocks) for _ in range(ARRANGEMENTS_MOST - 1))]
    allowed = math.floor((1 - confidence) * len(flipped) * (1 + 1e-9))
    if blocks < 2 or allowed < 2:
        return None
    return _judged([_flipped_signs(column, flipped) for column in columns], allowed)


class _Estimate(NamedTuple):
    """The difference of the means of a column and its standard error in the true arrangement, and
    the ratio between them in each arrangement, the true one first."""

    difference: float
    error: float
    ratios: list[float]


def _estimate(differences: Sequence[float], errors: Sequence[float]) -> _Estimate:
    ratios = [
        abs(difference) / error if error else math.inf if difference else 0.0
        for difference, error in zip(differences, errors, strict=True)
    ]
    return _Estimate(differences[0], errors[0], ratios)


def _judged(estimates: Sequence[_Estimate], allowed: int) -> list[Judged]:
    found = list(zip(*(one.ratios for one in estimates), strict=True))
    return [
        Judged(one.difference, one.error, quantile)
        for one, quantile in zip(estimates, _in_steps(found, allowed), strict=True)
    ]


def _flipped_signs(column: Sequence[float], flipped: Sequence[int]) -> _Estimate:
    """Return the means of a column with the signs of these blocks flipped, one bit for each."""
    blocks, total = len(column), math.fsum(column)
    squares = math.fsum(value * value for value in column)
    means = [(total - 2 * one) / blocks for one in _sums(column, flipped)]
    errors = [math.sqrt(max(0.0, squares / blocks - mean * mean) / (blocks - 1)) for mean in means]
    return _estimate(means, errors)


def _bits(jobs: Iterable[int]) -> int:
    """Return a number with a bit for each of the jobs."""
    return sum(1 << job for job in jobs)


def _sums(values: Sequence[float], chosen: Sequence[int]) -> list[float]:
    """Return the sum of the values that each number of `chosen` has a bit for, from tables of the
    sums of eight values."""
    sums = [0.0] * len(chosen)
    for start in range(0, len(values), 8):
        table = [0.0]
        for value in values[start : start + 8]:
            table += [value + one for one in table]
        sums = [
            so_far + table[bits >> start & 0xFF] for so_far, bits in zip(sums, chosen, strict=True)
        ]
    return sums


@dataclass(frozen=True)
class _Divided:
    """How an arrangement divides the jobs that have a column, by arrangement: one over their number
    on either side and among the others, 0 where there are none, and the degrees of freedom of the
    variance within them. All are 0 where a side has no job, or the variance is unknown."""

    first: list[float]
    second: list[float]
    others: list[float]
    degrees: list[int]


class _Spread(NamedTuple):
    """The differences of the means of a column and its variances, by arrangement. If a side has no
    value, the difference is 0 and the variance is None."""

    differences: list[float]
    variances: list[float | None]
    divided: _Divided


class _Sides:
    """The jobs on either side in each arrangement, as numbers with a bit for each job."""

    def __init__(self, tried: Sequence[Arrangement]) -> None:
        self._first = [_bits(one.first) for one in tried]
        self._second = [_bits(one.second) for one in tried]
        self._divided: dict[int, _Divided] = {}

    def spread(self, column: Column) -> _Spread:
        """Return the spread of a column."""
        present = _bits(job for job, value in enumerate(column.values) if value is not None)
        if present not in self._divided:
            self._divided[present] = self._divide(present)
        divided = self._divided[present]
        values = _centred(column)
        squares = math.fsum(value * value for value in values)
        sums = _sums(values, self._first), _sums(values, self._second)
        by = divided.first, divided.second
        differences = [b * by_b - a * by_a for a, b, by_a, by_b in zip(*sums, *by, strict=True)]
        # All values sum to 0, so the others sum to -(a + b).
        within = [
            squares - a * a * by_a - b * b * by_b - (a + b) ** 2 * by_others
            for a, b, by_a, by_b, by_others in zip(*sums, *by, divided.others, strict=True)
        ]
        variances = [
            max(0.0, one) / degrees if degrees else None
            for one, degrees in zip(within, divided.degrees, strict=True)
        ]
        return _Spread(differences, variances, divided)

    def _divide(self, present: int) -> _Divided:
        rows = []
        for first, second in zip(self._first, self._second, strict=True):
            n = present.bit_count()
            n_first, n_second = (present & first).bit_count(), (present & second).bit_count()
            n_others = n - n_first - n_second
            degrees = n - (3 if n_others else 2)
            if n_first and n_second and degrees > 0:
                by_others = 1 / n_others if n_others else 0.0
                rows.append((1 / n_first, 1 / n_second, by_others, degrees))
            else:
                rows.append((0.0, 0.0, 0.0, 0))
        return _Divided(*map(list, zip(*rows, strict=True)))


def _centred(column: Column) -> list[float]:
    """Return the values minus their mean, so that small differences of large logarithms keep their
    digits; 0 where one is missing."""
    present = [value for value in column.values if value is not None]
    mean = math.fsum(present) / len(present)
    return [0.0 if value is None else value - mean for value in column.values]


def _moderated(group: Sequence[_Spread]) -> Iterator[_Estimate]:
    """Yield the estimates of the columns of a group: in each variance the usual one of the group
    counts, too."""
    usual = [_median(row) for row in zip(*(one.variances for one in group), strict=True)]
    for differences, variances, by in group:
        errors = [
            0.0
            if variance is None
            else math.sqrt(
                (variance * degrees + shared * CLASS_DEGREES)
                / (degrees + CLASS_DEGREES)
                * (by_first + by_second)
            )
            for variance, shared, degrees, by_first, by_second in zip(
                variances, usual, by.degrees, by.first, by.second, strict=True
            )
        ]
        yield _estimate(differences, errors)


def _median(values: Iterable[float | None]) -> float:
    """Return the median of the known values, 0 without any. It is called for each arrangement, and
    statistics.median takes twice as long."""
    known = sorted([value for value in values if value is not None])
    middle = len(known) // 2
    return (known[middle] + known[~middle]) / 2 if known else 0.0


def _in_steps(found: Sequence[Sequence[float]], allowed: int) -> list[float]:
    """Return the quantile of the largest statistic for every column, putting aside in each step
    those that differ.

    `found` has a row for each arrangement, the true one first. A column differs if the largest
    statistic reaches its own in at most `allowed` arrangements.
    """
    true = found[0]
    quantiles = [math.inf] * len(true)
    left = list(range(len(true)))
    while left:
        rows = (
            found if len(left) == len(true) else ([row[number] for number in left] for row in found)
        )
        largest = sorted(map(max, rows), reverse=True)
        quantile = largest[allowed]
        for number in left:
            quantiles[number] = quantile
        staying = [number for number in left if true[number] <= quantile]
        if len(staying) == len(left):
            break
        left = staying
    return quantiles
