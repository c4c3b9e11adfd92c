"""Ratios with their intervals around 1: a forest plot."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hostbench.base.units import bound
from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import ForestChart, ForestRow

LAYERS = (Ink.BAND, Ink.GRID, Ink.LIMIT, Ink.BAR, Ink.WARN, Ink.TEXT)
NICE = (0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 1.0)
# The share of all interval ends that the axis shows, so that a single wide one does not compress
# the others.
SHOWN = 0.9
AXIS_PX, BOTTOM_PX, EDGE_PX = 22, 8, 24
LABELS_MOST_PX, LABEL_GAP_PX = 300, 10
# The height of a further line of a label that is too long for one.
LINE_PX = 14


@dataclass(frozen=True)
class _Layout:
    """Pixels: labels stand left of the plot, the remarks right of it, both above it where `labels`
    is 0."""

    width: int
    labels: int
    remarks: int
    row: int


WIDE = _Layout(width=WIDE_PX, labels=150, remarks=130, row=19)
NARROW = _Layout(width=NARROW_PX, labels=0, remarks=0, row=34)


def forest_chart(chart: ForestChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    longest = max((len(row.label) for row in chart.rows), default=0)
    wanted = math.ceil(longest * CHARACTER_PX) + LABEL_GAP_PX
    wide = replace(WIDE, labels=max(WIDE.labels, min(LABELS_MOST_PX, wanted)))
    return _drawn(chart, title, wide, "wide"), _drawn(chart, title, NARROW, "narrow")


def forest_reach(chart: ForestChart) -> float:
    """Return how far the axis extends to either side of 1."""
    ends = sorted(
        abs(end - 1)
        for row in chart.rows
        for end in (row.ratio, row.low, row.high)
        if end is not None
    )
    most = ends[math.ceil(SHOWN * len(ends)) - 1] if ends else 0.0
    most = max(most, *(row.margin for row in chart.rows), 0.0)
    return next((nice for nice in NICE if most <= nice), NICE[-1])


class _Plot:
    """One drawing: the places of ratios, and the rows."""

    def __init__(self, canvas: Canvas, layout: _Layout, reach: float) -> None:
        self._canvas, self._layout, self._reach = canvas, layout, reach
        self._left = layout.labels + EDGE_PX
        self._right = layout.width - layout.remarks - EDGE_PX
        self._shares = (-reach, -reach / 2, 0.0, reach / 2, reach)

    def _x(self, ratio: float) -> float:
        inside = min(max(ratio - 1, -self._reach), self._reach)
        return self._left + (inside + self._reach) / (2 * self._reach) * (self._right - self._left)

    def axis(self) -> None:
        """Draw the labels of the axis. The rows draw its lines, where these cross no text."""
        for share in self._shares:
            sign = "−" if share < 0 else "+"
            text = f"{sign}{bound(abs(share))}" if share else "no change"
            at = (self._x(1 + share), AXIS_PX / 2 - 2)
            self._canvas.text(at, text, ink=Ink.QUIET, anchor="middle")

    def row(self, row: ForestRow, label: Sequence[str], top: float, height: float) -> None:
        """Draw a row whose label has these lines."""
        layout, y, above = self._layout, top + height / 2, height / 2
        ink = Ink.WARN if row.stands_out else Ink.TEXT
        if layout.labels:
            first = y - LINE_PX * (len(label) - 1) / 2
            for number, line in enumerate(label):
                at = (layout.labels - LABEL_GAP_PX, first + LINE_PX * number)
                self._canvas.text(at, line, anchor="end")
            self._canvas.text((layout.width - layout.remarks, y), row.remark, ink=ink)
        else:
            for number, line in enumerate(label):
                self._canvas.text((0, top + 8 + LINE_PX * number), line)
            self._canvas.text((layout.width, top + 8), row.remark, ink=ink, anchor="end")
            y, above = top + height - 11, 8
        for share in self._shares:
            x = self._x(1 + share)
            ends = (x, y - above), (x, y + above)
            self._canvas.line(*ends, Ink.GRID if share else Ink.LIMIT)
        low, high = self._x(1 - row.margin), self._x(1 + row.margin)
        self._canvas.box(low, y - 6, high - low, 12, Ink.BAND)
        ink = Ink.WARN if row.stands_out else Ink.BAR
        if row.low is not None and row.high is not None:
            self._canvas.line((self._x(row.low), y), (self._x(row.high), y), ink, 2)
            self._arrow(row.low - 1, y, ink)
            self._arrow(row.high - 1, y, ink)
        x = self._x(row.ratio)
        if abs(row.ratio - 1) > self._reach:
            self._arrow(row.ratio - 1, y, ink)
        elif row.low is None:
            self._canvas.outline([(x - 4, y), (x, y - 4), (x + 4, y), (x, y + 4)], ink)
        else:
            self._canvas.dot((x, y), ink, 7)

    def _arrow(self, share: float, y: float, ink: Ink) -> None:
        """Draw an arrow at the edge of the axis for a value beyond it."""
        if abs(share) > self._reach:
            x, tip = self._x(1 + share), math.copysign(7, share)
            self._canvas.shape([(x + tip, y), (x, y - 4), (x, y + 4)], ink)


def _lines(row: ForestRow, layout: _Layout) -> list[str]:
    """Return the label in lines that fit beside the plot, or beside the remark above it."""
    room = layout.labels - LABEL_GAP_PX
    if not layout.labels:
        room = layout.width - math.ceil(len(row.remark) * CHARACTER_PX) - LABEL_GAP_PX
    return textwrap.wrap(row.label, max(1, int(room / CHARACTER_PX))) or [""]


def _drawn(chart: ForestChart, title: str, layout: _Layout, css_class: str) -> str:
    labels = [_lines(row, layout) for row in chart.rows]
    heights = [layout.row + LINE_PX * (len(lines) - 1) for lines in labels]
    canvas = Canvas(layout.width, AXIS_PX + sum(heights) + BOTTOM_PX)
    plot = _Plot(canvas, layout, forest_reach(chart))
    plot.axis()
    top = AXIS_PX
    for row, lines, height in zip(chart.rows, labels, heights, strict=True):
        plot.row(row, lines, top, height)
        top += height
    return canvas.svg(title, css_class, LAYERS)
