"""How long operations took: percentiles of cases as curves and as a table."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import full_sentence, human
from hostbench.model.result import CaseResult
from hostbench.report.cases import shown
from hostbench.report.content import (
    Chart,
    Curve,
    CurveAxis,
    CurveChart,
    CurveMark,
    CurvePoint,
    Paragraph,
    Text,
)
from hostbench.report.curves import CURVES_A_CHART

TOO_FEW = Paragraph(
    "A percentile without a figure had too few operations: the 90th needs 64 operations in "
    "each trial, the 95th 130, the 99th 662 and the 99.9th 6643."
)
# One operation in this many takes longer than the percentile.
QUANTILES = {"p50": 2.0, "p90": 10.0, "p95": 20.0, "p99": 100.0, "p99_9": 1000.0}
TITLES = {"p50": "50 %", "p90": "90 %", "p95": "95 %", "p99": "99 %", "p99_9": "99.9 %"}
MARKS = tuple(CurveMark(TITLES[name], place) for name, place in QUANTILES.items())
RARITY = CurveAxis("one in this many operations takes longer", "1", logarithmic=True)


def percentile_metric(quantile: str, stream: str = "") -> str:
    """Return the metric of one of QUANTILES. `stream`: the kind of operations, if there are two."""
    return f"{stream}_latency_{quantile}_s" if stream else f"latency_{quantile}_s"


# The metrics of a table row, with their headings.
FIGURES = (
    ("latency_mean_s", "mean"),
    *((percentile_metric(name), TITLES[name]) for name in QUANTILES),
    ("latency_max_s", "longest"),
)


def cells(case: CaseResult, prefix: str = "") -> tuple[Text, ...]:
    """Return the figures of a table row."""
    return tuple(shown(case, f"{prefix}{metric}") for metric, _ in FIGURES)


def has_percentiles(case: CaseResult) -> bool:
    """Whether the case has percentiles that can be drawn."""
    return percentile_curve(case) is not None


def lacks_percentiles(cases: Sequence[CaseResult]) -> bool:
    """Whether at least one case had too few operations for a percentile."""
    return any(percentile_metric(name) not in case.metrics for case in cases for name in QUANTILES)


def percentile_curve(case: CaseResult) -> Curve | None:
    """Return the case's percentiles, or None if a logarithmic axis can show none."""
    points = []
    for name, place in QUANTILES.items():
        found = case.metrics.get(percentile_metric(name))
        if found is not None and found.statistics.interval.low > 0:
            interval = found.statistics.interval
            points.append(CurvePoint(place, found.statistics.median, interval.low, interval.high))
    return Curve(case.title.partition(".")[2], tuple(points)) if points else None


def percentile_charts(
    cases: Sequence[CaseResult],
    headline: Sequence[CaseResult],
    y: CurveAxis,
    *,
    title: str = "Percentiles of latency",
) -> Iterator[Chart]:
    """Yield the percentiles of all cases; if these are too many, of those in `headline`."""
    remembered = {case.case for case in headline}
    few = len(cases) <= CURVES_A_CHART
    drawn = cases if few else [case for case in cases if case.case in remembered]
    curves = [
        curve for case in drawn if (curve := percentile_curve(case)) and len(curve.points) > 1
    ]
    pages = -(-len(curves) // CURVES_A_CHART)
    for first in range(0, len(curves), CURVES_A_CHART):
        page = tuple(curves[first : first + CURVES_A_CHART])
        of = f" ({first // CURVES_A_CHART + 1} of {pages})" if pages > 1 else ""
        yield Chart(
            title=f"{title}{of}",
            description=" ".join(_description(curve, y) for curve in page),
            drawing=CurveChart(RARITY, y, page, MARKS, "share that was at most as slow"),
        )


def _description(curve: Curve, y: CurveAxis) -> str:
    """Return the ends of a curve in a sentence."""
    names = {place: TITLES[name] for name, place in QUANTILES.items()}
    ends = (
        f"{names[point.x]} within {human(point.y, y.unit)}"
        for point in (curve.points[0], curve.points[-1])
    )
    return full_sentence(f"{curve.label}: {', '.join(ends)}")
