"""One figure on many hosts: a dot a host, stacked where hosts are alike."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostbench.base.units import human, tick
from hostbench.report.charts.axes import Scale, linear_ticks
from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import HostsChart, HostsRow

LAYERS = (Ink.BAND, Ink.GRID, Ink.LIMIT, Ink.BAR, Ink.QUIET, Ink.WARN, Ink.TEXT)
SIDE_PX, LABEL_PX, GAP_PX, AXIS_PX = 30, 20, 10, 22
DOT_PX, OFF_PX = 4, 6
# The axis shows so many widths of the band below and above the usual figure; what is beyond is at
# its edge.
WIDTHS_MOST = 6.0
# A limit that is farther away than this would compress the dots.
LIMIT_MOST = 0.15
ROOM = 0.04


@dataclass(frozen=True)
class _Layout:
    """Pixels: the width, the height of a row's dots, and how many ticks fit."""

    width: int
    row: int
    ticks: int


WIDE = _Layout(width=WIDE_PX, row=58, ticks=8)
NARROW = _Layout(width=NARROW_PX, row=58, ticks=3)


def hosts_chart(chart: HostsChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    return _drawn(chart, title, WIDE, "wide"), _drawn(chart, title, NARROW, "narrow")


def axis_range(chart: HostsChart) -> tuple[float, float]:
    """Return the lowest and the highest value of the axis: all dots that are not far away from the
    others, the bands, and limits nearby."""
    ends = [end for row in chart.rows for end in _ends(row)]
    low, high = min(ends), max(ends)
    room = max((high - low) * ROOM, abs(high) * 1e-3)
    return low - room, high + room


def _ends(row: HostsRow) -> Iterator[float]:
    band = abs(row.usual - row.expected) if row.expected is not None else 0.0
    values = sorted((*row.values, *row.off))
    width = band or (values[-1] - values[0]) or abs(row.usual) * 0.01
    reach = WIDTHS_MOST * width
    yield from (value for value in values if abs(value - row.usual) <= reach)
    yield from (row.usual - band, row.usual + band)
    if shows_limit(row) and row.limit is not None:
        yield row.limit


def shows_limit(row: HostsRow) -> bool:
    """Whether the limit is near enough to be drawn."""
    return row.limit is not None and abs(row.limit / row.usual - 1) <= LIMIT_MOST


def _drawn(chart: HostsChart, title: str, layout: _Layout, css_class: str) -> str:
    each = LABEL_PX + layout.row + GAP_PX
    height = each * len(chart.rows) - GAP_PX
    canvas = Canvas(layout.width, height + AXIS_PX)
    x = Scale(*axis_range(chart), SIDE_PX, layout.width - SIDE_PX)
    ticks = linear_ticks(x.low, x.high, layout.ticks)
    for value in ticks:
        canvas.text(
            (x.px(value), height + AXIS_PX / 2),
            tick(value, chart.unit),
            ink=Ink.QUIET,
            anchor="middle",
        )
    for number, row in enumerate(chart.rows):
        top = number * each
        _label(canvas, row, chart.unit, layout, top + LABEL_PX / 2)
        top, bottom = top + LABEL_PX, top + LABEL_PX + layout.row
        for value in ticks:
            canvas.line((x.px(value), top), (x.px(value), bottom), Ink.GRID)
        _row(canvas, row, x, top, bottom)
    return canvas.svg(title, css_class, LAYERS)


def _label(canvas: Canvas, row: HostsRow, unit: str, layout: _Layout, y: float) -> None:
    """Draw what the hosts are, and beside it their usual figure as far as there is room."""
    usual = f"usual {human(row.usual, unit)}"
    canvas.text((layout.width, y), usual, ink=Ink.QUIET, anchor="end")
    room = int((layout.width - (len(usual) + 2) * CHARACTER_PX) / CHARACTER_PX)
    label = row.label if len(row.label) <= room else f"{row.label[: room - 1]}…"
    canvas.text((0, y), label)


def _row(canvas: Canvas, row: HostsRow, x: Scale, top: float, bottom: float) -> None:
    if row.expected is not None:
        band = abs(row.usual - row.expected)
        left, right = x.px(row.usual - band), x.px(row.usual + band)
        canvas.box(left, top, right - left, bottom - top, Ink.BAND)
    if shows_limit(row) and row.limit is not None:
        canvas.line((x.px(row.limit), top), (x.px(row.limit), bottom), Ink.LIMIT, 2)
    base, room = bottom - DOT_PX, bottom - top - DOT_PX - OFF_PX
    inside = [x.px(value) for value in row.values if x.low <= value <= x.high]
    _stacked(canvas, inside, base, room, Ink.BAR, DOT_PX)
    _beyond(canvas, row, x, base)
    off = [x.px(min(max(value, x.low), x.high)) for value in row.off]
    _stacked(canvas, off, base, room, Ink.WARN, OFF_PX)


def _stacked(
    canvas: Canvas, at: Sequence[float], base: float, room: float, ink: Ink, size: int
) -> None:
    """Draw the dots of hosts with about the same figure above each other, nearer to each other
    where they are many."""
    places = Counter(round(one / size) for one in at)
    step = min(size + 1, room / max([1, *places.values()]))
    for place, count in places.items():
        # Dots that lie on each other show no more than every second pixel of them.
        shown = min(count, math.ceil(count * step / 2) + 1)
        for number in range(shown):
            y = base - (count - 1) * step * (number / max(1, shown - 1))
            canvas.dot((place * size, y), ink, size)


def _beyond(canvas: Canvas, row: HostsRow, x: Scale, base: float) -> None:
    """Count the hosts beyond each edge there."""
    for edge, value in ((x.first_px - 4, x.low), (x.last_px + 4, x.high)):
        beyond = [one for one in row.values if (one < value if value == x.low else one > value)]
        if beyond:
            tip = -6 if value == x.low else 6
            canvas.shape([(edge + tip, base), (edge, base - 4), (edge, base + 4)], Ink.QUIET)
            canvas.text((edge, base - 12), f"{len(beyond):,}", ink=Ink.QUIET, anchor="middle")
