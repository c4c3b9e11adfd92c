"""One quantity over another, such as latency over the working set: a line for each kind of case."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hostbench.base.units import binary_bytes, tick
from hostbench.report.charts.axes import Scale, linear_ticks, logarithmic_ticks, powers_of_two
from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, XY, Canvas, Ink
from hostbench.report.content import Curve, CurveAxis, CurveChart, CurveMark, CurvePoint

# Each curve has its own colour and sign, so that the colour alone never identifies it.
INKS = (Ink.BAR, Ink.PEER, Ink.THIRD, Ink.FOURTH)
LAYERS = (Ink.GRID, Ink.QUIET, *reversed(INKS), Ink.TEXT)
TITLE_PX, LEGEND_PX, MARK_PX, BOTTOM_PX = 24, 19, 15, 46
LEFT_PX, RIGHT_PX = 64, 26
# Distances from the plot to the labels of its ticks: to their ends on the left, to their middle
# below.
TICK_LEFT_PX, TICK_BELOW_PX = 6, 10
SIGN_PX, SIGN_END_PX = 4.0, 34
# At this size, a polygon with this many corners looks like a circle.
ROUND_CORNERS = 12
# An interval is drawn only if its sign does not hide it.
INTERVAL_LEAST_PX = 8
# The share of an axis beyond its last point.
ROOM = 0.04
# Intervals lengthen an axis at most to this many times the figures: few trials on a busy host may
# leave a figure open by orders of magnitude, and all curves would be flat.
INTERVALS_MOST = 2.0


@dataclass(frozen=True)
class _Layout:
    """Pixels, and how many ticks fit."""

    width: int
    plot: int
    ticks: int


WIDE = _Layout(width=WIDE_PX, plot=240, ticks=10)
NARROW = _Layout(width=NARROW_PX, plot=200, ticks=5)


@dataclass(frozen=True)
class _Plot:
    """The places of a chart's points on its canvas."""

    x: Scale
    y: Scale
    top: float
    bottom: float

    def at(self, x: float, y: float) -> XY:
        return self.x.px(x), self.y.px(y)


