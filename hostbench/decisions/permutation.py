"""Exact tests of a whole report: which of many figures differ between two groups of jobs.

All figures are judged together, by the largest of their statistics over the arrangements of the
jobs (Westfall and Young, "Resampling-Based Multiple Testing", 1993; in steps: Romano and Wolf,
"Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing", 2005). Where no figure
differs, jobs may change sides, so any is said to differ in at most 5 of 100 reports whatever the
distributions are, and however the figures of one job hang together.
"""

import itertools
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# All arrangements, where there are no more; else so many, drawn at random. An exact test of five
# in a hundred needs 20 at least.
ARRANGEMENTS_MOST = 2000
# What the other figures of a class count for in the variance of one, in degrees of freedom.
CLASS_DEGREES = 2


@dataclass(frozen=True)
class Column:
    """One figure over the jobs: `values` are logarithms, None where a job has none; columns of one
    `group` are of one class, whose variances are alike."""

    group: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Judged:
    """What the test says of a column: the difference of the means (`second` - `first`), its
    standard error, and the quantile of the joint statistic that it is held against. It differs
    where `difference` lies more than `quantile` x `error` from 0."""

    difference: float
    error: float
    quantile: float


def arrangements(first: int, second: int, seed: str) -> list[tuple[int, ...]]:
    """Which jobs are on the second side, the true arrangement foremost. Jobs are numbered, those of
    the first side from 0."""
    everyone, true = range(first + second), tuple(range(first, first + second))
    if math.comb(first + second, second) <= ARRANGEMENTS_MOST:
        found = list(itertools.combinations(everyone, second))
        found.remove(true)
        return [true, *found]
    draw = random.Random(seed)  # noqa: S311 - the same jobs, the same answer
    others = (tuple(draw.sample(everyone, second)) for _ in range(ARRANGEMENTS_MOST - 1))
    return [true, *others]


def two_sides(
    columns: Sequence[Column], first: int, second: int, *, confidence: float, seed: str = ""
) -> list[Judged] | None:
    """What is known of every column; None where there are too few jobs for any arrangement to be
    rare. Each column needs two values a side."""
    tried = arrangements(first, second, seed)
    allowed = math.floor((1 - confidence) * len(tried) * (1 + 1e-9))
    # The true one and, of sides as long as each other, its mirror image.
    if allowed < (2 if first == second else 1):
        return None
    true = _Statistics(columns, first + second)
    found = [true.of(arrangement) for arrangement in tried]
    differences, errors = true.parts(tried[0])
    quantiles = _in_steps(found, allowed)
    return [
        Judged(difference, error, quantile)
        for difference, error, quantile in zip(differences, errors, quantiles, strict=True)
    ]


def sign_flips(
    columns: Sequence[Sequence[float]], *, confidence: float, seed: str = ""
) -> list[Judged] | None:
    """The same for pairs, such as blocks of A B B A: each column has one difference a block, and
    where nothing differs each block may as well have the other sign."""
    blocks = len(columns[0])
    total = 1 << blocks
    if total <= ARRANGEMENTS_MOST:
        signs: Iterator[int] = iter(range(total))
    else:
        draw = random.Random(seed)  # noqa: S311 - the same blocks, the same answer
        signs = itertools.chain(
            [0], (draw.getrandbits(blocks) for _ in range(ARRANGEMENTS_MOST - 1))
        )
    sums = [math.fsum(value * value for value in column) for column in columns]

    def parts(flipped: int) -> list[tuple[float, float]]:
        means = [
            math.fsum(-v if flipped >> i & 1 else v for i, v in enumerate(column)) / blocks
            for column in columns
        ]
        return [
            (mean, math.sqrt(max(0.0, total / blocks - mean * mean) / (blocks - 1)))
            for mean, total in zip(means, sums, strict=True)
        ]

    found = [[_ratio(*part) for part in parts(flipped)] for flipped in signs]
    allowed = math.floor((1 - confidence) * len(found) * (1 + 1e-9))
    if blocks < 2 or allowed < 2:
        return None
    quantiles = _in_steps(found, allowed)
    return [
        Judged(mean, error, quantile)
        for (mean, error), quantile in zip(parts(0), quantiles, strict=True)
    ]


def _ratio(difference: float, error: float) -> float:
    if error == 0:
        return math.inf if difference else 0.0
    return abs(difference) / error


class _Statistics:
    """Sums that stay the same whatever the arrangement, and what depends on it."""

    def __init__(self, columns: Sequence[Column], jobs: int) -> None:
        self._values = [[value or 0.0 for value in column.values] for column in columns]
        self._present = [[value is not None for value in column.values] for column in columns]
        self._whole = [all(present) for present in self._present]
        self._n = [sum(present) for present in self._present]
        # From its own mean, so that small differences of large logarithms keep their digits.
        for values, present, n in zip(self._values, self._present, self._n, strict=True):
            mean = math.fsum(values) / n
            for job in range(jobs):
                values[job] = values[job] - mean if present[job] else 0.0
        self._squares = [math.fsum(v * v for v in values) for values in self._values]
        groups: dict[str, list[int]] = {}
        for number, column in enumerate(columns):
            groups.setdefault(column.group, []).append(number)
        self._groups = list(groups.values())

    def of(self, second: tuple[int, ...]) -> list[float]:
        """The statistic of every column, where these jobs are on the second side."""
        return [
            _ratio(difference, error) for difference, error in zip(*self.parts(second), strict=True)
        ]

    def parts(self, second: tuple[int, ...]) -> tuple[list[float], list[float]]:
        """The difference of the means of every column, and its standard error."""
        differences, variances, factors, degrees = [], [], [], []
        for values, present, whole, n, squares in zip(
            self._values, self._present, self._whole, self._n, self._squares, strict=True
        ):
            m = len(second) if whole else sum(present[job] for job in second)
            if not 0 < m < n or n < 3:
                differences.append(0.0)
                variances.append(math.nan)
                factors.append(1.0)
                degrees.append(0)
                continue
            total = sum([values[job] for job in second])
            factor = 1 / m + 1 / (n - m)
            difference = total * factor  # the values of both sides sum to 0
            differences.append(difference)
            variances.append(max(0.0, squares - difference * difference / factor) / (n - 2))
            factors.append(factor)
            degrees.append(n - 2)
        errors = [0.0] * len(variances)
        for group in self._groups:
            known = [variances[number] for number in group if degrees[number]]
            usual = statistics.median(known) if known else 0.0
            for number in group:
                own = degrees[number]
                if own:
                    moderated = (variances[number] * own + usual * CLASS_DEGREES) / (
                        own + CLASS_DEGREES
                    )
                    errors[number] = math.sqrt(moderated * factors[number])
        return differences, errors


def _in_steps(found: Sequence[Sequence[float]], allowed: int) -> list[float]:
    """The quantile of the largest statistic for every column, those that differ put aside step by
    step: `found` has a row an arrangement, the true one foremost; a column differs where the
    largest statistic is as large as its own in at most `allowed` arrangements."""
    true = found[0]
    quantiles = [math.inf] * len(true)
    left = list(range(len(true)))
    while left:
        largest = sorted((max([row[number] for number in left]) for row in found), reverse=True)
        quantile = largest[allowed]
        for number in left:
            quantiles[number] = quantile
        staying = [number for number in left if true[number] <= quantile]
        if len(staying) == len(left):
            break
        left = staying
    return quantiles
