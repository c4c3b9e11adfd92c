"""The trials of every case around its median."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hostbench.base.units import bound, percent
from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import Point, PointKind, SpreadChart, SpreadGroup, SpreadRow

LAYERS = (Ink.BAND, Ink.GRID, Ink.LIMIT, Ink.BAR, Ink.PAPER, Ink.WARN, Ink.TEXT)
NICE = (0.01, 0.02, 0.05, 0.10, 0.20, 0.50)
SHOWN = 0.9
AXIS_PX, BOTTOM_PX, SIDE_PX = 22, 8, 66
# The most that labels may take from the strips.
LABELS_MOST_PX, LABEL_GAP_PX = 400, 10


@dataclass(frozen=True)
class _Layout:
    """Pixels. Labels stand left of the strips, in `labels` or what they take, or above them where
    that is 0."""

    width: int
    labels: int
    row: int
    group: int


WIDE = _Layout(width=WIDE_PX, labels=150, row=19, group=26)
NARROW = _Layout(width=NARROW_PX, labels=0, row=32, group=28)


def spread_chart(chart: SpreadChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    wide = replace(WIDE, labels=_labels_px(chart))
    return _drawn(chart, title, wide, "wide"), _drawn(chart, title, NARROW, "narrow")


def _labels_px(chart: SpreadChart) -> int:
    """Return the width of the longest label."""
    longest = max((len(row.label) for group in chart.groups for row in group.rows), default=0)
    wanted = math.ceil(longest * CHARACTER_PX) + 2 * LABEL_GAP_PX
    return max(WIDE.labels, min(LABELS_MOST_PX, wanted))


def axis_range(chart: SpreadChart) -> float:
    """Return half the width of the axis, as a ratio of the median: it fits most trials that count.
    The others are at its edge with their figure, so that one case does not compress all others."""
    distances = sorted(
        abs(point.deviation)
        for group in chart.groups
        for row in group.rows
        for point in row.points
        if point.kind is not PointKind.LEFT_OUT
    )
    most = distances[math.ceil(SHOWN * len(distances)) - 1] if distances else 0.0
    return next((nice for nice in NICE if most <= nice), NICE[-1])


class _Strips:
    """One drawing of the strips: places and shapes."""

    def __init__(self, canvas: Canvas, layout: _Layout, reach: float, bottom: float) -> None:
        self._canvas = canvas
        self._layout = layout
        self._reach = reach
        self._left = layout.labels + SIDE_PX
        self._right = layout.width - SIDE_PX
        self._bottom = bottom

    def _x(self, deviation: float) -> float:
        inside = min(max(deviation, -self._reach), self._reach)
        return self._left + (inside + self._reach) / (2 * self._reach) * (self._right - self._left)

    def axis(self) -> None:
        for deviation in (-self._reach, -self._reach / 2, 0.0, self._reach / 2, self._reach):
            x = self._x(deviation)
            ink = Ink.LIMIT if deviation == 0 else Ink.GRID
            self._canvas.line((x, AXIS_PX), (x, self._bottom), ink)
            sign = "−" if deviation < 0 else "+"
            text = "median" if deviation == 0 else f"{sign}{bound(abs(deviation))}"
            self._canvas.text((x, AXIS_PX / 2 - 2), text, ink=Ink.QUIET, anchor="middle")

    def title(self, text: str, y: float) -> None:
        self._canvas.text((0, y), text, bold=True)

    def row(self, row: SpreadRow, y: float) -> None:
        if self._layout.labels:
            x = self._layout.labels - LABEL_GAP_PX
            self._canvas.text((x, y), _cut(row.label, x), anchor="end")
        else:
            self._canvas.text((0, y - 8), row.label)
            y += 7
        low, high = self._x(row.low), self._x(row.high)
        if high > low:
            self._canvas.box(low, y - 6, high - low, 12, Ink.BAND)
        beyond = [point for point in row.points if abs(point.deviation) > self._reach]
        for point in row.points:
            self._point(point, y)
        self._farthest([point.deviation for point in beyond], y)

    def _point(self, point: Point, y: float) -> None:
        x = self._x(point.deviation)
        if abs(point.deviation) > self._reach:
            tip = 6 if point.deviation > 0 else -6
            ink = Ink.BAR if point.kind is PointKind.COUNTED else Ink.WARN
            self._canvas.shape([(x + tip, y), (x, y - 4), (x, y + 4)], ink)
        elif point.kind is PointKind.COUNTED:
            self._canvas.dot((x, y), Ink.BAR)
        elif point.kind is PointKind.DISTURBED:
            self._canvas.outline([(x, y - 4), (x + 4, y + 3), (x - 4, y + 3)], Ink.WARN)
        else:
            self._canvas.line((x - 3, y - 3), (x + 3, y + 3), Ink.WARN, 1.5)
            self._canvas.line((x - 3, y + 3), (x + 3, y - 3), Ink.WARN, 1.5)

    def _farthest(self, deviations: list[float], y: float) -> None:
        """Draw how far away the farthest trials beyond the axis are, on either side."""
        if (low := min(deviations, default=0.0)) < 0:
            self._canvas.text((self._left - 10, y), f"−{percent(-low)}", anchor="end")
        if (high := max(deviations, default=0.0)) > 0:
            self._canvas.text((self._right + 10, y), f"+{percent(high)}")


def _cut(label: str, width: float) -> str:
    """Return the end of a label that is too long: what is left out stands in the table."""
    most = int(width / CHARACTER_PX)
    return label if len(label) <= most else f"…{label[1 - most :]}"


def _drawn(chart: SpreadChart, title: str, layout: _Layout, css_class: str) -> str:
    height = AXIS_PX + BOTTOM_PX
    height += sum(
        layout.row * len(group.rows) + (layout.group if group.title else 6)
        for group in chart.groups
    )
    canvas = Canvas(layout.width, height)
    strips = _Strips(canvas, layout, axis_range(chart), height - BOTTOM_PX)
    strips.axis()
    for y, group, row in _places(chart, layout):
        if row is None:
            strips.title(group.title, y)
        else:
            strips.row(row, y)
    return canvas.svg(title, css_class, LAYERS)


def _places(
    chart: SpreadChart, layout: _Layout
) -> Iterator[tuple[float, SpreadGroup, SpreadRow | None]]:
    y = float(AXIS_PX)
    for group in chart.groups:
        if group.title:
            yield y + layout.group - 11, group, None
        y += layout.group if group.title else 6
        for row in group.rows:
            yield y + layout.row / 2, group, row
            y += layout.row
