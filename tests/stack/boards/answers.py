"""What InfluxDB answers to the queries of boards, and how it differs from what is expected."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from grafana.queries import BoardQuery
from orchestrator.influx.client import Series

Row = dict[str, Any]


def rows_of(answer: Iterable[Series]) -> list[Row]:
    """The rows of an answer with their tags; what is empty or null is left out, and so is a row
    with nothing but its time."""
    return [
        {**{name: tag for name, tag in series.tags.items() if tag}, **row}
        for series in answer
        for row in series.rows()
        if row.keys() != {"time"}
    ]


def difference(found: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """What differs, in any order; times count where `expected` has them."""
    timed = any("time" in row for row in expected)
    left = [row if timed else {k: v for k, v in row.items() if k != "time"} for row in found]
    for row in expected:
        match = next((one for one in left if _same(one, row)), None)
        if match is None:
            return f"{row} is missing among {left}"
        left.remove(match)
    return f"{left} should not be there" if left else None


def _same(one: Row, other: Row) -> bool:
    return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def is_of_several_jobs(query: BoardQuery) -> bool:
    """Whether it asks for what no job says alone."""
    return 'FROM "decision"' in query.text or 'FROM "change"' in query.text
