"""A history as a page."""

import itertools
import random
import re
from xml.etree import ElementTree

from hostbench.decisions.history import history
from hostbench.model.decision import FigureKind, History
from hostbench.page.history import history_report
from hostbench.report.charts.canvas import CHARACTER_PX
from hostbench.report.charts.draw import draw
from hostbench.report.charts.history import DAY_S, date_ticks
from hostbench.report.content import Chart, HistoryChart
from hostbench.report.html import html
from tests.each import each
from tests.unit.decided import BEGAN_UNIX_S, Hosts

TITLE = "cpu.fma 0"


def made(before: int = 10, after: int = 12, changed: float = 0.9) -> History:
    hosts = Hosts((TITLE,), between=0.001, apart_s=DAY_S, rng=random.Random(1))
    jobs = hosts.jobs(before)
    jobs += [hosts.job({TITLE: changed}, facts={"kernel": "6.8.0"}) for _ in range(after)]
    return history(jobs, jobs[-1].cases[TITLE], FigureKind.UNDISTURBED)


def drawing(one: History) -> HistoryChart:
    (chart,) = [
        block for block in history_report(one).sections[0].blocks if isinstance(block, Chart)
    ]
    assert isinstance(chart.drawing, HistoryChart)
    return chart.drawing


def test_the_page_marks_the_change_and_names_what_changed_there() -> None:
    one = made()
    chart, page = drawing(one), html(history_report(one))
    assert chart.changes == (one.changes[0].created_unix_s,)
    assert [round(level.y / 10) for level in chart.levels] == [10, 9]
    head = page[page.index("<body>") : page.index("<nav")]
    assert "Changed once." in head and '<div class="answer bad">' in head
    assert "%, worse." in head and "kernel: 6.1.0 before, 6.8.0 after." in head
    assert "kernel: 6.1.0 before, 6.8.0 after" in page
    assert "first job after a change" in page


def test_without_a_change_there_is_none_to_mark() -> None:
    page = html(history_report(made(changed=1.0)))
    assert "No change found." in page and '<div class="answer good">' in page
    assert "first job after a change" not in page and "What changed" not in page


@each(("before", "after"), [(0, 1), (0, 2), (3, 0)])
def test_few_jobs_have_a_page_too(before: int, after: int) -> None:
    one = made(before, after, 1.0)
    assert "Undecided: finding a change needs 8 jobs." in html(history_report(one))
    for svg in draw(drawing(one), "few"):
        assert "nan" not in svg


def test_without_any_figure_the_page_says_so() -> None:
    one = made().model_copy(update={"points": (), "changes": ()})
    assert "No job has a figure of this case that may be used." in html(history_report(one))


def test_both_drawings_are_svg_within_their_width() -> None:
    for text in draw(drawing(made()), "figures"):
        svg = ElementTree.fromstring(text)
        width = float(svg.attrib["viewBox"].split()[2])
        assert all(0 <= float(one.attrib["x"]) <= width for one in svg.iter("text"))


@each(("span_days", "most"), [(0.2, 7), (3, 7), (20, 7), (20, 2), (400, 2), (9000, 7)])
def test_ticks_of_dates_fit(span_days: float, most: int) -> None:
    first = BEGAN_UNIX_S + 1234
    ticks = date_ticks(first, first + span_days * DAY_S, most)
    assert 1 <= len(ticks) <= most + 1
    assert len({label for _, label in ticks}) == len(ticks)


@each("jobs", [1, 2, 3, 5, 7, 9, 12, 40])
def test_the_axis_of_time_has_two_dates_or_more(jobs: int) -> None:
    for text in draw(drawing(made(jobs, 0)), "figures"):
        svg = ElementTree.fromstring(text)
        labels = [
            one for one in svg.iter("text") if re.search(r"-\d\d-\d\d$|:\d\d$", one.text or "")
        ]
        places = sorted(float(one.attrib["x"]) for one in labels)
        assert len(places) > (jobs > 1) and len({one.text for one in labels}) == len(labels)
        # Beside each other, and within the drawing.
        widest = max(len(one.text or "") for one in labels) * CHARACTER_PX
        assert all(right - left > widest for left, right in itertools.pairwise(places))
        width = float(svg.attrib["viewBox"].split()[2])
        assert widest / 2 < places[0] and places[-1] < width - widest / 2
