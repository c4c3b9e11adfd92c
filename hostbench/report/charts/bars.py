"""Bars from zero with limits, peers, and the share of the limit beside them."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostbench.base.units import human, percent
from hostbench.report.charts.canvas import NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import Bar, BarChart, BarGroup

LAYERS = (Ink.TRACK, Ink.BAR, Ink.INTERVAL, Ink.LIMIT, Ink.PAPER, Ink.PEER)
# An interval is only drawn if it is visible.
INTERVAL_LEAST_PX = 3
PEER_PX = 4.5
TOP_PX = 2


@dataclass(frozen=True)
class _Layout:
    """Pixels from the left and sizes. `labels` ends where the bars begin."""

    width: int
    row: int
    title: int
    thickness: float


@dataclass(frozen=True)
class _Wide(_Layout):
    """Label, bar, figure, share bar, share, note: each in its own column."""

    labels: int = 130
    bars: int = 290
    figure: int = 520
    shares: int = 545
    share: int = 90
    percent: int = 690
    note: int = 702


WIDE = _Wide(width=WIDE_PX, row=21, title=27, thickness=11)
NARROW = _Layout(width=NARROW_PX, row=33, title=28, thickness=9)


def bar_chart(chart: BarChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    return _drawn(chart, title, WIDE, "wide"), _drawn(chart, title, NARROW, "narrow")


def _drawn(chart: BarChart, title: str, layout: _Layout, css_class: str) -> str:
    height = TOP_PX + sum(
        layout.row * len(group.bars) + _title_height(group, layout) for group in chart.groups
    )
    top = max(_reach(bar) for group in chart.groups for bar in group.bars) or 1.0
    canvas = Canvas(layout.width, height)
    for y, group, bar in _places(chart, layout):
        if bar is None:
            canvas.text((0, y), group.title, bold=True)
        elif isinstance(layout, _Wide):
            _wide_bar(canvas, layout, bar, y, top, chart)
        else:
            _narrow_bar(canvas, layout, bar, y, top, chart)
    return canvas.svg(title, css_class, LAYERS)


def _title_height(group: BarGroup, layout: _Layout) -> int:
    return layout.title if group.title else 6


def _reach(bar: Bar) -> float:
    return max(bar.value, bar.high, bar.limit or 0.0, *bar.peers)


def _places(chart: BarChart, layout: _Layout) -> Iterator[tuple[float, BarGroup, Bar | None]]:
    """Yield the vertical middle of every title and every bar."""
    y = float(TOP_PX)
    for group in chart.groups:
        if group.title:
            yield y + layout.title - 11, group, None
        y += _title_height(group, layout)
        for bar in group.bars:
            yield y + layout.row / 2, group, bar
            y += layout.row


def _wide_bar(
    canvas: Canvas, layout: _Wide, bar: Bar, y: float, top: float, chart: BarChart
) -> None:
    canvas.text((layout.labels - 10, y), bar.label, anchor="end")
    _bar(canvas, bar, layout.labels, y, layout.thickness, layout.bars / top)
    canvas.text((layout.figure, y), human(bar.value, chart.unit), anchor="end")
    if bar.efficiency is not None:
        above = y - layout.thickness / 2
        filled = layout.share * min(1.0, bar.efficiency)
        canvas.box(layout.shares, above, layout.share, layout.thickness, Ink.TRACK)
        canvas.box(layout.shares, above, filled, layout.thickness, Ink.BAR)
        canvas.text((layout.percent, y), percent(bar.efficiency), anchor="end")
    elif bar.limit is None and chart.has_limits:
        canvas.text((layout.percent, y), "no limit", ink=Ink.QUIET, anchor="end")
    if bar.note:
        canvas.text((layout.note, y), bar.note, ink=Ink.WARN)


def _narrow_bar(
    canvas: Canvas, layout: _Layout, bar: Bar, y: float, top: float, chart: BarChart
) -> None:
    line = y - 8
    canvas.text((0, line), f"{bar.label} · {bar.note}" if bar.note else bar.label)
    figure = human(bar.value, chart.unit)
    if chart.has_limits:
        share = "no limit" if bar.efficiency is None else percent(bar.efficiency)
        figure = f"{figure}, {share}"
    canvas.text((layout.width, line), figure, anchor="end")
    _bar(canvas, bar, 0, y + 6, layout.thickness, (layout.width - PEER_PX - 2) / top)


def _bar(canvas: Canvas, bar: Bar, left: float, y: float, thickness: float, scale: float) -> None:
    half = thickness / 2
    canvas.box(left, y - half, bar.value * scale, thickness, Ink.BAR)
    if (bar.high - bar.low) * scale >= INTERVAL_LEAST_PX:
        canvas.line((left + bar.low * scale, y), (left + bar.high * scale, y), Ink.INTERVAL, 2)
    if bar.limit is not None:
        x = left + bar.limit * scale
        canvas.line((x, y - half - 2.5), (x, y + half + 2.5), Ink.LIMIT, 2)
    for peer in bar.peers:
        _diamond(canvas, left + peer * scale, y)


def _diamond(canvas: Canvas, x: float, y: float) -> None:
    corners = [(x - PEER_PX, y), (x, y - PEER_PX), (x + PEER_PX, y), (x, y + PEER_PX)]
    canvas.shape(corners, Ink.PAPER)
    canvas.outline(corners, Ink.PEER)
