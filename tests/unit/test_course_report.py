"""The course report: every published row beside what this run has of it."""

import copy
import functools
import re
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from hostbench.base.place import CHECKOUT
from hostbench.course.arithmetic import agrees, divides_by_n, slip_sentences, slips
from hostbench.course.evidence import Evidence
from hostbench.course.rows import rows_of
from hostbench.course.section import course_section
from hostbench.course.shortcuts import shortcut_sentences
from hostbench.course.table import NOT_PLANNED
from hostbench.judge.statistics import describe
from hostbench.model.events import EndEvent
from hostbench.model.published import Published, Shortcut
from hostbench.model.result import CaseResult, ResultDocument, Verdict
from hostbench.page.job import report_of
from hostbench.report.content import (
    Bullets,
    Chart,
    CurveChart,
    Mark,
    Paragraph,
    Part,
    Section,
    Share,
    Table,
    Text,
    TimeChart,
    inlines,
)
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from tests.unit.course_documents import (
    CLOCK,
    NO_FAR_HOST,
    PUBLISHED,
    course_run,
)
from tests.unit.records import RATE
from tests.unit.report_documents import full_run
from tests.unit.test_report_page import blocks, text_of


@functools.cache
def whole() -> ResultDocument:
    return course_run()


PAGE_BYTES_MOST = 2_000_000


@pytest.fixture(scope="module")
def section() -> Section:
    found = course_section(whole())
    assert found is not None
    return found


@functools.cache
def other() -> ResultDocument:
    """The same cases, measured with other figures."""
    return course_run(trials=4)


def part(section: Section, title: str) -> Part:
    return next(one for one in section.blocks if isinstance(one, Part) and one.title == title)


def inside(one: Part, kind: type) -> list[Any]:
    return [block for block in blocks(one) if isinstance(block, kind)]


def row_table(one: Part) -> Table:
    found: list[Table] = inside(one, Table)
    return next(table for table in found if table.columns[-1].title == "here")


def cell(table: Table, group: str, name: str, column: str) -> Text:
    place = next(n for n, one in enumerate(table.columns) if one.title == column)
    rows = next(one.rows for one in table.groups if one.title == group)
    return next(row for row in rows if plain(row[0]) == name)[place]


def plain(text: Text) -> str:
    words = [
        str(one.verdict) if isinstance(one, Mark) else str(getattr(one, "text", one))
        for one in inlines(text)
    ]
    return "".join(words).replace("\N{NO-BREAK SPACE}", " ")


def words_of(one: Part) -> str:
    """All sentences of a part."""
    found = [plain(block.text) for block in inside(one, Paragraph)]
    return " ".join([*found, *(plain(i) for block in inside(one, Bullets) for i in block.items)])


def published(**tables: Any) -> dict[str, Any]:
    """What was published with its CPU table changed."""
    changed = copy.deepcopy(PUBLISHED)
    changed["tables"] = ({**changed["tables"][0], **tables},)
    return changed


def evidence(document: ResultDocument, name: str, *words: Shortcut) -> Evidence:
    report = document.suite.published
    assert report is not None
    table = next(one for one in report.tables if one.name == name)
    return Evidence(
        report, table.model_copy(update={"shortcuts": words}), rows_of(table, document), document
    )


def test_it_is_the_first_section() -> None:
    assert report_of(whole(), "result.json").sections[0].anchor == "course"


def test_a_suite_that_reruns_nothing_has_none() -> None:
    assert course_section(full_run(trials=2)) is None


def test_every_published_row_is_in_its_table(section: Section) -> None:
    for table in PUBLISHED["tables"]:
        found = row_table(part(section, table["title"]))
        assert sum(len(group.rows) for group in found.groups) == len(table["rows"])


def test_published_figures_keep_their_digits(section: Section) -> None:
    table = row_table(part(section, "CPU speed"))
    assert cell(table, "int", "1 thread", "published") == "4.23975 ± 0.044513"


def test_a_theory_of_all_rows_stands_above_the_table(section: Section) -> None:
    speed = part(section, "CPU speed")
    assert "their limit" not in [column.title for column in row_table(speed).columns]
    assert any("36.64" in plain(one.text) for one in inside(speed, Paragraph))


