"""The drawings: SVG that fits into the page, with its text as text."""

import functools
import re
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest

from hostbench.report.charts.axes import linear_ticks, logarithmic_ticks
from hostbench.report.charts.canvas import Ink
from hostbench.report.charts.draw import draw
from hostbench.report.charts.spread import axis_range
from hostbench.report.content import (
    Bar,
    BarChart,
    BarGroup,
    Chart,
    Curve,
    CurveAxis,
    CurveChart,
    CurveMark,
    CurvePoint,
    Drawing,
    Facts,
    Level,
    Line,
    MatrixChart,
    MatrixScale,
    Panel,
    Point,
    PointKind,
    Report,
    Section,
    SpreadChart,
    SpreadGroup,
    SpreadRow,
    TimeChart,
)
from hostbench.report.html import html

# What a host name or a suite's label may hold: markup, TeX, control characters, other scripts.
HOSTILE = "<b>&\"'$\\frac{x}$ \x00\x1b\u202e 测试"


def bars(label: str = "avx2", **changes: float | None) -> BarChart:
    plain: dict[str, float | None] = {
        "value": 9.0e9, "low": 8e9, "high": 9.5e9, "limit": 1e10, "efficiency": 0.9,
    }  # fmt: skip
    bar = Bar(label=label, peers=(8.9e9,), note="noisy", **(plain | changes))  # type: ignore[arg-type]
    return BarChart("operation/s", (BarGroup(label, (bar, bar)), BarGroup("", (bar,))))


def strips(label: str = "avx2", *deviations: float) -> SpreadChart:
    points = [Point(deviation, PointKind.COUNTED) for deviation in deviations or (-0.003, 0.003)]
    points += [Point(-0.4, PointKind.LEFT_OUT), Point(0.3, PointKind.DISTURBED)]
    return SpreadChart((SpreadGroup("", (SpreadRow(label, tuple(points), -0.003, 0.003),)),))


def series(label: str = "rate", samples: int = 600) -> TimeChart:
    x = tuple(i + 0.5 for i in range(samples))
    y = tuple(None if i % 50 == 7 else 1e9 + i for i in range(samples))
    rate = Panel(label, "operation/s", (Line(x, y),), (Level(0, samples, 1.01e9),))
    ratio = Panel("clean slice ratio", "1", (Line(x, (0.5,) * samples),), whole=True)
    return TimeChart(float(samples), (rate, ratio))


def curve_chart(
    label: str = "huge pages",
    *ys: float,
    curves: int = 2,
    marks: Mapping[str, float] | None = None,
) -> CurveChart:
    points = tuple(
        CurvePoint(4096.0 * 4**i, y, 0.97 * y, 1.2 * y)
        for i, y in enumerate(ys or (1.2e-9, 5e-9, 9e-8, 1.7e-7))
    )
    return CurveChart(
        CurveAxis("working set", "byte", logarithmic=True),
        CurveAxis(label, "s", logarithmic=True),
        tuple(Curve(f"{label} {n}", points) for n in range(curves)),
        tuple(CurveMark(name, x) for name, x in (marks or {}).items()),
        "size of a cache",
    )


def load_chart() -> CurveChart:
    points = tuple(CurvePoint(x * 1e9, 1e-7 + x * 1e-9, 1e-7, 2e-7) for x in (0, 30, 20))
    axes = CurveAxis("load", "byte/s"), CurveAxis("time", "s")
    return CurveChart(*axes, (Curve("", points),))


DRAWINGS = [
    bars(),
    strips(),
    series(),
    series(samples=3),
    curve_chart(marks={"L1": 48 << 10, "L2": 2 << 20, "L3": 1 << 40}),
    curve_chart("one point", 1e-9, curves=17),
    load_chart(),
]


@functools.cache
def drawn(drawing: Drawing) -> tuple[str, str]:
    return draw(drawing, "A title")


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_it_fits_into_the_page(drawing: Drawing) -> None:
    for text in drawn(drawing):
        svg = ElementTree.fromstring(text)
        assert (svg.get("role"), svg.get("aria-label")) == ("img", "A title")
        # No ids, so nothing on the page can meet another chart's; no size, so that it scales.
        assert not re.search(r"\bid=|url\(|href|(?<!-)\b(width|height)=|style|<script", text)
        assert set(re.findall(r"var\((--\w+)\)", text)) <= {f"--{ink.name.lower()}" for ink in Ink}


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_the_same_again(drawing: Drawing) -> None:
    assert draw(drawing, "A title") == drawn(drawing)


