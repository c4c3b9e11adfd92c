"""Quantities over time, one above the other on the same axis of seconds."""

import itertools
import math
from collections.abc import Iterator, Sequence

from hostbench.base.units import human
from hostbench.report.charts.axes import Scale, linear_ticks
from hostbench.report.charts.canvas import NARROW_PX, WIDE_PX, XY, Canvas, Ink
from hostbench.report.content import Line, Panel, TimeChart

LAYERS = (Ink.BAND, Ink.GRID, Ink.LIMIT, Ink.BAR)
PANEL_PX, LOWER_PX, TITLE_PX, BOTTOM_PX = 130, 62, 34, 28
LEFT_PX, RIGHT_PX = 84, 24
# Distances from a panel to its title's middle, to the ends of the labels on its left, and to the
# middle of those below it.
TITLE_ABOVE_PX, TICK_LEFT_PX, TICK_BELOW_PX = 16, 6, 10
# One point for each pixel of the whole axis. A denser run is drawn as a band: the lowest and
# highest value of each bin.
POINTS_MOST = {WIDE_PX: 660, NARROW_PX: 260}
POINTS_LEAST = 24
MARKED_MOST = 40


def time_chart(chart: TimeChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    return _drawn(chart, title, WIDE_PX, "wide"), _drawn(chart, title, NARROW_PX, "narrow")


def _drawn(chart: TimeChart, title: str, width: int, css_class: str) -> str:
    heights = [PANEL_PX, *(LOWER_PX for _ in chart.panels[1:])]
    height = sum(heights) + TITLE_PX * len(heights) + BOTTOM_PX
    canvas = Canvas(width, height)
    x = Scale(0, chart.seconds, LEFT_PX, width - RIGHT_PX)
    bottom = 0.0
    for panel, panel_height in zip(chart.panels, heights, strict=True):
        top, bottom = bottom + TITLE_PX, bottom + TITLE_PX + panel_height
        canvas.text((0, top - TITLE_ABOVE_PX), panel.title, bold=True)
        _panel(canvas, panel, x, Scale(*_value_range(panel), bottom, top), POINTS_MOST[width])
    for value in linear_ticks(x.low, x.high, 6 if width == WIDE_PX else 4):
        at = x.px(value), bottom + TICK_BELOW_PX
        canvas.text(at, f"{value:g} s", ink=Ink.QUIET, anchor="middle")
    return canvas.svg(title, css_class, LAYERS)


def _panel(canvas: Canvas, panel: Panel, x: Scale, y: Scale, most: int) -> None:
    for value in linear_ticks(y.low, y.high, 2 if panel.whole else 4):
        at = y.px(value)
        canvas.line((x.first_px, at), (x.last_px, at), Ink.GRID)
        label = _description(value, panel.unit)
        canvas.text((x.first_px - TICK_LEFT_PX, at), label, ink=Ink.QUIET, anchor="end")
    for level in panel.levels:
        at = y.px(level.y)
        canvas.line((x.px(level.first), at), (x.px(level.last), at), Ink.LIMIT, 1.5)
    for line in panel.lines:
        share = (line.x[-1] - line.x[0]) / x.high
        _line(canvas, line, x, y, max(POINTS_LEAST, round(most * share)))


def _description(value: float, unit: str) -> str:
    return f"{value * 100:g} %" if unit == "1" else human(value, unit)


def _value_range(panel: Panel) -> tuple[float, float]:
    values = [y for line in panel.lines for y in line.y if y is not None]
    values += [level.y for level in panel.levels]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if panel.whole:
        return 0.0, max(1.0 if panel.unit == "1" else high, high) * 1.02
    # Noise of a thousandth should not look like a mountain range.
    least = 0.02 * max(abs(high), abs(low)) or 1.0
    room = max(high - low, least) * 0.08
    middle, half = (low + high) / 2, max(high - low, least) / 2
    return middle - half - room, middle + half + room


def _line(canvas: Canvas, line: Line, x: Scale, y: Scale, most: int) -> None:
    known = sum(value is not None for value in line.y)
    if known > most:
        _band(canvas, line, x, y, most)
        return
    for run in _runs(line, x, y):
        canvas.polyline(run, Ink.BAR)
        for at in run if known <= MARKED_MOST else ():
            canvas.dot(at, Ink.BAR, 4.5)


def _runs(line: Line, x: Scale, y: Scale) -> Iterator[list[XY]]:
    """Yield the places of consecutive samples that have a figure."""
    points = zip(line.x, line.y, strict=True)
    for is_known, run in itertools.groupby(points, key=lambda point: point[1] is not None):
        if is_known:
            yield [(x.px(at), y.px(value)) for at, value in run if value is not None]


def _band(canvas: Canvas, line: Line, x: Scale, y: Scale, most: int) -> None:
    """Draw more samples than pixels: the lowest and highest value of each bin, and its middle."""
    bins = [bin_ for bin_ in _bins(line, most) if bin_]
    xs = [x.px(_mean([at for at, _ in bin_])) for bin_ in bins]
    lows, highs = ([y.px(f(value for _, value in bin_)) for bin_ in bins] for f in (min, max))
    canvas.shape([*zip(xs, lows, strict=True), *zip(xs[::-1], highs[::-1], strict=True)], Ink.BAND)
    middles = [y.px(sorted(value for _, value in bin_)[len(bin_) // 2]) for bin_ in bins]
    canvas.polyline(list(zip(xs, middles, strict=True)), Ink.BAR, 1.2)


def _bins(line: Line, most: int) -> list[list[tuple[float, float]]]:
    size = math.ceil(len(line.x) / (most // 2))
    points = list(zip(line.x, line.y, strict=True))
    parts = [points[i : i + size] for i in range(0, len(points), size)]
    return [[(x, y) for x, y in part if y is not None] for part in parts]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
