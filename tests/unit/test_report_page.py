"""What the report says of a document."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.units import human, percent
from hostbench.model.events import SampleEvent
from hostbench.model.host import (
    CgroupLimits,
    Channels,
    HostInventory,
    HugePagePool,
    Memory,
    NumaNode,
)
from hostbench.model.result import (
    CaseResult,
    JobState,
    Record,
    ResultDocument,
    Verdict,
)
from hostbench.page.job import report_of
from hostbench.report.content import (
    Block,
    Chart,
    Fold,
    Part,
    Report,
    Section,
    Table,
    TimeChart,
)
from hostbench.report.figures import NOTHING
from hostbench.report.html import html
from hostbench.report.inventory import cpu_list, host_section
from hostbench.report.markdown import escaped, markdown
from hostbench.report.raw import reproduction
from hostbench.report.timeline import CHARTS_MOST
from hostbench.results.document import assemble, replay
from tests.unit.records import bare_trial, done, host, planned, session
from tests.unit.report_documents import HOST, full_run, sampled_run


@functools.cache
def whole() -> ResultDocument:
    return full_run(trials=5)


PAGE_BYTES_MOST = 1_000_000
# GitHub takes no longer text.
TICKET_CHARACTERS_MOST = 65_536

# Of Markdown: from some backticks, none of them escaped, to the next as many.
CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)


def blocks(inside: Report | Section | Part | Fold) -> Iterator[Block]:
    if isinstance(inside, Report):
        for section in inside.sections:
            yield from blocks(section)
        return
    for block in inside.blocks:
        yield block
        if isinstance(block, Part | Fold):
            yield from blocks(block)


def section(report: Report, anchor: str) -> Section:
    return next(one for one in report.sections if one.anchor == anchor)


def tables(inside: Report | Section) -> dict[str, Table]:
    return {block.caption: block for block in blocks(inside) if isinstance(block, Table)}


def case_of(document: ResultDocument, title: str) -> CaseResult:
    return next(case for case in document.cases if case.title == title)


def text_of(page: str) -> str:
    """What a reader sees: without tags, in one line."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(whole(), "result.json")


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return html(report)


@pytest.mark.exhaustive
def test_a_full_run_stays_below_a_megabyte() -> None:
    page = html(report_of(full_run(trials=15), "result.json"))
    assert len(page.encode()) < PAGE_BYTES_MOST


@pytest.mark.exhaustive
def test_long_series_stay_below_a_megabyte() -> None:
    page = html(report_of(sampled_run(600, 6, 10), "result.json"))
    assert len(page.encode()) < PAGE_BYTES_MOST


def test_nothing_is_loaded(page: str) -> None:
    assert not re.search(r"<script|<img|<link(?! rel=\"icon\" href=\"data:,\")|@import|url\(", page)
    assert not re.search(r"(?:src|href)=\"(?!#|data:,)", page)


def test_the_same_page_again_by_the_document_alone(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of a checkout are not needed: it looks nowhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "iterdir", lambda _self: pytest.fail("it looked into a directory"))
    assert html(report_of(whole(), "result.json")) == page