@pytest.mark.parametrize(
    "drawing", [bars(HOSTILE), strips(HOSTILE), series(HOSTILE), curve_chart(HOSTILE)]
)
def test_text_is_text(drawing: Drawing) -> None:
    for text in draw(drawing, HOSTILE):
        svg = ElementTree.fromstring(text)
        texts = [element.text or "" for element in svg.iter("text")]
        assert any("<b>&\"'$\\frac{x}$ " in one for one in texts)
        assert not re.search(r"[\x00-\x08\x1b\u202e]", text)


def test_the_figures_of_bars_stand_beside_them() -> None:
    for text in draw(bars(), "A title"):
        assert "9.000 Gop/s" in text and "90.0 %" in text and "noisy" in text


def test_bars_without_a_limit_say_so() -> None:
    for text in draw(bars(limit=None, efficiency=None), "A title"):
        assert "no limit" in text and Ink.LIMIT.variable not in text


def test_bars_of_a_quantity_without_limits_say_nothing_of_them() -> None:
    times = BarChart("s", bars(limit=None, efficiency=None).groups, has_limits=False)
    for text in draw(times, "A title"):
        assert "limit" not in text


def test_bars_of_nothing() -> None:
    assert draw(bars(value=0, low=0, high=0, limit=None), "A title")


@pytest.mark.parametrize(
    ("deviations", "reach"),
    [
        ((0.001, -0.002, 0.003, -0.0099) * 5, 0.01),
        # One of twenty is far away: the others are still distinct.
        ((*(0.004 for _ in range(20)), 0.09), 0.01),
        ((0.03, -0.04, 0.045) * 5, 0.05),
        ((0.03, -0.04, 0.045), 0.50),  # of so few, none is odd
        ((0.9, -0.8, 0.9), 0.50),
    ],
)
def test_the_axis_of_the_spread(deviations: tuple[float, ...], reach: float) -> None:
    assert axis_range(strips("x", *deviations)) == reach


def test_trials_beyond_the_axis_have_their_figure() -> None:
    for text in draw(strips("x", *(0.004 for _ in range(30))), "A title"):
        assert "−40.0 %" in text and "+30.0 %" in text


def test_a_long_series_stays_small() -> None:
    """An hour of samples is drawn as its band, with its extremes."""
    wide, narrow = draw(series(samples=3600), "A title")
    assert Ink.BAND.variable in wide and Ink.BAND.variable in narrow
    assert len(wide) < 60_000 and len(narrow) < 30_000
    wide, narrow = draw(series(), "A title")
    assert Ink.BAND.variable not in wide and Ink.BAND.variable in narrow


