"""One figure over the jobs of months, and where it changed."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from hostbench.base.units import human, tick
from hostbench.report.charts.axes import Scale, linear_ticks
from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import HistoryChart

LAYERS = (Ink.BAND, Ink.GRID, Ink.QUIET, Ink.INTERVAL, Ink.BAR, Ink.LIMIT, Ink.TEXT)
TOP_PX, BOTTOM_PX, LEFT_PX, RIGHT_PX = 22, 24, 84, 34
TICK_LEFT_PX, TICK_BELOW_PX = 6, 12
ROOM = 0.08
LINK_PX = 16
# A limit further off than this many times the range of the figures would press them flat: only its
# table has it.
LIMIT_REACH = 2.0
HOUR_S = 3600
DAY_S = 24 * HOUR_S
BY_DAY, BY_HOUR = "%Y-%m-%d", "%d. %H:%M"
# The distances between ticks, which are midnights or hours of a day.
STEPS_S = (
    *(hours * HOUR_S for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_S for days in (1, 2, 7, 14, 30, 91, 182, 365)),
)


@dataclass(frozen=True)
class _Layout:
    """Pixels, and how many ticks fit below."""

    width: int
    plot: int
    ticks: int


WIDE = _Layout(width=WIDE_PX, plot=240, ticks=7)
NARROW = _Layout(width=NARROW_PX, plot=200, ticks=3)


def history_chart(chart: HistoryChart, title: str, job_address: str = "") -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart. With the address of jobs, each point
    leads to its job."""
    return (
        _drawn(chart, title, WIDE, "wide", job_address),
        _drawn(chart, title, NARROW, "narrow", job_address),
    )


def date_ticks(first_s: float, last_s: float, most: int) -> list[tuple[float, str]]:
    """Return times from `first_s` to `last_s`, at most `most`, with their labels: days, or hours if
    there are few days.

    Times are seconds since 1970; labels are in this host's time zone.
    """
    step = next((one for one in STEPS_S if (last_s - first_s) / one < most), STEPS_S[-1])
    step *= max(1, math.ceil((last_s - first_s) / step / most))
    first = datetime.fromtimestamp(first_s).astimezone()
    start = first.replace(hour=0, minute=0, second=0, microsecond=0)
    form = BY_DAY if step >= DAY_S else BY_HOUR
    count = math.ceil((last_s - start.timestamp()) / step) + 1
    times = (start + timedelta(seconds=step * number) for number in range(count))
    return [(t.timestamp(), f"{t:{form}}") for t in times if first_s <= t.timestamp() <= last_s]


def _time_ticks(chart: HistoryChart, x: Scale, most: int) -> list[tuple[float, str]]:
    """Return the ticks of the axis of time. Where fewer than two round times fit, they are the
    first and the last job."""
    if len(ticks := date_ticks(x.low, x.high, most)) > 1:
        return ticks
    times = {time_s for time_s, _ in chart.points}
    ends = [datetime.fromtimestamp(end).astimezone() for end in sorted({min(times), max(times)})]
    form = BY_DAY if ends[-1] - ends[0] >= timedelta(days=1) else BY_HOUR
    return [(end.timestamp(), f"{end:{form}}") for end in ends]


def _drawn(
    chart: HistoryChart, title: str, layout: _Layout, css_class: str, job_address: str
) -> str:
    bottom = TOP_PX + layout.plot
    x_low, x_high = _range([x for x, _ in chart.points], least=HOUR_S)
    y_low, y_high = _heights(chart)
    x = Scale(x_low, x_high, LEFT_PX, layout.width - RIGHT_PX)
    y = Scale(y_low, y_high, bottom, TOP_PX)
    canvas = Canvas(layout.width, bottom + BOTTOM_PX)
    _reference(canvas, chart, y, (LEFT_PX, layout.width - RIGHT_PX))
    for time_s, label in _time_ticks(chart, x, layout.ticks):
        at = x.px(time_s)
        canvas.line((at, TOP_PX), (at, bottom), Ink.GRID)
        canvas.text((at, bottom + TICK_BELOW_PX), label, ink=Ink.QUIET, anchor="middle")
    for value in linear_ticks(y_low, y_high, 6):
        at = y.px(value)
        canvas.line((LEFT_PX, at), (layout.width - RIGHT_PX, at), Ink.GRID)
        label = tick(value, chart.unit)
        canvas.text((LEFT_PX - TICK_LEFT_PX, at), label, ink=Ink.QUIET, anchor="end")
    _changes(canvas, chart, x, bottom)
    for point, interval in itertools.zip_longest(chart.points, chart.intervals):
        at = x.px(point[0])
        if interval is not None:
            canvas.line((at, y.px(interval[0])), (at, y.px(interval[1])), Ink.INTERVAL, 1.5)
        canvas.dot((at, y.px(point[1])), Ink.BAR, 5)
    for level in chart.levels:
        at = y.px(level.y)
        canvas.line((x.px(level.first), at), (x.px(level.last), at), Ink.LIMIT, 2)
    for (time_s, value), job in zip(chart.points, chart.jobs, strict=False):
        if job_address:
            text = f"{job}: {human(value, chart.unit)}"
            canvas.link((x.px(time_s), y.px(value)), LINK_PX, job_address + quote(job), text)
    return canvas.svg(title, css_class, LAYERS)


def _heights(chart: HistoryChart) -> tuple[float, float]:
    """Return the lowest and the highest value of the vertical axis."""
    values = [value for _, value in chart.points]
    values += [end for interval in chart.intervals if interval for end in interval]
    low, high = min(values), max(values)
    reach = LIMIT_REACH * max(high - low, abs(low) * 0.05)
    near = [*(chart.expected or ()), chart.limit]
    values += [v for v in near if v is not None and low - reach <= v <= high + reach]
    return _range(values, least=abs(values[0]) * 0.01)


def _reference(canvas: Canvas, chart: HistoryChart, y: Scale, ends: tuple[float, float]) -> None:
    """Draw what the figures are held against, as far as it is on the axis."""
    left, right = ends
    if chart.expected is not None:
        low, high = chart.expected
        below = y.low if low is None else min(max(low, y.low), y.high)
        above = y.high if high is None else min(max(high, y.low), y.high)
        canvas.box(left, y.px(above), right - left, y.px(below) - y.px(above), Ink.BAND)
    if chart.limit is not None and y.low <= chart.limit <= y.high:
        at = y.px(chart.limit)
        canvas.polyline([(left, at), (right, at)], Ink.LIMIT, 1.5, dashed=True)


def _changes(canvas: Canvas, chart: HistoryChart, x: Scale, bottom: float) -> None:
    """Draw a line for each change, with its number above it if there is room."""
    end = -math.inf
    for number, time_s in enumerate(chart.changes, start=1):
        at, half = x.px(time_s), len(str(number)) * CHARACTER_PX / 2
        canvas.line((at, TOP_PX), (at, bottom), Ink.QUIET, 1.5)
        if at - half > end:
            canvas.text((at, TOP_PX / 2), str(number), anchor="middle", bold=True)
            end = at + half + 2


def _range(values: Sequence[float], least: float) -> tuple[float, float]:
    """Return the lowest and the highest value with some room, never an empty range."""
    low, high = min(values), max(values)
    room = max((high - low) * ROOM, least or 1.0)
    return low - room, high + room
