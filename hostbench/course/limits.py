"""The sources of the limits of a table's rows, or why there is no limit."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import full_sentence, human, plural, significant
from hostbench.course.rows import CourseRow, listed
from hostbench.report.content import Block, Bullets, Fold, InBrief
from hostbench.report.figures import quantity


def limit_blocks(rows: Sequence[CourseRow]) -> Iterator[Block]:
    """Yield each factor with its source once, and each reason for a missing limit; folded."""
    factors: dict[tuple[str, str, str], list[float]] = {}
    reasons: dict[str, list[str]] = {}
    for row in rows:
        limit = row.ours.figure.limit_of if row.ours.figure else None
        if limit is not None and limit.value is None:
            reasons.setdefault(limit.reason or "no limit is known", []).append(row.title)
        for factor in limit.factors if limit else ():
            factors.setdefault((factor.name, factor.unit, factor.source), []).append(factor.value)
    items = [
        f"{quantity(name)}, {_range(values, unit)}: {full_sentence(source)}"
        for (name, unit, source), values in factors.items()
    ]
    items += [
        f"no limit for {plural(len(titles), 'row')} ({listed(titles)}): {full_sentence(reason)}"
        for reason, titles in reasons.items()
    ]
    if items:
        title = "Where our limits come from"
        yield Fold(title, (Bullets(tuple(items)),), on_paper=True, brief=InBrief.LEFT_OUT)


def _range(values: Sequence[float], unit: str) -> str:
    low, high = (_value(f(values), unit) for f in (min, max))
    return low if low == high else f"{low} to {high}"


def _value(value: float, unit: str) -> str:
    """Return a value in words: a count of cores is 2 and needs no prefix."""
    plain = unit not in ("Hz", "s", "byte/s", "operation/s")
    return f"{significant(value)} {unit}" if plain else human(value, unit)
