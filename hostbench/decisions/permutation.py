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


@dataclass(frozen=True)
class Arrangement:
    """Which jobs are on which side; those of neither only tell how jobs vary."""

    first: tuple[int, ...]
    second: tuple[int, ...]


def arrangements(first: int, second: int, others: int = 0, seed: str = "") -> list[Arrangement]:
    """All that look different, or ARRANGEMENTS_MOST drawn at random, the true one foremost: where
    sides are as long as each other, the mirror image of one is none. Jobs are numbered: those of
    the first side from 0, then those of the second, then the others."""
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
    """What is known of every column, whose values are of the jobs of the first side, of the second,
    and of the others, if there are any; None where there are too few jobs for any arrangement to
    be rare. Each column needs a value on either side, and three in all."""
    others = len(columns[0].values) - first - second
    tried = arrangements(first, second, others, seed)
    allowed = math.floor((1 - confidence) * len(tried) * (1 + 1e-9))
    if allowed < 1:
        return None
    true = _Statistics(columns)
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
    """What stays the same whatever the arrangement, and what depends on it."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._values: list[list[float]] = []
        self._missing: list[frozenset[int]] = []
        self._squares: list[float] = []
        groups: dict[str, list[int]] = {}
        for number, column in enumerate(columns):
            present = [value for value in column.values if value is not None]
            # From their mean, so that small differences of large logarithms keep their digits.
            mean = math.fsum(present) / len(present)
            values = [0.0 if value is None else value - mean for value in column.values]
            self._values.append(values)
            self._missing.append(
                frozenset(job for job, value in enumerate(column.values) if value is None)
            )
            self._squares.append(math.fsum(value * value for value in values))
            groups.setdefault(column.group, []).append(number)
        self._groups = list(groups.values())

    def of(self, arrangement: Arrangement) -> list[float]:
        """The statistic of every column."""
        return [
            _ratio(difference, error)
            for difference, error in zip(*self.parts(arrangement), strict=True)
        ]

    def parts(self, arrangement: Arrangement) -> tuple[list[float], list[float]]:
        """The difference of the means of every column, and its standard error; 0 and 0 where a side
        has no value."""
        on_first, on_second = arrangement.first, arrangement.second
        differences: list[float] = []
        known: list[tuple[float, int, float] | None] = []  # variance, degrees of freedom, factor
        for values, missing, squares in zip(
            self._values, self._missing, self._squares, strict=True
        ):
            n = len(values) - len(missing)
            n_first, n_second = len(on_first), len(on_second)
            if missing:
                n_first -= len(missing.intersection(on_first))
                n_second -= len(missing.intersection(on_second))
            n_others = n - n_first - n_second
            degrees = n - (3 if n_others else 2)
            if not n_first or not n_second or degrees < 1:
                differences.append(0.0)
                known.append(None)
                continue
            of_first = sum([values[job] for job in on_first])
            of_second = sum([values[job] for job in on_second])
            between = of_first**2 / n_first + of_second**2 / n_second
            if n_others:
                between += (of_first + of_second) ** 2 / n_others  # all values sum to 0
            differences.append(of_second / n_second - of_first / n_first)
            variance = max(0.0, squares - between) / degrees
            known.append((variance, degrees, 1 / n_first + 1 / n_second))
        errors = [0.0] * len(differences)
        for group in self._groups:
            own = [(number, one) for number in group if (one := known[number]) is not None]
            usual = statistics.median(one[0] for _, one in own) if own else 0.0
            for number, (variance, degrees, factor) in own:
                moderated = (variance * degrees + usual * CLASS_DEGREES) / (degrees + CLASS_DEGREES)
                errors[number] = math.sqrt(moderated * factor)
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