def texts_of(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


@pytest.mark.parametrize(
    ("first", "last", "wide", "narrow"),
    [
        (12, 30, ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"], ["32 KiB", "1 MiB"]),
        (0, 30, ["1 B", "32 B", "1 KiB"], ["1 B", "1 KiB", "1 MiB", "1 GiB"]),
        (12, 12, ["2 KiB", "4 KiB", "8 KiB"], ["2 KiB", "4 KiB", "8 KiB"]),
    ],
)
def test_sizes_are_reported_in_powers_of_two(
    first: int, last: int, wide: list[str], narrow: list[str]
) -> None:
    ends = tuple(CurvePoint(2.0**n, 1e-9, 1e-9, 1e-9) for n in (first, last))
    axes = CurveAxis("size", "byte", logarithmic=True), CurveAxis("time", "s")
    drawn = draw(CurveChart(*axes, (Curve("", ends),)), "A title")
    for svg, expected, most in zip(drawn, (wide, narrow), (10, 5), strict=True):
        sizes = [text for text in texts_of(svg) if re.fullmatch(r"\d+ ([KMG]i)?B", text)]
        assert sizes[: len(expected)] == expected
        assert len(sizes) <= most


def test_ticks_are_round_and_few() -> None:
    for low, high, most, expected in (
        (0, 600, 6, [0, 100, 200, 300, 400, 500, 600]),
        (0.95, 1.05, 4, [0.95, 0.975, 1, 1.025, 1.05]),
        (0, 1.02, 2, [0, 1]),
        (-3, 7, 5, [-2, 0, 2, 4, 6]),
        (1.17e11, 1.19e11, 4, [1.17e11, 1.175e11, 1.18e11, 1.185e11, 1.19e11]),
    ):
        assert linear_ticks(low, high, most) == pytest.approx(expected)
    for low, high, most, expected in (
        (1.9, 1100, 10, [2, 5, 10, 20, 50, 100, 200, 500, 1000]),
        (3e-9, 6e-8, 10, [5e-9, 1e-8, 2e-8, 5e-8]),
        (1e-9, 1.0, 5, [1e-8, 1e-6, 1e-4, 1e-2, 1]),  # too many decades to show each
        (2.2, 4.4, 6, [2.5, 3, 3.5, 4]),  # no more than one of 1, 2 and 5
    ):
        assert logarithmic_ticks(low, high, most) == pytest.approx(expected)


def test_times_are_reported_in_nanoseconds() -> None:
    for svg in draw(curve_chart("t", 0.4e-9, 397e-9), "A title"):
        assert {"0.5 ns", "1 ns", "10 ns", "200 ns"} <= set(texts_of(svg))


def test_strips_leave_room_for_long_labels() -> None:
    label = "block 4 KiB queue_depth=32 16 threads psync"
    found = {one.text: one for svg in draw(strips(label), "A title")[:1]
             for one in ElementTree.fromstring(svg).iter("text")}  # fmt: skip
    # It ends at x and is about six pixels a character.
    assert found[label].get("text-anchor") == "end"
    assert float(found[label].get("x", "0")) >= 6 * len(label)


def test_marks_beyond_the_curves_are_not_drawn() -> None:
    for svg in draw(curve_chart(marks={"L2": 64 << 10, "L3": 1 << 40}), "A title"):
        texts = texts_of(svg)
        assert "L2" in texts and "L3" not in texts


def test_names_of_marks_do_not_meet() -> None:
    """Caches of nearly the same size have their names one above the other."""
    sizes = {"performance": 1 << 15, "efficiency": 1.1 * (1 << 15)}
    for svg in draw(curve_chart(marks=sizes), "A title"):
        found = {one.text: one for one in ElementTree.fromstring(svg).iter("text")}
        heights = [float(found[name].get("y", "0")) for name in sizes]
        assert abs(heights[0] - heights[1]) >= 12


@pytest.mark.parametrize(("label", "rows"), [("a", 1), ("a rather long name" * 3, 4)])
def test_names_of_curves_stand_beside_one_another_where_they_fit(label: str, rows: int) -> None:
    wide, _ = draw(curve_chart(label, curves=4), "A title")
    found = [one for one in ElementTree.fromstring(wide).iter("text")
             if re.fullmatch(re.escape(label) + r" \d", one.text or "")]  # fmt: skip
    assert len(found) == 4 and len({one.get("y") for one in found}) == rows


def test_every_curve_has_a_look_of_its_own() -> None:
    """Colour and shape of the signs: the legend's line and its sign at the same place."""
    wide, _ = draw(curve_chart(curves=4), "A title")
    for ink in (Ink.BAR, Ink.PEER, Ink.THIRD, Ink.FOURTH):
        assert ink.variable in wide


def test_wide_intervals_leave_room_for_the_curve() -> None:
    """As on a busy host: figures differ by a factor, intervals by orders of magnitude."""
    points = tuple(CurvePoint(x, 10.0 * x, 1e-3, 1e5) for x in (1.0, 2.0))
    axis = CurveAxis("time", "1")
    for svg in draw(CurveChart(CurveAxis("chains", "1"), axis, (Curve("a", points),)), "A title"):
        ticks = [float(text) for text in texts_of(svg) if re.fullmatch(r"\d+", text)]
        assert max(ticks) <= 40


def matrix(count: int) -> MatrixChart:
    """Times that grow with the distance."""
    times = {(a, b): 100.0 + 40 * abs(a - b) for a in range(count) for b in range(count)}
    return MatrixChart(
        labels=tuple(f"node {number}" for number in range(count)),
        groups=(("", count),),
        cells={pair: 100 / time for pair, time in times.items()},
        scale=MatrixScale((0.8, 0.6, 0.4, 0.2), ("near", "less near", "far", "farther", "more")),
        words={pair: f"{time:g} ns" for pair, time in times.items()},
        rows_are="CPUs of",
        columns_are="memory of",
    )


@pytest.mark.parametrize(
    ("count", "where"), [(3, (True, True)), (8, (True, False)), (64, (False,) * 2)]
)
def test_the_figures_of_a_matrix_are_in_its_cells_where_they_fit(
    count: int, where: tuple[bool, bool]
) -> None:
    chart = matrix(count)
    for svg, fits in zip(draw(chart, "A title"), where, strict=True):
        texts = texts_of(svg)
        figures = [text for text in texts if text.endswith(" ns")]
        assert figures == (list(chart.words.values()) if fits else [])
        assert ("memory of" in texts) == fits
        # Of rows, and above the columns.
        assert texts.count("node 0") == (2 if fits else count < 64)
    wide = ElementTree.fromstring(draw(chart, "A title")[0])
    right = max((float(one.get("x", "0")) for one in wide.iter("text")), default=0.0)
    assert right < float(str(wide.get("viewBox")).split()[2])


def test_the_key_of_a_matrix_has_the_colours_that_occur() -> None:
    chart = Chart("A title", "", matrix(2))
    page = html(Report("A report", "", Facts(()), (), (), (Section("a", "A", (chart,)),)))
    assert "less near" in page and "not measured" not in page and "farther" not in page
