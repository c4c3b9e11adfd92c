"""Comparisons as a page and as Markdown."""

import itertools
import random
import re
from dataclasses import replace
from xml.etree import ElementTree

from hostbench.decisions.compare import compare
from hostbench.model.decision import Comparison, JobFigures
from hostbench.page.comparison import ROWS_DRAWN, comparison_report
from hostbench.report.charts.canvas import CHARACTER_PX
from hostbench.report.charts.draw import draw
from hostbench.report.charts.forest import forest_reach
from hostbench.report.content import Chart, ForestChart, ForestRow, Report
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from tests.unit.decided import Hosts


def compared(count: int = 6, changed: float = 0.9, jobs: int = 5) -> Comparison:
    hosts = Hosts(tuple(f"cpu.fma {n}" for n in range(count)), between=0.001, rng=random.Random(1))
    a: list[JobFigures] = hosts.jobs(jobs)
    b = [hosts.job({"cpu.fma 3": changed}, facts={"kernel": "6.8.0"}) for _ in range(jobs)]
    return compare(a, b, names=("main", "change <b>"))


def forest(report: Report) -> ForestChart:
    (chart,) = [block for block in report.sections[0].blocks if isinstance(block, Chart)]
    assert isinstance(chart.drawing, ForestChart)
    return chart.drawing


def test_the_page_has_the_answer_the_figures_and_the_facts() -> None:
    page = html(comparison_report([compared()]))
    head = page[page.index("<body>") : page.index("<nav")]
    assert '<div class="answer bad">' in head and "Worse: of 6 cases 1 worse, 5 same." in head
    assert re.search(r"cpu\.fma 3: −\d+\.\d %, worse\.</strong> \d", head), "what changed"
    assert "change &lt;b&gt;" in page and "change <b>" not in page
    assert '<span class="mark worse">1 worse</span>' in page
    assert "6.8.0" in page
    assert "<script" not in page


def test_markdown_has_what_changed_and_folds_what_is_the_same() -> None:
    text = markdown(comparison_report([compared()]))
    changed, same = text.split("<details><summary>5 figures the same</summary>")
    assert "| cpu.fma 3 |" in changed and "| worse |" in changed
    assert same.count("| same |") == 5
    assert "| kernel | 6.1.0 | 6.8.0 |" in same


def test_further_sides_have_sections_of_their_own() -> None:
    report = comparison_report([compared(), compared(changed=1.0)])
    anchors = [section.anchor for section in report.sections]
    assert len(anchors) == len(set(anchors)) == 6
    assert [name for name, _ in report.facts.items] == ["side A", "side B", "side C"]


def test_the_worst_is_drawn_first_and_sixty_rows_at_most() -> None:
    report = comparison_report([compared(count=80)])
    rows = forest(report).rows
    assert len(rows) == ROWS_DRAWN
    assert rows[0].label == "cpu.fma 3" and rows[0].stands_out
    assert not any(row.stands_out for row in rows[1:])
    assert "Of 80 figures the first 60." in html(report)


def test_figures_without_an_interval_are_drawn_without_one() -> None:
    report = comparison_report([compared(jobs=1)])
    assert all(row.low is None for row in forest(report).rows)
    assert "undecided" in html(report)


def test_both_drawings_are_svg_within_their_width() -> None:
    """One row beyond the axis on either side, and one wide interval."""
    rows = (
        *(ForestRow(f"row {n}", 1.0, 0.99, 1.01, 0.02, "same") for n in range(20)),
        ForestRow("far <below>", 0.2, 0.1, 0.3, 0.02, "worse", stands_out=True),
        ForestRow("far above", 5.0, None, None, 0.02, "undecided"),
    )
    chart = ForestChart(rows)
    assert forest_reach(chart) == 0.02
    for drawing in draw(chart, "ratios"):
        svg = ElementTree.fromstring(drawing)
        width = float(svg.attrib["viewBox"].split()[2])
        assert "far <below>" in [text.text for text in svg.iter("text")]
        assert all(0 <= float(text.attrib["x"]) <= width for text in svg.iter("text"))


def test_a_long_label_is_drawn_whole_in_several_lines() -> None:
    """Left of the plot, and in the narrow drawing left of its remark."""
    label = "mem.triad 2 threads nt avx512 8 streams prefetch none " + "x" * 100
    long = ForestRow(label, 1.0, 0.9, 1.1, 0.02, "−47.2 % undecided")
    chart = ForestChart((long, replace(long, label="next", remark="same")))
    for drawing in draw(chart, "ratios"):
        texts = list(ElementTree.fromstring(drawing).iter("text"))
        by_text = {str(text.text): text for text in texts}
        below, remark = by_text["next"], by_text[long.remark]
        lines = [one for one in texts if one.attrib["x"] == below.attrib["x"] and one is not below]
        assert " ".join(str(one.text) for one in lines).replace("x x", "xx") == label
        tops = [float(one.attrib["y"]) for one in (*lines, below)]
        assert all(low + 10 < high for low, high in itertools.pairwise(tops))
        longest = max(len(str(one.text)) for one in lines) * CHARACTER_PX
        if below.attrib.get("text-anchor") == "end":
            assert longest <= float(below.attrib["x"])
        else:
            assert longest <= float(remark.attrib["x"]) - len(long.remark) * CHARACTER_PX
