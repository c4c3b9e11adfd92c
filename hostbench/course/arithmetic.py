"""Errors in the arithmetic of a published table.

A published figure stays as printed. What follows from other figures of its row is computed again,
and a difference beyond rounding is reported with both values.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hostbench.base.units import plural
from hostbench.course.figures import fixed
from hostbench.course.rows import PERCENT, CourseRow
from hostbench.model.published import PublishedTable

# In addition to half a unit of the last printed digit.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Slip:
    """A printed figure and the value that follows from its row. `kind` says how the two are
    related."""

    row: CourseRow
    kind: str
    printed: float
    expected: float
    sum: str


def agrees(printed: float, expected: float) -> bool:
    """Whether rounding explains the difference."""
    digits = Decimal(int(printed)) if printed == int(printed) else Decimal(repr(printed))
    half_unit = 0.5 * 10.0 ** int(digits.as_tuple().exponent)
    return math.isclose(printed, expected, rel_tol=TOLERANCE, abs_tol=half_unit * (1 + TOLERANCE))


def efficiency_percent(row: CourseRow, table: PublishedTable, column: str = "mean") -> float | None:
    """Return the efficiency that follows from mean (or peer) and limit of a row, or None if one is
    missing."""
    figure = row.mean if column == "mean" else row.number(column)
    limit = row.number("limit")
    if not figure or not limit:
        return None
    ratio = figure / limit if table.better == "higher" else limit / figure
    return ratio * PERCENT


def slips(table: PublishedTable, rows: Sequence[CourseRow]) -> list[Slip]:
    """Return all figures that are inconsistent."""
    return [slip for row in rows for slip in _of_row(table, row)]


def slip_sentences(table: PublishedTable, rows: Sequence[CourseRow]) -> Iterator[str]:
    """Yield a sentence for each kind, with the row that is furthest off."""
    found: dict[str, list[Slip]] = {}
    for slip in slips(table, rows):
        found.setdefault(slip.kind, []).append(slip)
    for kind, of_kind in found.items():
        worst = max(of_kind, key=lambda slip: abs(math.log(_size(slip.printed / slip.expected))))
        yield (
            f"{kind} in {plural(len(of_kind), 'row')}, most of all in {worst.row.title}: "
            f"the report prints {fixed(worst.printed)}, but {worst.sum} is {fixed(worst.expected)}."
        )


def _size(ratio: float) -> float:
    return abs(ratio) or 1e-9


def _of_row(table: PublishedTable, row: CourseRow) -> Iterator[Slip]:
    mean, deviation, repeats = row.number("mean"), row.number("deviation"), row.repeats
    if mean is not None and repeats:
        expected = statistics.fmean(repeats)
        if not agrees(mean, expected):
            of = f"the mean of {', '.join(fixed(one) for one in repeats)}"
            yield Slip(row, "The mean is not that of the runs", mean, expected, of)
    if deviation is not None and len(repeats) > 1:
        expected = statistics.pstdev(repeats)
        if not agrees(deviation, expected) and not agrees(deviation, statistics.stdev(repeats)):
            of = f"that of {', '.join(fixed(one) for one in repeats)}, dividing by n,"
            yield Slip(row, "The deviation is not that of the runs", deviation, expected, of)
    for column, figure, quantity in (
        ("efficiency", "mean", "efficiency"),
        ("peer_efficiency", "peer", "efficiency of the outside tool"),
    ):
        yield from _of_efficiency(table, row, column, figure, quantity)


def _of_efficiency(
    table: PublishedTable, row: CourseRow, column: str, figure: str, quantity: str
) -> Iterator[Slip]:
    """Yield the slip of an efficiency that is neither right nor inverted, with the nearer of both
    values."""
    printed, expected = row.number(column), efficiency_percent(row, table, figure)
    value = row.mean if figure == "mean" else row.number(figure)
    limit = row.number("limit")
    if not printed or not expected or not value or not limit or agrees(printed, expected):
        return
    inverse = PERCENT**2 / expected
    way = f"{fixed(value)} over {fixed(limit)} in percent"
    back = f"{fixed(limit)} over {fixed(value)} in percent"
    right, wrong = (way, back) if table.better == "higher" else (back, way)
    if agrees(printed, expected / PERCENT):
        yield Slip(
            row,
            f"The {quantity} is a ratio and not in percent",
            printed,
            expected,
            right,
        )
    elif agrees(printed, inverse):
        kind = f"The {quantity} divides limit and figure the wrong way round"
        yield Slip(row, kind, printed, expected, right)
    else:
        distance = [abs(math.log(_size(printed / one))) for one in (expected, inverse)]
        nearer = (expected, right) if distance[0] <= distance[1] else (inverse, wrong)
        yield Slip(row, f"The {quantity} does not follow from its row", printed, *nearer)


def divides_by_n(rows: Sequence[CourseRow]) -> bool | None:
    """Whether the printed deviations are those of a population; None: unknown."""
    parts = []
    for row in rows:
        deviation, repeats = row.number("deviation"), row.repeats
        if deviation and len(repeats) > 1:
            by_n, by_one_less = statistics.pstdev(repeats), statistics.stdev(repeats)
            if agrees(deviation, by_n) != agrees(deviation, by_one_less):
                parts.append(agrees(deviation, by_n))
    return statistics.mode(parts) if parts else None
