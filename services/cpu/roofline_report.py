"""The report on roofline: the rate over the arithmetic intensity, with both roofs and the ridge
where they meet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hostbench.base.units import full_sentence, human, significant
from hostbench.model.result import CaseResult, MetricResult
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    Curve,
    CurveAxis,
    CurveChart,
    CurveMark,
    CurvePoint,
    Paragraph,
    RowGroup,
    Table,
)
from hostbench.report.figures import primary
from hostbench.report.grouping import THREADS, Layout, resolved, series_names

WORKLOAD = "cpu.roofline"
FMAS = "fmas"
LAYOUT = Layout(axes=(THREADS, "isa", "dtype"), first=("dtype", THREADS))
INTRODUCTION = Paragraph(
    "Each vector that a core reads from memory goes into a number of fused multiply-adds. With "
    "few of them the core waits for memory, and the rate grows with their number: the slope is "
    "the bandwidth. Many keep the core busy: the flat part is its peak. Memory limits code with "
    "fewer operations a byte than the ridge, the core limits code with more."
)
INTENSITY = CurveAxis("operations a byte", "1", logarithmic=True)
RATE = CurveAxis("operations per second", "operation/s", logarithmic=True)
# A curve and its roof for each.
ROOFS_A_CHART = 4


@dataclass(frozen=True)
class Roof:
    """The cases that differ in the number of FMAs alone, by operations a byte. `bandwidth` (byte/s)
    and `peak` (operation/s) are the highest that any of them reached; `memory_limit` and
    `fma_limit` are the most that the hardware can do, or None."""

    name: str
    points: tuple[CurvePoint, ...]
    bandwidth: float
    peak: float
    memory_limit: float | None
    fma_limit: float | None

    @property
    def ridge(self) -> float:
        """Operations a byte at which both roofs meet, as measured."""
        return self.peak / self.bandwidth

    @property
    def line(self) -> tuple[CurvePoint, ...]:
        """The roof to draw: both limits. In place of one that is unknown, what was reached."""
        top, slope = self.fma_limit or self.peak, self.memory_limit or self.bandwidth
        first, last = self.points[0].x, self.points[-1].x
        places = sorted({first, min(max(first, top / slope), last), last})
        heights = [(x, min(top, x * slope)) for x in places]
        return tuple(CurvePoint(x, y, y, y) for x, y in heights)


def roofline_blocks(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield what the part about the workload shows above its figures."""
    yield INTRODUCTION
    roofs, shared = _roofs(cases)
    if not roofs:
        return
    yield _table(roofs)
    for first in range(0, len(roofs), ROOFS_A_CHART):
        yield _chart(roofs[first : first + ROOFS_A_CHART], shared)


def _roofs(cases: Sequence[CaseResult]) -> tuple[list[Roof], str]:
    """Return the roof of each set of cases with two intensities or more, and in words what all of
    them share."""
    swept = [
        (case, {name: value for name, value in resolved(case).items() if name != FMAS})
        for case in cases
        if primary(case) and "operations_per_byte" in case.metrics
    ]
    names, shared = series_names(swept, LAYOUT)
    groups: dict[str, list[CaseResult]] = {}
    for name, (case, _) in zip(names, swept, strict=True):
        groups.setdefault(name, []).append(case)
    return [_roof(name, found) for name, found in groups.items() if len(found) > 1], shared


def _roof(name: str, cases: Sequence[CaseResult]) -> Roof:
    points = tuple(sorted((_point(case) for case in cases), key=lambda point: point.x))
    return Roof(
        name=name,
        points=points,
        bandwidth=max(point.y / point.x for point in points),
        peak=max(point.y for point in points),
        memory_limit=_limit(case.metrics.get("bytes_per_second") for case in cases),
        fma_limit=_limit(primary(case) for case in cases),
    )


def _limit(metrics: Iterable[MetricResult | None]) -> float | None:
    """Return the highest limit that these have, or None if none is known."""
    limits = [metric.limit.value for metric in metrics if metric is not None and metric.limit]
    return max((value for value in limits if value is not None), default=None)


def _point(case: CaseResult) -> CurvePoint:
    metric = primary(case)
    assert metric is not None
    statistics = metric.statistics
    return CurvePoint(
        case.metrics["operations_per_byte"].statistics.median,
        statistics.median,
        statistics.interval.low,
        statistics.interval.high,
    )


def _chart(roofs: Sequence[Roof], shared: str) -> Chart:
    measured = [Curve(roof.name, roof.points) for roof in roofs]
    lines = [Curve("", roof.line, beside=number) for number, roof in enumerate(roofs)]
    sentences = [full_sentence(f"All curves: {shared}")] if shared else []
    return Chart(
        title="Roofline",
        description=" ".join((*sentences, *(_in_words(roof) for roof in roofs))),
        drawing=CurveChart(
            INTENSITY,
            RATE,
            (*measured, *lines),
            marks=tuple(
                CurveMark(f"ridge {significant(roof.ridge, 2)}", roof.ridge) for roof in roofs
            ),
            marks_are="where the measured roofs meet",
            dashed_are=(
                "the limits of the memory and of the FMA units"
                if all(roof.memory_limit for roof in roofs)
                else "the highest bandwidth of the sweep and the limit of the FMA units"
            ),
        ),
        numbers=_numbers(roofs),
    )


def _in_words(roof: Roof) -> str:
    return (
        f"{roof.name}: {human(roof.bandwidth, 'byte/s')} from memory, "
        f"{human(roof.peak, 'operation/s')} in the core; the roofs meet at "
        f"{significant(roof.ridge, 2)} operations a byte."
    )


def _table(roofs: Sequence[Roof]) -> Table:
    columns = (
        Column("roofs"),
        *(
            Column(title, figures=True)
            for title in ("memory", "memory limit", "core", "FMA limit", "ridge")
        ),
    )
    rows = tuple(
        (
            roof.name,
            human(roof.bandwidth, "byte/s"),
            human(roof.memory_limit, "byte/s"),
            human(roof.peak, "operation/s"),
            human(roof.fma_limit, "operation/s"),
            f"{significant(roof.ridge, 3)} op/B",
        )
        for roof in roofs
    )
    return Table("Both roofs, and where they meet", columns, (RowGroup(None, rows),))


def _numbers(roofs: Sequence[Roof]) -> Table:
    places = sorted({point.x for roof in roofs for point in roof.points})
    known = [{point.x: point.y for point in roof.points} for roof in roofs]
    columns = (
        Column("operations a byte"),
        *(Column(roof.name, figures=True) for roof in roofs),
    )
    rows = tuple(
        (significant(x, 3), *(human(one.get(x), "operation/s") for one in known)) for x in places
    )
    return Table("Roofline: the figures", columns, (RowGroup(None, rows),))