def test_a_row_has_both_figures_of_this_run(section: Section) -> None:
    table = row_table(part(section, "CPU speed"))
    trials = [
        trial.value
        for case in whole().cases
        if case.workload == "cpu.add_sub" and case.params == _params("int32", 1)
        for trial in case.trials
        if trial.value
    ]
    expected = describe([value / 1e9 for value in trials])
    median = float(plain(cell(table, "int", "1 thread", "ours: median")))
    assert median == pytest.approx(expected.median, rel=1e-3)
    mean, deviation = plain(cell(table, "int", "1 thread", "ours: mean ± sd")).split(" ± ")
    assert float(mean) == pytest.approx(expected.mean, rel=1e-3)
    assert float(deviation) == pytest.approx(expected.standard_deviation, rel=0.1)
    low, high = plain(cell(table, "int", "1 thread", "interval")).split(" – ")
    # Other cases tell how much trials differ, too: it is narrower than that of these alone.
    alone = expected.interval
    assert alone.low < float(low) < expected.median < float(high) < alone.high
    assert float(plain(cell(table, "int", "1 thread", "naive / ours"))) == pytest.approx(0.25, 0.05)


def _params(dtype: str, threads: int) -> dict[str, Any]:
    return {"dtype": dtype, "threads": threads, "duration_s": 0.3}


def test_a_time_is_the_block_over_the_rate(section: Section) -> None:
    table = row_table(part(section, "Memory latency"))
    ours = float(plain(cell(table, "copy", "block 8 KiB, 1 thread", "ours: median")))
    assert ours == pytest.approx(2e6 * 8192 / 12e9, rel=0.05)
    low, high = plain(cell(table, "copy", "block 8 KiB, 1 thread", "interval")).split(" – ")
    assert float(low) <= ours <= float(high)


def test_our_limit_stands_with_its_source(section: Section) -> None:
    cpu = part(section, "CPU speed")
    assert cell(row_table(cpu), "int", "1 thread", "our limit") == "32.00"
    share = cell(row_table(cpu), "int", "1 thread", "ours of limit")
    assert isinstance(share, Share)
    assert share.ratio == pytest.approx(0.25, rel=0.05)
    assert CLOCK in words_of(cpu)


def test_efficiency_as_printed_and_as_it_follows(section: Section) -> None:
    table = row_table(part(section, "CPU speed"))
    assert cell(table, "double", "1 thread", "published of limit") == "6.39 %"
    assert cell(table, "double", "2 threads", "published of limit") == "12.5 % (6.3 %)"
    assert cell(table, "double", "8 threads", "published of limit") == "(6.3 %)"


def test_what_does_not_hold_in_the_report_is_reported(section: Section) -> None:
    text = words_of(part(section, "CPU speed"))
    assert "The mean is not that of the runs in 1 row, most of all in int, 2 threads" in text
    assert "prints 12.50, but 2.299 over 36.64 in percent is 6.274" in text
    assert "divide by the number of runs" in text
    assert "It calls 30 operations one." in text
    assert "the wrong way round in 2 rows" in words_of(part(section, "Memory latency"))


def test_what_holds_is_not_reported() -> None:
    run = course_run(published=published(rows=PUBLISHED["tables"][0]["rows"][:1]))
    assert run.suite.published is not None
    table = run.suite.published.tables[0]
    assert not slips(table, rows_of(table, run))


@pytest.mark.parametrize(
    ("efficiency", "reason"),
    [
        # Less is better: the limit over the figure, 50 %.
        (50.0, None),
        (
            0.5,
            "is a ratio and not in percent in 1 row, most of all in copy, block 8 B, "
            "1 thread: the report prints 0.5",
        ),
        (200.0, "divides limit and figure the wrong way round"),
        (20.0, "prints 20.00, but 2.000 over 4.000 in percent is 50.00"),
        (900.0, "prints 900.0, but 4.000 over 2.000 in percent is 200.0"),
    ],
)
def test_an_efficiency_that_does_not_follow_is_reported_by_its_kind(
    efficiency: float, reason: str | None
) -> None:
    changed = copy.deepcopy(PUBLISHED)
    rows = (("copy", 8, 1, 4.0, 2.0, efficiency),)
    changed["tables"] = ({**changed["tables"][1], "rows": rows},)
    table = Published.model_validate(changed).tables[0]
    sentences = list(slip_sentences(table, rows_of(table, whole())))
    assert len(sentences) == (reason is not None)
    assert all(reason in one for one in sentences if reason)


