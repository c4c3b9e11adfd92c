"""Cases as points of curves: one quantity over another, a curve for each kind of case."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hostbench.base.units import binary_bytes, exact_bytes, full_sentence, human, tick
from hostbench.model.result import CaseResult, MetricResult
from hostbench.report.content import (
    Chart,
    Column,
    Curve,
    CurveAxis,
    CurveChart,
    CurveMark,
    CurvePoint,
    RowGroup,
    Table,
)
from hostbench.report.figures import primary
from hostbench.report.grouping import Layout, Params, series_names

CURVES_A_CHART = 8
MARKS_ARE = "size of a cache"
# More characters than `1000 KiB` has.
LONG_SIZE = 8


@dataclass(frozen=True)
class Along:
    """The quantity along which cases are placed. `of` returns a case's place, or None.

    `left_out` are the parameters that determine it. `as_given`: the points are joined in the order
    of the cases, not in that of their places.
    """

    axis: CurveAxis
    of: Callable[[CaseResult], float | None]
    left_out: tuple[str, ...]
    as_given: bool = False


@dataclass(frozen=True)
class Roof:
    """What limits the cases of a curve, drawn dashed. `of` returns that of a case, in the unit of
    the y axis, or None; `is_what` says what it is, in a few words."""

    is_what: str
    of: Callable[[CaseResult], float | None]


def curve_charts(
    title: str,
    cases: Sequence[tuple[CaseResult, Params]],
    layout: Layout,
    along: Along,
    y: CurveAxis,
    *,
    marks: tuple[CurveMark, ...] = (),
    roof: Roof | None = None,
    numbers: Table | None = None,
) -> Iterator[Chart]:
    """Yield the cases' primary metrics, in as many charts as keep the curves readable; none if no
    curve has two points.

    `numbers`: used in place of the table of places and curves.
    """
    curves, shared = _curves(cases, layout, along, y, roof)
    if not any(len(curve.points) > 1 for curve, _ in curves):
        return
    pages = [curves[i : i + CURVES_A_CHART] for i in range(0, len(curves), CURVES_A_CHART)]
    for number, page in enumerate(pages, start=1):
        page_title = f"{title} ({number} of {len(pages)})" if len(pages) > 1 else title
        measured = [curve for curve, _ in page]
        dashed = [
            Curve("", points, beside=number)
            for number, (_, points) in enumerate(page)
            if len(points) > 1
        ]
        yield Chart(
            title=page_title,
            description=_description(measured, along.axis, y, shared),
            drawing=CurveChart(
                along.axis,
                y,
                (*measured, *dashed),
                marks,
                MARKS_ARE,
                dashed_are=roof.is_what if roof and dashed else "",
            ),
            numbers=numbers or _numbers(page_title, measured, along.axis, y),
        )


def _curves(
    cases: Sequence[tuple[CaseResult, Params]],
    layout: Layout,
    along: Along,
    y: CurveAxis,
    roof: Roof | None,
) -> tuple[list[tuple[Curve, tuple[CurvePoint, ...]]], str]:
    """Return a curve for each set of cases that differ only in the quantity of the x axis, each
    with the points of its roof, and in words what all curves share."""
    shown: list[tuple[CaseResult, Params]] = []
    places: list[tuple[CurvePoint, float | None]] = []
    for case, params in cases:
        metric, x = primary(case), along.of(case)
        if metric is None or x is None or not _fits(metric, y):
            continue
        distinct = {name: value for name, value in params.items() if name not in along.left_out}
        shown.append((case, distinct))
        places.append((_point(x, metric), roof.of(case) if roof else None))
    names, shared = series_names(shown, layout)
    found: dict[str, list[tuple[CurvePoint, float | None]]] = {}
    for name, place in zip(names, places, strict=True):
        found.setdefault(name, []).append(place)
    if not along.as_given:
        for curve in found.values():
            curve.sort(key=lambda place: place[0].x)
    return [_with_roof(name, curve) for name, curve in found.items()], shared


def _with_roof(
    name: str, places: Sequence[tuple[CurvePoint, float | None]]
) -> tuple[Curve, tuple[CurvePoint, ...]]:
    highest = [(point.x, height) for point, height in places if height is not None]
    roof = tuple(CurvePoint(x, height, height, height) for x, height in highest)
    return Curve(name, tuple(point for point, _ in places)), roof


def _fits(metric: MetricResult, y: CurveAxis) -> bool:
    """Whether an axis can show the metric: a logarithmic axis has no place for zero, and none of
    ours goes below zero."""
    low = min(metric.statistics.interval.low, metric.statistics.median)
    return low > 0 if y.logarithmic else low >= 0


def _point(x: float, metric: MetricResult) -> CurvePoint:
    statistics = metric.statistics
    return CurvePoint(x, statistics.median, statistics.interval.low, statistics.interval.high)


def _place(value: float, axis: CurveAxis) -> str:
    if axis.unit == "byte":
        return exact_bytes(int(value)) if value == int(value) else binary_bytes(value)
    return tick(value, axis.unit) if axis.unit == "1" else human(value, axis.unit)


def _end(value: float, axis: CurveAxis) -> str:
    """Return the place in a few characters: 1 GiB and a cache line is 1 GiB."""
    exact = _place(value, axis)
    return binary_bytes(value) if axis.unit == "byte" and len(exact) > LONG_SIZE else exact


def _description(curves: Sequence[Curve], x: CurveAxis, y: CurveAxis, shared: str) -> str:
    """Return what all curves share, and the ends of each, in sentences."""
    sentences = [full_sentence(f"All curves: {shared}")] if shared else []
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        ends = f"{human(first.y, y.unit)} at {_end(first.x, x)}"
        if len(curve.points) > 1:
            ends = f"from {ends} to {human(last.y, y.unit)} at {_end(last.x, x)}"
        sentences.append(
            full_sentence(f"{curve.label}: {ends}" if curve.label else ends.capitalize())
        )
    return " ".join(sentences)


def _numbers(title: str, curves: Sequence[Curve], x: CurveAxis, y: CurveAxis) -> Table:
    """Return a table with a row for each place and a column for each curve."""
    places = sorted({point.x for curve in curves for point in curve.points})
    known = [{point.x: point.y for point in curve.points} for curve in curves]
    columns = (
        Column(x.title),
        *(Column(curve.label or y.title, figures=True) for curve in curves),
    )
    rows = tuple(
        (_place(place, x), *(human(one.get(place), y.unit) for one in known)) for place in places
    )
    return Table(f"{title}: the figures", columns, (RowGroup(None, rows),))
