"""Quantities over time, one above the other on the same axis of seconds."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hostbench.base.units import human
from hostbench.report.charts.svg import NARROW_PX, WIDE_PX, Ink, drawing, svg_of
from hostbench.report.content import Line, Panel, TimeChart
from hostbench.report.plaintext import one_line

PANEL_PX, LOWER_PX, TITLE_PX, BOTTOM_PX = 130, 62, 34, 28
LEFT_PX, RIGHT_PX = 84, 24
# A point a pixel of the whole axis; a denser run is drawn as its band: lowest and highest of each
# bin.
POINTS_MOST = {WIDE_PX: 660, NARROW_PX: 260}
POINTS_LEAST = 24
MARKED_MOST = 40


def time_chart(chart: TimeChart, title: str) -> tuple[str, str]:
    """The chart wide and narrow."""
    return _drawn(chart, title, WIDE_PX, "wide"), _drawn(chart, title, NARROW_PX, "narrow")


def _drawn(chart: TimeChart, title: str, width: int, css_class: str) -> str:
    heights = [PANEL_PX, *(LOWER_PX for _ in chart.panels[1:])]
    height = sum(heights) + TITLE_PX * len(heights) + BOTTOM_PX
    with drawing(width, height) as figure:
        y = float(height)
        for panel, panel_height in zip(chart.panels, heights, strict=True):
            y -= TITLE_PX + panel_height
            box = (
                LEFT_PX / width,
                y / height,
                (width - LEFT_PX - RIGHT_PX) / width,
                panel_height / height,
            )
            axes: Axes = figure.add_axes(box)
            axes.set_xlim(0, chart.seconds)
            _fill(axes, panel, POINTS_MOST[width], is_last=panel is chart.panels[-1])
            _title(axes, panel.title, width, panel_height)
        return svg_of(figure, title, css_class)


def _title(axes: Axes, text: str, width: int, height: float) -> None:
    axes.text(
        -LEFT_PX / (width - LEFT_PX - RIGHT_PX),
        1 + 16 / height,
        one_line(text),
        transform=axes.transAxes,
        color=Ink.TEXT.value,
        va="center_baseline",
        fontweight="bold",
    )


def _fill(axes: Axes, panel: Panel, most: int, *, is_last: bool) -> None:
    axes.patch.set_visible(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylim(*_value_range(panel))
    axes.yaxis.set_major_locator(MaxNLocator(2 if panel.whole else 4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _description(value, panel.unit)))
    axes.xaxis.set_major_locator(MaxNLocator(6 if most > 300 else 4, integer=False))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))
    axes.tick_params(length=0, colors=Ink.QUIET.value, labelbottom=is_last, pad=6)
    axes.grid(axis="y", color=Ink.GRID.value, linewidth=1, solid_capstyle="butt")
    for level in panel.levels:
        axes.plot(
            (level.first, level.last), (level.y, level.y), color=Ink.LIMIT.value, clip_on=False,
            linewidth=1.5, solid_capstyle="butt",
        )  # fmt: skip
    seconds = axes.get_xlim()[1]
    for line in panel.lines:
        share = (line.x[-1] - line.x[0]) / seconds
        _line(axes, line, max(POINTS_LEAST, round(most * share)))


def _description(value: float, unit: str) -> str:
    return f"{value * 100:g} %" if unit == "1" else human(value, unit)


def _value_range(panel: Panel) -> tuple[float, float]:
    values = [y for line in panel.lines for y in line.y if y is not None]
    values += [level.y for level in panel.levels]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if panel.whole:
        return 0.0, max(1.0 if panel.unit == "1" else high, high) * 1.02
    # Noise of a thousandth is not to look like a mountain range.
    least = 0.02 * max(abs(high), abs(low)) or 1.0
    room = max(high - low, least) * 0.08
    middle, half = (low + high) / 2, max(high - low, least) / 2
    return middle - half - room, middle + half + room


def _line(axes: Axes, line: Line, most: int) -> None:
    known = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None]
    if len(known) > most:
        _band(axes, line, most)
        return
    ys = [math.nan if y is None else y for y in line.y]
    axes.plot(
        line.x, ys, color=Ink.BAR.value, linewidth=1.5, clip_on=False, solid_joinstyle="round",
        solid_capstyle="round",
    )  # fmt: skip
    if 0 < len(known) <= MARKED_MOST:
        # Round ends make a dot of a line without length.
        gap = (math.nan, math.nan)
        points = [point for at in known for point in (at, at, gap)]
        axes.plot(
            *zip(*points, strict=True), color=Ink.BAR.value, linewidth=4.5, clip_on=False,
            solid_capstyle="round",
        )  # fmt: skip


def _band(axes: Axes, line: Line, most: int) -> None:
    """More samples than pixels: the lowest and highest of each bin, and its middle."""
    bins = [bin_ for bin_ in _bins(line, most) if bin_]
    xs = [_mean([x for x, _ in bin_]) for bin_ in bins]
    lows, highs = ([f(y for _, y in bin_) for bin_ in bins] for f in (min, max))
    axes.fill(
        [*xs, *reversed(xs)], [*lows, *reversed(highs)], facecolor=Ink.BAND.value, clip_on=False,
        linewidth=0,
    )  # fmt: skip
    middles = [sorted(y for _, y in bin_)[len(bin_) // 2] for bin_ in bins]
    axes.plot(xs, middles, color=Ink.BAR.value, linewidth=1.2, clip_on=False)


def _bins(line: Line, most: int) -> list[list[tuple[float, float]]]:
    size = math.ceil(len(line.x) / (most // 2))
    points = list(zip(line.x, line.y, strict=True))
    parts = [points[i : i + size] for i in range(0, len(points), size)]
    return [[(x, y) for x, y in part if y is not None] for part in parts]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