@pytest.mark.parametrize(
    ("printed", "expected", "holds"),
    [
        (6.39, 6.386, True),
        (0.607, 0.578, False),
        (0.02, 0.0156, True),
        (7, 7.0499, True),
        (7, 8.1, False),
        (1.58e-05, 1.581e-05, True),
        (1.58e-05, 2e-05, False),
        (0, 0.3, True),
        (5393, 7595.6, False),
    ],
)
def test_rounding_explains_only_so_much(printed: float, expected: float, holds: bool) -> None:
    assert agrees(printed, expected) is holds


def test_deviations_of_a_sample_are_distinguished() -> None:
    rows = (("int", 1, [1.0, 2.0, 4.0], None, 1.527525, None, None),)
    run = course_run(published=published(rows=rows))
    assert run.suite.published is not None
    table = run.suite.published.tables[0]
    assert divides_by_n(rows_of(table, run)) is False


def test_rows_that_this_host_is_too_small_for_are_marked(section: Section) -> None:
    cpu, memory = (row_table(part(section, one)) for one in ("CPU speed", "Memory latency"))
    assert "more threads than CPUs" in plain(cell(cpu, "int", "8 threads", "here"))
    assert "more threads than CPUs" not in plain(cell(cpu, "int", "2 threads", "here"))
    assert "less memory" in plain(cell(memory, "copy", "block 8 KiB, 1 thread", "here"))


def test_a_row_with_fewer_cpus_than_the_report_had_is_marked() -> None:
    wide = published()
    wide["host"] = {**wide["host"], "cpus": 24}
    found = course_section(course_run(published=wide))
    assert found is not None
    table = row_table(part(found, "CPU speed"))
    assert "2 CPUs of 24" in plain(cell(table, "int", "2 threads", "here"))
    assert "of 24" not in plain(cell(table, "int", "1 thread", "here"))


def test_rows_without_a_figure_keep_their_place_with_the_reason(section: Section) -> None:
    net, memory = part(section, "TCP, two nodes"), part(section, "Memory latency")
    assert plain(cell(row_table(net), "TCP", "1 stream", "here")) == f"{Verdict.SKIPPED} (a)"
    assert plain(cell(row_table(net), "TCP", "2 streams", "here")) == "not measured (b)"
    assert NO_FAR_HOST in words_of(net)
    assert NOT_PLANNED in words_of(net)
    assert "SIGKILL" in words_of(memory)


def test_a_chart_has_a_line_for_ours_and_one_for_the_published(section: Section) -> None:
    (chart,) = inside(part(section, "CPU speed"), Chart)
    assert isinstance(chart.drawing, CurveChart)
    assert [curve.label for curve in chart.drawing.curves] == ["int", "double", "", ""]
    assert [curve.beside for curve in chart.drawing.curves] == [None, None, 0, 1]
    theirs = chart.drawing.curves[2].points
    assert [(point.x, point.y) for point in theirs] == [(1, 4.23975), (2, 5.5), (8, 4.173048)]
    assert chart.drawing.x.ticks == (1, 2, 8)


def test_blocks_are_the_lines_where_rows_have_them(section: Section) -> None:
    (chart,) = inside(part(section, "Memory latency"), Chart)
    assert [curve.label for curve in chart.drawing.curves][:2] == ["block 8 B", "block 8 KiB"]
    assert chart.drawing.y.logarithmic


def test_published_lines_are_dashed_in_the_drawing() -> None:
    page = html(report_of(whole(), "result.json"))
    assert "stroke-dasharray" in page
    page = html(report_of(full_run(trials=2, workloads=["fma"]), "result.json"))
    assert "<svg" in page and "stroke-dasharray" not in page


def test_samples_are_a_plot_over_time(section: Section) -> None:
    (chart,) = inside(part(section, "600 samples"), Chart)
    assert isinstance(chart.drawing, TimeChart)
    (panel,) = chart.drawing.panels
    assert len(panel.lines[0].x) == 600


def test_the_reports_tools_stand_beside_ours(section: Section) -> None:
    table = next(
        one
        for one in inside(part(section, "CPU speed"), Table)
        if one.columns[0].title == "tool of the report"
    )
    first, second = table.groups[0].rows
    assert plain(first[1]) == "35.60 GFLOP/s"
    # The best of all cases that match: two cores' worth.
    assert float(plain(first[2]).split()[0]) == pytest.approx(16, rel=0.05)
    assert plain(second[4]) == "nothing here measures that"


# ---- what changed and why ----


def test_every_word_has_a_sentence_whatever_was_measured() -> None:
    words = get_args(Shortcut)
    for name in ("cpu", "memory", "net", "samples"):
        for word in words:
            (sentence,) = shortcut_sentences(evidence(whole(), name, word))
            assert sentence.endswith(".")
            assert "None" not in sentence


