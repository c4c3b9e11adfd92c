"""How long operations took: percentiles of reads and writes, and of commits."""

from collections.abc import Iterator, Sequence

from hostbench.models.result import CaseResult
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
    Text,
)
from hostbench.report.curves import CURVES_A_CHART
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    figures_table,
    folded,
    label,
    primary,
    sentence,
)
from hostbench.units import human
from services.disk.report.cases import RATE, number, shown
from services.disk.report.sweeps import sweep_charts

LATENCY = Paragraph(
    "The time of single operations, all of them counted. In a closed loop, which begins the next "
    "operation when one is done, a stall is one slow operation and the many that would have come "
    "meanwhile are missing: the figures tell of what was asked, and the tail is better than a "
    "user with a rate of his own sees it. At a given rate (open loop) an operation's time begins "
    "when it was due."
)
COMMITS = Paragraph(
    "A block is written and made durable (fdatasync) before the next one: what a database waits "
    "for. A device, or a hypervisor, that confirms out of a volatile cache is fast here and may "
    "lose what it confirmed; that cannot be seen from the time it takes."
)
TOO_FEW = Paragraph(
    "A percentile without a figure had too few operations: 90 % takes 64 of them, 95 % 130, 99 % "
    "662, 99.9 % 6643, in each trial."
)
# One operation in so many takes longer than the percentile.
QUANTILES = {"p50": 2.0, "p90": 10.0, "p95": 20.0, "p99": 100.0, "p99_9": 1000.0}
TITLES = {"p50": "50 %", "p90": "90 %", "p95": "95 %", "p99": "99 %", "p99_9": "99.9 %"}
STREAMS = ("read", "write")
MARKS = tuple(CurveMark(TITLES[name], place) for name, place in QUANTILES.items())
RARITY = CurveAxis("one operation in so many takes longer", "1", logarithmic=True)
TIME = CurveAxis("time of an operation", "s", logarithmic=True)


def percentiles(
    cases: Sequence[CaseResult], headline: Sequence[CaseResult], *, of: int
) -> Iterator[Block]:
    """The part about reads and writes. `headline`: the cases that are drawn where all would be
    too many."""
    timed = [case for case in cases if _curve(case) is not None]
    if not timed:
        return
    yield LATENCY
    remembered = {case.case for case in headline}
    few = len(timed) <= CURVES_A_CHART
    yield from _chart(timed if few else [case for case in timed if case.case in remembered])
    yield folded(_table(timed), len(timed), of=of)
    if any(_metric(name) not in case.metrics for case in timed for name in QUANTILES):
        yield TOO_FEW


def commits(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """The part about commits."""
    if not cases:
        return
    yield COMMITS
    yield from sweep_charts(cases, "Time of a commit", CurveAxis("time of a commit", "s"))
    timed = [case for case in cases if _curve(case) is not None]
    if timed:
        yield _commit_table(timed)
    yield figures_table(cases, "Figures of commits", of=of)


def _metric(quantile: str, stream: str = "") -> str:
    return f"{stream}_latency_{quantile}_s" if stream else f"latency_{quantile}_s"


def _curve(case: CaseResult) -> Curve | None:
    """Its percentiles; None where it has none, or none that a logarithmic axis has a place for."""
    points = []
    for name, place in QUANTILES.items():
        found = case.metrics.get(_metric(name))
        if found is not None and found.statistics.interval.low > 0:
            interval = found.statistics.interval
            points.append(CurvePoint(place, found.statistics.median, interval.low, interval.high))
    return Curve(case.title.removeprefix("disk."), tuple(points)) if points else None


def _chart(cases: Sequence[CaseResult]) -> Iterator[Chart]:
    curves = tuple(curve for case in cases if (curve := _curve(case)) and len(curve.points) > 1)
    for first in range(0, len(curves), CURVES_A_CHART):
        page = curves[first : first + CURVES_A_CHART]
        pages = -(-len(curves) // CURVES_A_CHART)
        of = f" ({first // CURVES_A_CHART + 1} of {pages})" if pages > 1 else ""
        yield Chart(
            title=f"Percentiles of latency{of}",
            description=" ".join(_said(curve) for curve in page),
            drawing=CurveChart(RARITY, TIME, page, MARKS, "share that was at most as slow"),
        )


def _said(curve: Curve) -> str:
    """The ends of a curve in a sentence."""
    names = {place: TITLES[name] for name, place in QUANTILES.items()}
    ends = (
        f"{names[point.x]} within {human(point.y, TIME.unit)}"
        for point in (curve.points[0], curve.points[-1])
    )
    return sentence(f"{curve.label}: {', '.join(ends)}")


_FIGURES = (
    ("latency_mean_s", "mean"),
    *((_metric(name), TITLES[name]) for name in QUANTILES),
    ("latency_max_s", "longest"),
)


def _table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("loop"),
        *(Column(title, figures=True) for _, title in _FIGURES),
    )
    groups = tuple(
        RowGroup(workload, tuple(row for case in found for row in _rows(case)))
        for workload, found in by_workload(cases).items()
    )
    return Table("Latency of operations", columns, groups)


def _rows(case: CaseResult) -> Iterator[tuple[Text, ...]]:
    """All operations; and of a mix its reads and its writes."""
    yield (label(case), _loop(case), *(shown(case, metric) for metric, _ in _FIGURES))
    for stream in STREAMS:
        if _metric("p50", stream) in case.metrics:
            figures = (shown(case, f"{stream}_{metric}") for metric, _ in _FIGURES)
            yield (f"{label(case)}: {stream}s", NOTHING, *figures)


def _loop(case: CaseResult) -> str:
    rate = number(case, RATE)
    return "closed" if rate is None else f"open, {human(rate, 'operation/s')}"


def _commit_table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("commits", figures=True),
        *(Column(title, figures=True) for _, title in _FIGURES),
    )
    rows = tuple(
        (
            label(case),
            shown(case, "operations_per_second"),
            *(shown(case, metric) for metric, _ in _FIGURES),
        )
        for case in cases
        if primary(case)
    )
    return Table("Time of a commit, and how many a second", columns, (RowGroup(None, rows),))
