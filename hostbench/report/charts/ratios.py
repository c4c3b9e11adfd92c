"""Ratios around 1 with their intervals: a forest plot."""

import math
from dataclasses import dataclass

from hostbench.base.units import bound
from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import RatioChart, RatioRow

LAYERS = (Ink.BAND, Ink.GRID, Ink.LIMIT, Ink.INTERVAL, Ink.BAR, Ink.WARN, Ink.TEXT, Ink.QUIET)
# Half the width of the axis, as a relative change.
NICE = (0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 1.0)
# So many of the ratios lie within it; the others stand at its edge.
SHOWN = 0.9
AXIS_PX, BOTTOM_PX, EDGE_PX = 22, 8, 12
LABELS_MOST_PX, GAP_PX = 300, 10


@dataclass(frozen=True)
class _Layout:
    """Pixels. Labels stand left of the strips, or above them where `labels` is 0; words right of
    them."""

    width: int
    labels: int
    words: int
    row: int


def ratio_chart(chart: RatioChart, title: str) -> tuple[str, str]:
    """The chart wide and narrow."""
    longest = max(len(row.label) for row in chart.rows)
    words = math.ceil(max(len(row.word) for row in chart.rows) * CHARACTER_PX) + 2 * GAP_PX
    labels = min(LABELS_MOST_PX, math.ceil(longest * CHARACTER_PX) + 2 * GAP_PX)
    wide = _Layout(width=WIDE_PX, labels=labels, words=words, row=21)
    narrow = _Layout(width=NARROW_PX, labels=0, words=words, row=34)
    return _drawn(chart, title, wide, "wide"), _drawn(chart, title, narrow, "narrow")


def axis_reach(chart: RatioChart) -> float:
    """Half the width of the axis: it shows most of the ratios, and the margins."""
    changes = sorted(abs(row.ratio - 1) for row in chart.rows)
    most = max(changes[math.ceil(SHOWN * len(changes)) - 1], *(row.margin for row in chart.rows))
    return next((nice for nice in NICE if most * 1.2 <= nice), NICE[-1])


def _drawn(chart: RatioChart, title: str, layout: _Layout, css_class: str) -> str:
    height = AXIS_PX + layout.row * len(chart.rows) + BOTTOM_PX
    canvas = Canvas(layout.width, height)
    strips = _Strips(canvas, layout, axis_reach(chart), height - BOTTOM_PX)
    strips.axis()
    for number, row in enumerate(chart.rows):
        strips.row(row, AXIS_PX + (number + 0.5) * layout.row)
    return canvas.svg(title, css_class, LAYERS)


class _Strips:
    """One drawing: where things are, and the things."""

    def __init__(self, canvas: Canvas, layout: _Layout, reach: float, bottom: float) -> None:
        self._canvas = canvas
        self._layout = layout
        self._reach = reach
        self._left = layout.labels + EDGE_PX
        self._right = layout.width - layout.words - EDGE_PX
        self._bottom = bottom

    def _x(self, change: float) -> float:
        inside = min(max(change, -self._reach), self._reach)
        return self._left + (inside + self._reach) / (2 * self._reach) * (self._right - self._left)

    def axis(self) -> None:
        for change in (-self._reach, -self._reach / 2, 0.0, self._reach / 2, self._reach):
            x = self._x(change)
            ink = Ink.LIMIT if change == 0 else Ink.GRID
            self._canvas.line((x, AXIS_PX), (x, self._bottom), ink)
            sign = "−" if change < 0 else "+"
            text = "as before" if change == 0 else f"{sign}{bound(abs(change))}"
            self._canvas.text((x, AXIS_PX / 2 - 2), text, ink=Ink.QUIET, anchor="middle")

    def row(self, row: RatioRow, y: float) -> None:
        if self._layout.labels:
            self._canvas.text((self._layout.labels - GAP_PX, y), row.label, anchor="end")
        else:
            self._canvas.text((0, y - 8), row.label)
            y += 8
        low, high = self._x(-row.margin), self._x(row.margin)
        self._canvas.box(low, y - 6, high - low, 12, Ink.BAND)
        ink = Ink.WARN if row.stands_out else Ink.BAR
        if row.low is not None and row.high is not None:
            ends = (self._x(row.low - 1), y), (self._x(row.high - 1), y)
            self._canvas.line(*ends, Ink.WARN if row.stands_out else Ink.INTERVAL, 2)
        x = self._x(row.ratio - 1)
        if abs(row.ratio - 1) > self._reach:
            tip = 6 if row.ratio > 1 else -6
            self._canvas.shape([(x + tip, y), (x, y - 5), (x, y + 5)], ink)
        else:
            self._canvas.dot((x, y), ink)
        right = self._layout.width - self._layout.words + GAP_PX
        self._canvas.text((right, y), row.word, ink=Ink.WARN if row.stands_out else Ink.TEXT)
