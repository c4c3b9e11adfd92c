"""How many accesses a core keeps in flight: the pointer chase by the number of chains."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import binary_bytes, human
from hostbench.model.result import CaseResult, Statistics
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    Curve,
    CurveAxis,
    CurveChart,
    CurvePoint,
    Paragraph,
    RowGroup,
    Table,
)
from hostbench.report.figures import primary
from hostbench.report.grouping import word
from hostbench.report.sweeps import swept
from services.mem.params import CHAINS, LINE_BYTES, PAGES, SIZE
from services.mem.report.values import chains_of, number_of, requested

TITLE = "Accesses in flight over the chains"
IMPOSSIBLE = Paragraph(
    "More accesses in flight than chains cannot be: the figure of one chain was disturbed."
)
X = CurveAxis("chains", "1", ticks=(1, 4, 8, 12, 16, 20, 24, 28, 32))
Y = CurveAxis("accesses in flight", "1")
MEANING = Paragraph(
    "The program follows several pointers at the same time, and accesses of different chains do "
    "not wait for one another. Accesses in flight are the time of an access with one chain over "
    "the time of an access with several (Little's law: latency times rate). They grow with the "
    "number of chains until the core has no free buffer for another line in flight. From there "
    "on, those buffers and the latency limit the bandwidth."
)


def blocks(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield the chart of every working set that was measured with one chain and several others."""
    series = [found for found in _series(cases) if chains_of(found[0]) == 1]
    if not series:
        return
    yield MEANING
    curves = tuple(Curve(_name(found), _points(found)) for found in series)
    most = " ".join(_most(found, curve) for found, curve in zip(series, curves, strict=True))
    yield Chart(
        title=TITLE,
        description=(
            "On the diagonal, the accesses of all chains are in flight at once. Where a curve "
            "leaves it, the core has no buffer for another one."
        ),
        drawing=CurveChart(X, Y, curves),
        numbers=_numbers(series, curves),
    )
    yield Paragraph(most)
    if any(point.low > point.x for curve in curves for point in curve.points):
        yield IMPOSSIBLE


def _series(cases: Sequence[CaseResult]) -> list[list[CaseResult]]:
    """Return the cases that differ in their chains alone, from the fewest on."""
    rows: dict[frozenset[tuple[str, str]], list[CaseResult]] = {}
    for case in swept(cases, CHAINS, requested):
        row = {(name, str(value)) for name, value in requested(case).items() if name != CHAINS}
        rows.setdefault(frozenset(row), []).append(case)
    return [sorted(row, key=chains_of) for row in rows.values()]


def _name(found: Sequence[CaseResult]) -> str:
    size = number_of(found[0], SIZE)
    pages = word(found[0].meaning(PAGES), found[0].params.get(PAGES))
    return f"{binary_bytes(size)}, {pages}" if size else pages


def _statistics(case: CaseResult) -> Statistics:
    metric = primary(case)
    assert metric is not None, "swept() gives cases with a figure"
    return metric.statistics


def _points(found: Sequence[CaseResult]) -> tuple[CurvePoint, ...]:
    """Return ratios to one chain; their intervals are the widest that both intervals allow."""
    one = _statistics(found[0])
    points = []
    for case in found:
        many = _statistics(case)
        low, high = one.interval.low / many.interval.high, one.interval.high / many.interval.low
        points.append(CurvePoint(chains_of(case), one.median / many.median, low, high))
    return tuple(points)


def _most(found: Sequence[CaseResult], curve: Curve) -> str:
    most = max(curve.points, key=lambda point: point.y)
    latency_s = _statistics(found[0]).median
    rate = LINE_BYTES * most.y / latency_s
    return (
        f"{curve.label}: at most {human(most.y, '1')} accesses in flight, with {most.x:g} chains; "
        f"at {human(latency_s, 's')} an access that is {human(rate, 'byte/s')} of whole lines."
    )


def _numbers(series: Sequence[Sequence[CaseResult]], curves: Sequence[Curve]) -> Table:
    rows: dict[int, dict[str, tuple[str, str]]] = {}
    for found, curve in zip(series, curves, strict=True):
        for case, point in zip(found, curve.points, strict=True):
            time = human(_statistics(case).median, "s")
            rows.setdefault(chains_of(case), {})[curve.label] = (time, human(point.y, "1"))
    columns = [Column("chains", figures=True)]
    for curve in curves:
        columns.append(Column(f"time of an access, {curve.label}", figures=True))
        columns.append(Column(f"in flight, {curve.label}", figures=True))
    cells = tuple(
        (str(chains), *(text for c in curves for text in row.get(c.label, ("–", "–"))))
        for chains, row in sorted(rows.items())
    )
    return Table(f"{TITLE}: the figures", tuple(columns), (RowGroup(None, cells),))