def test_ids_are_unique(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {name[1:] for name in re.findall(r'href="(#[^"]+)"', page)} <= set(ids)


def test_every_verdict_is_reported_on_top(report: Report, page: str) -> None:
    assert dict(report.tally)[Verdict.SKIPPED] == 1
    text = text_of(page)
    assert text.index("1 case of 182 is failed") < text.index("Summary")
    assert "6 cases of 182 are invalid: the figure is above its theoretical limit" in text
    assert re.search(r"\d+ cases of 182 are disturbed", text)


def test_every_case_has_its_figures(report: Report) -> None:
    shown = tables(section(report, "cpu"))
    rows = [row for caption, table in shown.items() if caption.startswith("Figures of")
            for group in table.groups for row in group.rows]  # fmt: skip
    assert len(rows) == len(whole().cases)
    (at,) = {[column.title for column in table.columns].index("best")
             for caption, table in shown.items() if caption.startswith("Figures of")}  # fmt: skip
    figures = [case for case in whole().cases if case.primary in case.metrics]
    known = {human(case.best, case.metrics[case.primary].unit) for case in figures}
    # A plain text: only the share of a limit is coloured.
    assert {row[at] for row in rows} == {NOTHING, *known}
    charts = [block for block in blocks(section(report, "cpu")) if isinstance(block, Chart)]
    assert len(charts) >= 9


def test_the_least_difference_stands_with_each_case(report: Report) -> None:
    spread = section(report, "spread")
    charts = [block for block in blocks(spread) if isinstance(block, Chart) and block.numbers]
    table = charts[0].numbers
    assert table is not None
    column = [one.title for one in table.columns].index("least difference")
    case = whole().cases[0]
    assert case.figure is not None and case.figure.least_difference_ratio is not None
    shown = next(row for row in table.groups[0].rows if row[0] == case.label)[column]
    assert shown == percent(case.figure.least_difference_ratio) != "–"


def test_the_headline_prefers_figures_that_may_be_used(report: Report) -> None:
    (lines,) = (block for block in report.answer if isinstance(block, Table))
    assert [row[0] for row in lines.groups[0].rows] == ["cpu.fma fp32 avx512 2 threads"]
    (summary,) = tables(section(report, "summary")).values()
    names = [row[0] for row in summary.groups[0].rows]
    assert "cpu.fma fp32 avx512 2 threads" in names
    assert not any("int16" in str(name) for name in names)  # these are above their limit
    assert len(names) <= 16


def test_peers(report: Report, page: str) -> None:
    shown = tables(section(report, "cpu"))
    (group,) = shown["Ours and the peers' figures"].groups
    assert len(group.rows) == 16
    assert group.rows[0][1] == "likwid-bench peakflops_scalar_fma"
    assert re.fullmatch(r"0\.99\d+|1\.0\d+", str(group.rows[0][4]))
    text = text_of(page)
    assert "sysbench, skipped beside 16 cases: sysbench is not installed; install it with" in text
    assert "likwid-bench -t peakflops_avx512_fma -W N:64kB:2 -s 1" in text


def test_limits_have_their_sources(page: str) -> None:
    text = text_of(page)
    assert "no sound source for the highest clock" in text
    assert "OSACA spr.yml" in text
    # A source that several cases share is shown once.
    assert page.count(">distinct cores used.<") == 1


def test_the_command_that_repeats_a_case() -> None:
    case = case_of(whole(), "cpu.fma fp64 avx2 2 threads")
    assert reproduction(case, "cpu-bench") == (
        "build/release/cpu-bench fma --dtype=fp64 --isa=avx2 --threads=2"
    )


def test_hostile_names_are_shown_and_do_nothing() -> None:
    hostile = '<script>alert("x")</script> $x$ \x1b[2J | ` @root #1'
    document = whole().model_copy(
        update={
            "host": whole().host.model_copy(update={"hostname": hostile}),
            "cases": tuple(
                case.model_copy(update={"label": hostile}) for case in whole().cases[:30]
            ),
        }
    )
    page = html(report_of(document, "result.json"))
    assert "<script" not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page
    text = markdown(report_of(document, "result.json"))
    assert "\x1b" not in text and "<script>" not in CODE_SPAN.sub("", text)
    assert all(line.count(" | ") >= 1 for line in text.splitlines() if line.startswith("|"))


# ---- over time ----


def test_samples_are_drawn_with_what_disturbed_them() -> None:
    report = report_of(sampled_run(), "result.json")
    charts = [block for block in section(report, "time").blocks if isinstance(block, Chart)]
    assert len(charts) == 2
    drawing = charts[0].drawing
    assert isinstance(drawing, TimeChart)
    assert [panel.title for panel in drawing.panels] == [
        "operations per second",
        "clean slice ratio",
        "clock",
    ]
    assert all(panel.lines[0].x == drawing.panels[0].lines[0].x for panel in drawing.panels)
    assert drawing.panels[0].lines[0].x[:2] == (0.5, 1.5) and drawing.seconds == 600
    assert drawing.panels[0].levels[0].y > max(y for y in drawing.panels[0].lines[0].y if y)
    assert charts[0].numbers is not None


@pytest.mark.parametrize("after_s", [0, 2])
def test_a_trial_whose_samples_have_no_figure_is_not_drawn(after_s: int) -> None:
    """Its steps take longer than the interval of the samples."""
    document = sampled_run(samples=4, cases=2)
    slow, other = document.cases
    events = tuple(
        event.model_copy(update={"metrics": event.metrics | {slow.primary: None}})
        if isinstance(event, SampleEvent) and event.t_s > after_s
        else event
        for event in slow.trials[0].events
    )
    trial = slow.trials[0].model_copy(update={"events": events})
    cases = (slow.model_copy(update={"trials": (trial,)}), other)
    report = report_of(document.model_copy(update={"cases": cases}), "result.json")
    (chart,) = [block for block in section(report, "time").blocks if isinstance(block, Chart)]
    assert chart.title == other.title
    assert "</html>" in html(report)


def test_trials_follow_one_another() -> None:
    report = report_of(sampled_run(samples=5, cases=1, trials=3), "result.json")
    (chart,) = [block for block in section(report, "time").blocks if isinstance(block, Chart)]
    assert isinstance(chart.drawing, TimeChart)
    assert [line.x[0] for line in chart.drawing.panels[0].lines] == [0.5, 6.5, 12.5]


def test_more_series_than_a_page_holds_are_in_a_table() -> None:
    document = sampled_run(samples=4, cases=6, trials=2)
    cases = tuple(
        case.model_copy(update={"case": f"{copy}{case.case}"})
        for copy in range(4)
        for case in document.cases
    )
    report = report_of(document.model_copy(update={"cases": cases}), "result.json")
    time = section(report, "time")
    assert sum(isinstance(block, Chart) for block in time.blocks) == CHARTS_MOST
    assert "Series that are not drawn" in tables(time)


def test_short_trials_have_no_such_section(report: Report) -> None:
    assert "time" not in [one.anchor for one in report.sections]


# ---- unfinished and odd documents ----


def unfinished(*records: Record, state: JobState = JobState.INTERRUPTED) -> ResultDocument:
    cases = (planned("aaaa"), planned("bbbb"))
    return assemble(replay([session(cases), *records]), state)


def test_whatever_there_is_is_reported() -> None:
    for document in (
        unfinished(),
        unfinished(bare_trial(value=100.0)),
        unfinished(bare_trial(value=100.0), done()),
        unfinished(state=JobState.RUNNING),
        whole().model_copy(update={"cases": ()}),
    ):
        report = report_of(document, "journal.ndjson")
        assert "hostbench report" in html(report)
        assert markdown(report).startswith("# ")


def test_an_interrupted_job_says_so_on_top() -> None:
    text = text_of(html(report_of(unfinished(bare_trial(value=100.0), done()), "journal.ndjson")))
    assert "The job was interrupted. 1 of 2 cases are complete. Continue with hostbench run" in text
    assert "1 unfinished" in text


def test_a_running_job_says_so_on_top() -> None:
    text = text_of(html(report_of(unfinished(state=JobState.RUNNING), "journal.ndjson")))
    assert "The job is still running: 0 of 2 cases are complete." in text


def test_a_subsystem_without_a_section_of_its_own() -> None:
    cases = tuple(
        case.model_copy(update={"workload": case.workload.replace("cpu.", "npu.")})
        for case in whole().cases
    )
    workloads = {name.replace("cpu.", "npu."): m for name, m in whole().workloads.items()}
    document = whole().model_copy(update={"cases": cases, "workloads": workloads})
    npu = section(report_of(document, "result.json"), "npu")
    assert len([block for block in blocks(npu) if isinstance(block, Chart)]) >= 9
    assert "Figures of npu.fma" in tables(npu)
    assert "Ours and the peers' figures" in tables(npu)


# ---- the host ----


def test_all_of_the_inventory_is_shown() -> None:
    page = text_of(
        html(Report("t", "s", report_of(whole(), "x").facts, (), (), (host_section(HOST),)))
    )
    for value in (
        HOST.hostname, HOST.machine, HOST.kernel, HOST.distribution, HOST.cpu.model_name,
        HOST.cpu.vendor, HOST.cpu.microcode, *HOST.cpu.flags, *HOST.mitigations,
        *HOST.mitigations.values(),
    ):  # fmt: skip
        assert " ".join(str(value).split()) in page.replace("&#39;", "'")


def test_memory_of_the_inventory_is_shown() -> None:
    memory = Memory(
        nodes=(NumaNode(node=0, memory_bytes=3 << 30, cpus=(0, 1)),),
        channels=(Channels(count=8, transfers_per_second=4.8e9, width_bits=64),),
        channels_source="SMBIOS type 17: 8 × 4800 MT/s × 64 bits",
        user_bytes_per_second=300e9,
        library_cache_bytes=320 << 20,
        transparent_huge_pages="madvise",
        huge_page_pools=(HugePagePool(page_bytes=2 << 20, pages=512),),
    )
    section = host_section(host(memory=memory))
    page = text_of(html(Report("t", "s", report_of(whole(), "x").facts, (), (), (section,))))
    for value in (
        "8 × 4800 MT/s × 64 bits", "300.0 GB/s", "320 MiB", "madvise", "Pool of 2 MiB pages",
        "512 pages", "NUMA node 0", "3 GiB, CPUs 0-1",
    ):  # fmt: skip
        assert value in page, value
    unknown = host_section(host(memory=Memory(channels_reason="this is a virtual machine")))
    page = text_of(html(Report("t", "s", report_of(whole(), "x").facts, (), (), (unknown,))))
    assert "this is a virtual machine" in page


def test_a_host_that_tells_nothing() -> None:
    bare = host(cgroup=CgroupLimits(quota_cpus=1.5, memory_bytes=1 << 30), caches=())
    assert isinstance(bare, HostInventory)
    page = html(Report("t", "s", report_of(whole(), "x").facts, (), (), (host_section(bare),)))
    assert "not known" in page and "1.5 CPUs" in page and "1 GiB" in page


@pytest.mark.parametrize(
    ("cpus", "text"),
    [((), "none"), ((3,), "3"), ((0, 1, 2, 3, 8), "0-3,8"), ((9, 1, 0), "0-1,9")],
)
def test_cpu_lists(cpus: tuple[int, ...], text: str) -> None:
    assert cpu_list(cpus) == text


# ---- Markdown ----


def test_markdown_fits_into_a_ticket(report: Report) -> None:
    text = markdown(report)
    assert len(text) < TICKET_CHARACTERS_MOST
    for heading in ("# full on vm", "## Summary", "## CPU", "### cpu.fma", "## Host"):
        assert f"\n{heading}\n" in f"\n{text}"
    assert "Spread of the trials" not in text
    assert "| fp64 avx2 2 threads | " in text


def test_markdown_tables_are_rectangular(report: Report) -> None:
    previous = 0
    for line in markdown(report).splitlines():
        columns = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert previous in (0, columns) or columns == 0, line
        previous = columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("int_mul", "int_mul"),
        ("_x_ *y* `z`", r"\_x\_ \*y\* \`z\`"),
        ("a|b", r"a\|b"),
        ("<img>", r"\<img\>"),
        ("@team", "@\N{WORD JOINER}team"),
        ("#12", r"\#12"),
        ("two\nlines", "two lines"),
    ],
)
def test_markdown_escapes(text: str, shown: str) -> None:
    assert escaped(text) == shown
