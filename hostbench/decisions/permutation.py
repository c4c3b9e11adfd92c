"""Exact tests of a whole report: which of many figures differ between two groups of jobs.

All figures are judged together, by the largest of their statistics over the arrangements of the
jobs (Westfall and Young, "Resampling-Based Multiple Testing", 1993; in steps: Romano and Wolf,
"Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing", 2005). Where no figure
differs, jobs may change sides. So at most 5 of 100 such reports call any figure different, whatever
the distributions are and however the figures of one job depend on each other.
"""

import itertools
import math
import operator
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    of_columns = _Statistics(columns)
    found = [of_columns.of(arrangement) for arrangement in tried]
    quantiles = _in_steps(found, allowed)
    judged = map(Judged, *of_columns.parts(tried[0]), quantiles)
    return [
        one
        for _, one in sorted(zip(of_columns.order, judged, strict=True), key=operator.itemgetter(0))
    ]


def sign_flips(
    columns: Sequence[Sequence[float]], *, confidence: float, seed: str = ""
) -> list[Judged] | None:
    """Return the same for pairs, such as blocks of A B B A: each column has one difference for each
    block.

    Where nothing differs, each sign of a block is equally likely.
    """
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


@dataclass(frozen=True)
class _Block:
    """Columns of one group with values for the same jobs, so that an arrangement gives them equally
    many on either side.

    `present` has a bit for each of the jobs; `place` is the block's place among the columns of the
    group.
    """

    present: int
    place: slice
    squares: list[float]


class _Group:
    """Columns of one class by block. `numbers` are the numbers of the columns; `by_job` has a row
    of values for each job, 0 where one is missing."""

    def __init__(self, columns: Mapping[int, Column]) -> None:
        alike: dict[int, list[int]] = {}
        for number, column in columns.items():
            present = _bits(job for job, value in enumerate(column.values) if value is not None)
            alike.setdefault(present, []).append(number)
        self.numbers = [number for own in alike.values() for number in own]
        self.blocks = []
        values: list[list[float]] = []
        for present, own in alike.items():
            place = slice(len(values), len(values) + len(own))
            values += [_centred(columns[number]) for number in own]
            squares = [math.fsum(value * value for value in one) for one in values[place]]
            self.blocks.append(_Block(present, place, squares))
        self.by_job = list(zip(*values, strict=True))

    def sums(self, jobs: Sequence[int]) -> list[float]:
        """Return the sum of each column over these jobs."""
        return list(map(sum, zip(*[self.by_job[job] for job in jobs], strict=True)))


def _bits(jobs: Iterable[int]) -> int:
    """Return a number with a bit for each of the jobs."""
    return sum(1 << job for job in jobs)


def _centred(column: Column) -> list[float]:
    """Return the values minus their mean, so that small differences of large logarithms keep their
    digits; 0 where one is missing."""
    present = [value for value in column.values if value is not None]
    mean = math.fsum(present) / len(present)
    return [0.0 if value is None else value - mean for value in column.values]


class _Statistics:
    """Computes what is the same for all arrangements once, and the rest for each. Columns are in
    the order of their groups; `order` has their numbers."""

    def __init__(self, columns: Sequence[Column]) -> None:
        groups: dict[str, dict[int, Column]] = {}
        for number, column in enumerate(columns):
            groups.setdefault(column.group, {})[number] = column
        self._groups = [_Group(own) for own in groups.values()]
        self.order = [number for group in self._groups for number in group.numbers]

    def of(self, arrangement: Arrangement) -> list[float]:
        """Return the statistic of every column."""
        return [
            abs(difference) / error if error else _ratio(difference, error)
            for difference, error in zip(*self.parts(arrangement), strict=True)
        ]

    def parts(self, arrangement: Arrangement) -> tuple[list[float], list[float]]:
        """Return the difference of the means of every column, and its standard error; 0 and 0 where
        a side has no value."""
        differences: list[float] = []
        errors: list[float] = []
        on_first, on_second = _bits(arrangement.first), _bits(arrangement.second)
        for group in self._groups:
            of_first, of_second = group.sums(arrangement.first), group.sums(arrangement.second)
            known = [
                _spread(block, on_first, on_second, of_first[block.place], of_second[block.place])
                for block in group.blocks
            ]
            variances = [variance for one in known for variance in one.variances]
            usual = statistics.median(variances) if variances else 0.0
            for one in known:
                differences += one.differences
                shared, degrees = usual * CLASS_DEGREES, one.degrees + CLASS_DEGREES
                errors += [
                    math.sqrt((variance * one.degrees + shared) / degrees * one.factor)
                    for variance in one.variances
                ] or [0.0] * len(one.differences)
        return differences, errors


class _Spread(NamedTuple):
    """The columns of a block in one arrangement: the differences of the means, the variances, their
    degrees of freedom, and the factor from a variance to that of the difference.

    If a side has no value, the differences are 0 and there are no variances.
    """

    differences: list[float]
    variances: list[float]
    degrees: int
    factor: float


def _spread(
    block: _Block, on_first: int, on_second: int, of_first: list[float], of_second: list[float]
) -> _Spread:
    """Return the spread of a block. `of_first` and `of_second` are the sums of the columns over the
    jobs of either side."""
    n = block.present.bit_count()
    n_first = (block.present & on_first).bit_count()
    n_second = (block.present & on_second).bit_count()
    n_others = n - n_first - n_second
    degrees = n - (3 if n_others else 2)
    if not n_first or not n_second or degrees < 1:
        return _Spread([0.0] * len(block.squares), [], 0, 0.0)
    between = [
        first * first / n_first + second * second / n_second
        for first, second in zip(of_first, of_second, strict=True)
    ]
    if n_others:  # all values sum to 0
        between = [
            both + (first + second) ** 2 / n_others
            for both, first, second in zip(between, of_first, of_second, strict=True)
        ]
    return _Spread(
        [
            second / n_second - first / n_first
            for first, second in zip(of_first, of_second, strict=True)
        ],
        [
            (squares - both if squares > both else 0.0) / degrees
            for squares, both in zip(block.squares, between, strict=True)
        ],
        degrees,
        1 / n_first + 1 / n_second,
    )


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