def curve_chart(chart: CurveChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    return _drawn(chart, title, WIDE, "wide"), _drawn(chart, title, NARROW, "narrow")


def _drawn(chart: CurveChart, title: str, layout: _Layout, css_class: str) -> str:
    points = [point for curve in chart.curves for point in curve.points]
    x_low, x_high = _range(chart.x, [point.x for point in points])
    x = Scale(x_low, x_high, LEFT_PX, layout.width - RIGHT_PX, chart.x.logarithmic)
    marks = _mark_rows([mark for mark in chart.marks if x_low < mark.x < x_high], x)
    named = [(n, curve.label) for n, curve in enumerate(chart.curves) if curve.label]
    columns = _legend_columns(named, layout)
    legend = math.ceil(len(named) / columns) * LEGEND_PX
    top = TITLE_PX + legend + MARK_PX * (1 + max((row for _, row in marks), default=0))
    bottom = top + layout.plot
    y_low, y_high = _range(chart.y, _heights(points))
    plot = _Plot(x, Scale(y_low, y_high, bottom, top, chart.y.logarithmic), top, bottom)
    canvas = Canvas(layout.width, bottom + BOTTOM_PX)
    _axes(canvas, plot, chart, layout)
    _titles(canvas, chart, layout, bottom)
    _legend(canvas, named, columns, layout)
    for mark, row in marks:
        _mark(canvas, plot, mark, top - MARK_PX * row)
    for number, curve in enumerate(chart.curves):
        _curve(canvas, plot, curve, number if curve.beside is None else curve.beside)
    return canvas.svg(title, css_class, LAYERS)


# ---- axes ----


def _base(axis: CurveAxis) -> int:
    return 2 if axis.unit == "byte" else 10


def _range(axis: CurveAxis, values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if not axis.logarithmic:
        return 0.0, high * (1 + ROOM) or 1.0
    # A single point gives its axis no length.
    room = (high / low) ** ROOM if high > low else float(_base(axis))
    return low / room, high * room


def _heights(points: Sequence[CurvePoint]) -> list[float]:
    """Return the figures, and the ends of all intervals that are not far from every figure."""
    figures = [point.y for point in points]
    low, high = min(figures) / INTERVALS_MOST, max(figures) * INTERVALS_MOST
    return [*figures, *(min(max(y, low), high) for p in points for y in (p.low, p.high))]


def _axes(canvas: Canvas, plot: _Plot, chart: CurveChart, layout: _Layout) -> None:
    """Draw the ticks with their labels, and the grid."""
    for value in _ticks(chart.x, plot.x, layout.ticks):
        x = plot.x.px(value)
        canvas.line((x, plot.top), (x, plot.bottom), Ink.GRID)
        label = _description(value, chart.x)
        canvas.text((x, plot.bottom + TICK_BELOW_PX), label, ink=Ink.QUIET, anchor="middle")
    for value in _ticks(chart.y, plot.y, WIDE.ticks):
        y = plot.y.px(value)
        canvas.line((plot.x.first_px, y), (plot.x.last_px, y), Ink.GRID)
        label = _description(value, chart.y)
        canvas.text((plot.x.first_px - TICK_LEFT_PX, y), label, ink=Ink.QUIET, anchor="end")


def _ticks(axis: CurveAxis, scale: Scale, most: int) -> Sequence[float]:
    if axis.ticks:
        return [value for value in axis.ticks if scale.low <= value <= scale.high]
    if axis.logarithmic and axis.unit == "byte":
        return powers_of_two(scale.low, scale.high, most)
    if axis.logarithmic:
        return logarithmic_ticks(scale.low, scale.high, most)
    return linear_ticks(scale.low, scale.high, min(most, 6))


def _description(value: float, axis: CurveAxis) -> str:
    binary = axis.unit == "byte" and axis.logarithmic
    return binary_bytes(value) if binary else tick(value, axis.unit)


# ---- what stands on them ----


def _titles(canvas: Canvas, chart: CurveChart, layout: _Layout, bottom: float) -> None:
    canvas.text((0, TITLE_PX / 2 - 2), chart.y.title, bold=True)
    right = layout.width - RIGHT_PX
    canvas.text((right, bottom + BOTTOM_PX - 10), chart.x.title, anchor="end", bold=True)


def _legend_columns(named: Sequence[tuple[int, str]], layout: _Layout) -> int:
    """Return how many names with their signs fit beside one another."""
    longest = max((len(label) for _, label in named), default=0)
    return max(1, int(layout.width / (SIGN_END_PX + longest * CHARACTER_PX + RIGHT_PX)))


def _legend(
    canvas: Canvas, named: Sequence[tuple[int, str]], columns: int, layout: _Layout
) -> None:
    for place, (number, label) in enumerate(named):
        row, column = divmod(place, columns)
        x = column * layout.width / columns
        y = TITLE_PX + (row + 0.5) * LEGEND_PX
        canvas.line((x, y), (x + 26, y), _ink(number), 1.5)
        _sign(canvas, (x + 13, y), number)
        canvas.text((x + SIGN_END_PX, y), label)


def _mark_rows(marks: Sequence[CurveMark], x: Scale) -> list[tuple[CurveMark, int]]:
    """Return each mark with the row of its name: the lowest one in which it does not meet another
    name."""
    ends: list[float] = []
    placed = []
    for mark in sorted(marks, key=lambda mark: mark.x):
        half = len(mark.label) * CHARACTER_PX / 2
        left = x.px(mark.x) - half
        row = next((row for row, end in enumerate(ends) if end < left), len(ends))
        ends[row : row + 1] = [left + 2 * half]
        placed.append((mark, row))
    return placed


def _mark(canvas: Canvas, plot: _Plot, mark: CurveMark, top: float) -> None:
    x = plot.x.px(mark.x)
    canvas.line((x, top), (x, plot.bottom), Ink.QUIET)
    canvas.text((x, top - MARK_PX / 2), mark.label, ink=Ink.QUIET, anchor="middle")


def _curve(canvas: Canvas, plot: _Plot, curve: Curve, number: int) -> None:
    if len(curve.points) > 1:
        line = [plot.at(point.x, point.y) for point in curve.points]
        canvas.polyline(line, _ink(number), dashed=curve.beside is not None)
    for point in curve.points:
        (x, low), (_, high) = plot.at(point.x, point.low), plot.at(point.x, point.high)
        low, high = min(low, plot.bottom), max(high, plot.top)
        if low - high >= INTERVAL_LEAST_PX:
            canvas.line((x, low), (x, high), _ink(number))
        _sign(canvas, plot.at(point.x, point.y), number, hollow=curve.beside is not None)


def _ink(number: int) -> Ink:
    return INKS[number % len(INKS)]


def _sign(canvas: Canvas, at: XY, number: int, *, hollow: bool = False) -> None:
    """Draw the sign of a curve. With every round of the colours the signs shift by one, so that
    sixteen curves differ."""
    ink, shape = _ink(number), (number + number // len(INKS)) % 4
    if shape == 0 and not hollow:
        canvas.dot(at, ink, 2 * SIGN_PX - 1)
        return
    corners = _corners(at, shape)
    if hollow:
        canvas.outline(corners, ink, 1.2)
    else:
        canvas.shape(corners, ink)


def _corners(at: XY, shape: int) -> list[XY]:
    (x, y), r = at, SIGN_PX
    if shape == 0:
        turns = [math.tau * n / ROUND_CORNERS for n in range(ROUND_CORNERS)]
        return [(x + (r - 0.5) * math.cos(turn), y + (r - 0.5) * math.sin(turn)) for turn in turns]
    if shape == 1:
        return [(x - r, y), (x, y - r), (x + r, y), (x, y + r)]
    if shape == 2:
        left, top, size = x - r + 0.5, y - r + 0.5, 2 * r - 1
        return [(left, top), (left + size, top), (left + size, top + size), (left, top + size)]
    return [(x, y - r), (x + r, y + r - 1), (x - r, y + r - 1)]