@pytest.mark.parametrize("word", get_args(Shortcut))
def test_a_sentence_has_figures_of_this_run(word: Shortcut) -> None:
    name = (
        "memory" if word in ("copied_once", "clock_per_operation", "lock_per_operation") else "cpu"
    )
    (sentence,) = shortcut_sentences(evidence(whole(), name, word))
    if word in ("time_per_block", "host_not_idle"):
        return  # nothing waits in this run, and a count of trials is the figure
    (again,) = shortcut_sentences(evidence(other(), name, word))
    assert re.search(r"\d", sentence)
    assert sentence != again


def test_a_single_trial_has_the_spread_of_its_samples() -> None:
    (sentence,) = shortcut_sentences(evidence(whole(), "samples", "one_run"))
    assert "within the one trial of double, 8 threads 600 samples lie between" in sentence


def test_shortcuts_that_the_same_figures_show_share_a_sentence() -> None:
    sentences = shortcut_sentences(evidence(whole(), "cpu", "loop_counted", "operands_in_memory"))
    assert len(sentences) == 1
    assert re.search(r"; together: at int, (2 threads|1 thread)", sentences[0])


def test_a_doubtful_figure_is_called_so() -> None:
    cases = tuple(
        case.model_copy(update={"verdict": Verdict.NOISY if case.naive else Verdict.CLEAN})
        for case in whole().cases
    )
    doubtful = whole().model_copy(update={"cases": cases})
    (sentence,) = shortcut_sentences(evidence(doubtful, "cpu", "page_cache"))
    assert "(the naive one noisy)" in sentence


@pytest.mark.parametrize("threads", [1, 2])
def test_a_shortcut_is_shown_where_threads_share_no_cpu(threads: int) -> None:
    slower = 1.5
    cases = tuple(
        _scaled(case, slower) if case.naive and case.params == _params("int32", threads) else case
        for case in whole().cases
    )
    one_cpu = whole().host.model_copy(update={"allowed_cpus": (0,)})
    run = whole().model_copy(update={"cases": cases, "host": one_cpu})
    (sentence,) = shortcut_sentences(evidence(run, "cpu", "page_cache"))
    assert "at int, 1 thread the naive way" in sentence


def _scaled(case: CaseResult, by: float) -> CaseResult:
    trials = tuple(
        trial.model_copy(
            update={
                "events": tuple(
                    event.model_copy(update={"metrics": {RATE: (event.metrics[RATE] or 0) / by}})
                    if isinstance(event, EndEvent)
                    else event
                    for event in trial.events
                )
            }
        )
        for trial in case.trials
    )
    return case.model_copy(update={"trials": trials})


def test_the_naive_way_is_held_against_ours(section: Section) -> None:
    text = words_of(part(section, "CPU speed"))
    found = re.search(r"way of measuring gives ([0-9.]+) % of what ours gives in the median", text)
    assert found
    assert float(found[1]) == pytest.approx(25, rel=0.05)


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(ValidationError, match="loop_counted"):
        Published.model_validate(published(shortcuts=("no_such_word",)))


def test_every_word_is_documented() -> None:
    page = (CHECKOUT / "docs" / "report.md").read_text(encoding="utf-8")
    assert set(get_args(Shortcut)) <= set(re.findall(r"`([a-z_]+)`", page))


# ---- the page ----


@pytest.mark.exhaustive
def test_a_page_of_three_hundred_rows_stays_below_two_megabytes() -> None:
    tables = PUBLISHED["tables"]
    many = {
        **PUBLISHED,
        "tables": tuple(
            {**tables[number % 2], "name": f"table-{number}", "title": f"Table {number}"}
            for number in range(60)
        ),
    }
    page = html(report_of(course_run(published=many), "result.json"))
    assert len(page.encode()) < PAGE_BYTES_MOST


def test_markdown_has_the_rows() -> None:
    text = markdown(report_of(whole(), "result.json"))
    assert text.index("## Course report") < text.index("## Summary")
    assert "4.23975 ± 0.044513" in text


def test_what_a_report_says_is_escaped() -> None:
    evil = published(title="<script>alert(1)</script>", remarks=("<b>no</b>",))
    page = html(report_of(course_run(published=evil), "result.json"))
    assert "<script>" not in page
    assert "<b>no" not in page
    assert "<script>alert(1)</script>" in text_of(page).replace("&lt;", "<").replace("&gt;", ">")
