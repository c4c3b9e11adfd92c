"""What the report says of memory."""

import functools
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hostbench.judge.statistics import describe
from hostbench.model.events import NodeFigure
from hostbench.model.host import Cache, Memory, Virtualisation
from hostbench.model.limit import Limit
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.page.job import report_of
from hostbench.report.content import (
    BarChart,
    Bullets,
    CurveChart,
    MatrixChart,
    Paragraph,
    Part,
    Table,
)
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from services.mem.report import report
from tests.unit.memory_documents import (
    GIB,
    HERTZ,
    KIB,
    LIMIT,
    MIB,
    memory_run,
    planned_memory,
    run_of,
)
from tests.unit.report_sections import LESS, bars, blocks_of, charts, curves, flat, tables

ROOT = Path(__file__).parents[3]
LADDER: tuple[tuple[str, Mapping[str, object]], ...] = tuple(
    ("pointer_chase", {"size_bytes": (1 << exponent) * part // 16, "threads": 1})
    for exponent in range(12, 32)
    for part in (15, 21)
)


@functools.cache
def whole() -> ResultDocument:
    return memory_run()


def document_of(*cases: tuple[str, Mapping[str, object]], trials: int = 3) -> ResultDocument:
    planned = tuple(planned_memory(workload, **params) for workload, params in cases)
    return run_of(planned, random.Random(1), trials=trials)


def curve_of(document: ResultDocument, title: str) -> CurveChart:
    drawing = charts(document)[title].drawing
    assert isinstance(drawing, CurveChart)
    return drawing


def text_of(document: ResultDocument) -> str:
    return " ".join(str(one.text) for one in blocks_of(document) if isinstance(one, Paragraph))


# ---- what stands above all figures ----


def test_the_variant_of_stream_and_the_bytes_are_named() -> None:
    first = report(whole().cases, whole()).blocks[0]
    assert isinstance(first, Paragraph)
    text = str(first.text)
    assert "based on a variant of the STREAM benchmark" in text
    assert "read and write count 8, copy and scale 16, add and triad 24" in text
    assert "10⁹ bytes a second" in text


def test_every_case_is_in_one_table_of_figures() -> None:
    shown = [t for caption, t in tables(whole()).items() if caption.startswith("Figures of")]
    assert sum(len(group.rows) for table in shown for group in table.groups) == len(whole().cases)


# ---- bandwidth ----


def test_bars_are_kernels_by_threads_and_pages() -> None:
    chart = charts(whole())["Bandwidth by kernel"]
    kernels = ["read", "write", "copy", "scale", "add", "triad"]
    assert bars(chart.drawing) == [
        ("1 thread, huge pages", kernels),
        ("1 thread, pages of 4 KiB", kernels),
        ("2 threads, huge pages", kernels),
        ("2 threads, pages of 4 KiB", kernels),
    ]


def test_limits_and_peers_stand_beside_the_bars() -> None:
    drawing = charts(whole())["Bandwidth by kernel"].drawing
    assert isinstance(drawing, BarChart)
    found = {(group.title, bar.label): bar for group in drawing.groups for bar in group.bars}
    assert {bar.limit for bar in found.values()} == {LIMIT}
    with_peers = {name for name, bar in found.items() if bar.peers}
    # At its own page mode only.
    assert with_peers == {
        (f"{threads}, pages of 4 KiB", kernel)
        for threads in ("1 thread", "2 threads")
        for kernel in ("copy", "triad")
    }
    assert found["2 threads, huge pages", "scale"].note == "invalid"


def test_stores_that_were_requested_are_distinguished() -> None:
    chart = charts(whole())["Bandwidth by store"]
    stores = ["plain", "nt", "libc"]
    assert bars(chart.drawing) == [
        ("write, 2 threads, huge pages", stores),
        ("copy, 2 threads, huge pages", stores),
    ]


def test_what_best_was_chosen_from_is_reported() -> None:
    document = document_of(("copy", {"threads": 1}), ("triad", {"threads": 1, "pages": "4k"}))
    table = tables(document)["Stores, pages and working sets"]
    copy, triad = (group.rows[0] for group in table.groups)
    assert copy[1:4] == ("100.0 %", "2 GiB, cache-influenced", "nt")
    assert triad[1:4] == ("0.00 %", "2 GiB", "nt")
    assert [bool(re.fullmatch(r"[\d.]+ GB/s", str(cell))) for cell in copy[4:]] == [True] * 3
    assert [str(cell) == "–" for cell in triad[4:]] == [False, False, True]


def test_swept_working_sets_are_curves_with_bytes_per_cycle() -> None:
    ladder = [
        (kernel, {"threads": 1, "size_bytes": size})
        for kernel in ("read", "copy")
        for size in (16 * KIB, 256 * KIB, 8 * MIB, GIB)
    ]
    document = document_of(*ladder, ("triad", {"threads": 2}), ("add", {"threads": 2}))
    found = charts(document)
    drawn = curves(found["Bandwidth over the working set"].drawing)
    assert list(drawn) == ["read", "copy"]
    assert (
        "All curves: 1 thread, huge pages." in found["Bandwidth over the working set"].description
    )
    assert [x for x, _ in drawn["read"]] == [
        16 * KIB,
        256 * KIB,
        8 * MIB,
        GIB,
    ]
    assert bars(found["Bandwidth by kernel"].drawing) == [
        ("2 threads, huge pages", ["triad", "add"])
    ]
    (group,) = tables(document)["Bytes per cycle"].groups
    assert len(group.rows) == len(ladder)
    assert all(re.fullmatch(r"[\d.]+ byte/cycle", str(row[3])) for row in group.rows)


def test_in_the_l1_cache_the_limit_of_the_ports_stands_beside() -> None:
    """A Golden Cove: two loads and a store of 512 bits a cycle, at the clock of the document."""
    document = document_of(
        *(
            (kernel, {"threads": 1, "size_bytes": size})
            for kernel in ("read", "copy")
            for size in (16 * KIB, 48 * KIB, 256 * KIB)
        )
    )
    drawing = curve_of(document, "Bandwidth over the working set")
    roofs = {curve.beside: curve.points for curve in drawing.curves if curve.beside is not None}
    assert "load and store ports" in drawing.dashed_are
    for number, most in ((0, 128), (1, 128)):
        assert [point.x for point in roofs[number]] == [16 * KIB, 48 * KIB]
        for point in roofs[number]:
            assert point.y == pytest.approx(most * HERTZ, rel=0.02)
    ports = "2 loads a cycle and 1 store a cycle, of 512 bits (OSACA spr.yml)."
    assert text_of(document).count(ports) == 1
    (group,) = tables(document)["Bytes per cycle"].groups
    assert {row[4] for row in group.rows} == {"128 byte/cycle"}
    assert all(str(row[5]).endswith(" %") for row in group.rows)


def test_ports_that_are_unknown_have_a_reason_and_no_line() -> None:
    document = document_of(
        *(("read", {"threads": 1, "size_bytes": size}) for size in (16 * KIB, 48 * KIB, MIB))
    )
    hidden = document.host.cpu.model_copy(update={"vendor": "Unseen"})
    host = document.host.model_copy(update={"cpu": hidden})
    document = document.model_copy(update={"host": host})
    drawing = curve_of(document, "Bandwidth over the working set")
    assert not drawing.dashed_are
    assert all(curve.beside is None for curve in drawing.curves)
    assert "Bytes per cycle have no limit here: unknown micro-architecture" in text_of(document)
    (group,) = tables(document)["Bytes per cycle"].groups
    assert {row[4:] for row in group.rows} == {("–", "–")}


# ---- latency ----


def test_a_curve_for_each_page_mode_with_the_caches() -> None:
    chart = charts(whole())["Latency over the working set"]
    drawing = chart.drawing
    found = curves(drawing)
    assert list(found) == ["huge pages", "pages of 4 KiB"]
    assert [x for x, _ in found["huge pages"]] == [1 << n for n in range(12, 31, 2)]
    assert isinstance(drawing, CurveChart)
    assert drawing.x.logarithmic and drawing.x.unit == "byte"
    assert [(mark.label, mark.x) for mark in drawing.marks] == [
        ("L1 48 KiB", 48 * KIB),
        ("L2 2 MiB", 2 * MIB),
        ("L3 480 MiB", 480 * MIB),
    ]


def test_times_are_reported_in_nanoseconds() -> None:
    table = charts(whole())["Latency over the working set"].numbers
    assert table is not None
    first, *_, last = table.groups[0].rows
    assert first[0] == "4 KiB" and last[0] == "1 GiB"
    for cell in (*first[1:], *last[1:]):
        assert re.fullmatch(r"[\d.]+ ns", str(cell))


@pytest.mark.parametrize("sizes", [(4 * KIB,), (4 * KIB, 64 * MIB)])
def test_one_point_is_no_curve(sizes: tuple[int, ...]) -> None:
    document = document_of(*(("pointer_chase", {"size_bytes": size}) for size in sizes))
    assert ("Latency over the working set" in charts(document)) == (len(sizes) > 1)
    assert html(report_of(document, "result.json"))


def test_a_point_beside_a_curve_is_drawn() -> None:
    document = document_of(
        ("pointer_chase", {"size_bytes": 4 * KIB}),
        ("pointer_chase", {"size_bytes": GIB}),
        ("pointer_chase", {"size_bytes": GIB, "pages": "4k"}),
    )
    found = curves(charts(document)["Latency over the working set"].drawing)
    assert {name: len(points) for name, points in found.items()} == {
        "huge pages": 2,
        "pages of 4 KiB": 1,
    }
    assert html(report_of(document, "result.json"))


def test_many_curves_take_several_charts() -> None:
    cases = [
        ("pointer_chase", {"size_bytes": size, "threads": threads})
        for threads in range(1, 11)
        for size in (4 * KIB, GIB)
    ]
    found = charts(document_of(*cases))
    names = ["Latency over the working set (1 of 2)", "Latency over the working set (2 of 2)"]
    assert [len(curves(found[name].drawing)) for name in names] == [8, 2]


def test_levels_are_held_against_the_kernels_caches() -> None:
    document = document_of(*LADDER)
    (lines,) = (block for block in blocks_of(document) if isinstance(block, Bullets))
    first, second, third, memory = (str(line) for line in lines.items)
    assert first.startswith("L1: 48 KiB, as the kernel says; found between 42 KiB and 60 KiB")
    assert second.startswith("L2: 2 MiB, as the kernel says; found between 1.88 MiB and 2.62 MiB")
    assert third.startswith("L3: 480 MiB, as the kernel says; found between 480 MiB and 672 MiB")
    assert re.search(r"an access takes 4\.[78]\d+ ns", second)
    assert memory.startswith("The largest working sets: an access takes 16")
    marks = curve_of(document, "Latency over the working set").marks
    assert [mark.label for mark in marks] == ["L1 48 KiB", "L2 2 MiB", "L3 480 MiB"]


@pytest.mark.parametrize(
    ("library", "also"),
    [(320 * MIB, " (the C library, from CPUID, for a socket: 320 MiB)"), (480 * MIB, "")],
)
def test_another_size_of_the_c_librarys_is_named(library: int, also: str) -> None:
    document = document_of(*LADDER)
    memory = Memory(library_cache_bytes=library)
    host = document.host.model_copy(update={"memory": memory})
    document = document.model_copy(update={"host": host})
    (lines,) = (block for block in blocks_of(document) if isinstance(block, Bullets))
    assert str(lines.items[1]).startswith("L2: 2 MiB, as the kernel says; found")
    assert str(lines.items[2]).startswith(f"L3: 480 MiB, as the kernel says{also}; found")


@pytest.mark.parametrize(
    ("hypervisor", "why"),
    [(True, "this virtual machine has a part of it"), (False, "other programs use it")],
)
def test_a_cache_that_is_smaller_than_the_kernel_says(hypervisor: bool, why: str) -> None:
    document = document_of(*LADDER)
    host = document.host
    caches = tuple(
        cache.model_copy(update={"size_bytes": GIB}) if cache.level == 3 else cache
        for cache in host.caches
    )
    virtual = Virtualisation(hypervisor=hypervisor)
    host = host.model_copy(update={"caches": caches, "virtualisation": virtual})
    document = document.model_copy(update={"host": host})
    (lines,) = (block for block in blocks_of(document) if isinstance(block, Bullets))
    text = str(lines.items[2])
    assert text.startswith("L3: the kernel says 1 GiB, the curve bends between 480 MiB and 672 MiB")
    assert why in text
    marks = curve_of(document, "Latency over the working set").marks
    assert "bends at 568 MiB" in [mark.label for mark in marks]


def test_levels_of_small_pages_are_marked_as_such() -> None:
    document = document_of(*((name, {**params, "pages": "4k"}) for name, params in LADDER))
    (lines,) = (block for block in blocks_of(document) if isinstance(block, Bullets))
    assert "pages of 4 KiB" in str(lines.items[-1])


def test_too_few_sizes_show_no_level() -> None:
    text = markdown(report_of(whole(), "result.json"))
    assert "levels that this curve shows are unsure: the sizes are more than a factor" in text


def test_accesses_in_flight_are_ratios_to_one_chain() -> None:
    sizes: tuple[object, ...] = (4 * MIB, "auto")
    document = document_of(
        *(
            ("pointer_chase", {"size_bytes": size, "threads": 1, "chains": chains})
            for size in sizes
            for chains in (1, 2, 8, 12, 32)
        )
    )
    chart = charts(document)["Accesses in flight over the chains"]
    found = curves(chart.drawing)
    assert list(found) == ["4 MiB, huge pages", "2 GiB, huge pages"]
    for points in found.values():
        assert [x for x, _ in points] == [1, 2, 8, 12, 32]
        assert [y for _, y in points] == pytest.approx([1, 2, 8, 12, 12], rel=0.05)
    assert chart.numbers and len(chart.numbers.groups[0].rows) == 5
    (headline,) = report(document.cases, document).headline
    assert headline.params["chains"] == 1


def test_more_in_flight_than_chains_is_a_disturbed_figure() -> None:
    cases = [("pointer_chase", {"size_bytes": GIB, "chains": chains}) for chains in (1, 4, 16)]
    document = document_of(*cases)
    assert "the figure of one chain was disturbed" not in text_of(document)
    one, *others = document.cases
    metric = one.metrics[one.primary]
    slow = describe([metric.statistics.median * factor for factor in (5.9, 6, 6.1)])
    metrics = {**one.metrics, one.primary: metric.model_copy(update={"statistics": slow})}
    cases_then = (one.model_copy(update={"metrics": metrics}), *others)
    assert "the figure of one chain was disturbed" in text_of(
        document.model_copy(update={"cases": cases_then})
    )


def test_without_one_chain_nothing_is_known_to_be_in_flight() -> None:
    cases = [("pointer_chase", {"size_bytes": GIB, "chains": chains}) for chains in (2, 4, 8)]
    assert "Accesses in flight over the chains" not in charts(document_of(*cases))


def test_an_access_a_page_has_a_chart_of_its_own() -> None:
    document = document_of(
        *LADDER, *((name, {**params, "stride_bytes": 4096}) for name, params in LADDER)
    )
    found = charts(document)
    assert len(curves(found["Latency over the working set"].drawing)) == 1
    assert len(curves(found["Latency over the working set, by stride"].drawing)) == 1


PAGED = tuple(
    (name, {**params, "stride_bytes": 4096, "pages": pages})
    for pages in ("4k", "huge")
    for name, params in LADDER
)


def test_the_reach_of_the_tlb_is_where_the_pages_part() -> None:
    """In the document, pages of 4 KiB take longer beyond 48 KiB, in the memory 2.4 times."""
    text = text_of(document_of(*PAGED))
    assert "about as long as huge ones up to 42 KiB, and longer from 60 KiB on" in text
    assert "an access takes 2.4 times as long" in text


def test_without_huge_pages_the_curves_say_nothing_of_the_tlb() -> None:
    document = document_of(*PAGED)
    few = [_with_huge_ratio(case, 0.5) for case in document.cases]
    text = text_of(document.model_copy(update={"cases": tuple(few)}))
    assert "fewer huge pages than requested" in text and "about as long as" not in text


def _with_huge_ratio(case: CaseResult, ratio: float) -> CaseResult:
    metric = case.metrics["huge_page_ratio"]
    changed = metric.model_copy(update={"statistics": describe([ratio] * 3)})
    return case.model_copy(update={"metrics": {**case.metrics, "huge_page_ratio": changed}})


def test_jumps_are_curves_with_the_cache_of_instructions() -> None:
    document = document_of(
        *(
            ("code_chase", {"size_bytes": size, "pattern": pattern, "threads": 1})
            for pattern in ("random", "sequential")
            for size in (16 * KIB, MIB, GIB)
        )
    )
    l1 = Cache(level=1, type="Instruction", size_bytes=32 * KIB, shared_by_cpus=1, instances=2)
    others = tuple(one for one in document.host.caches if one.type != "Instruction")
    host = document.host.model_copy(update={"caches": (*others, l1)})
    document = document.model_copy(update={"host": host})
    drawing = curve_of(document, "Time of a jump over the size of the code")
    found = curves(drawing)
    assert list(found) == ["random", "sequential"]
    assert [x for x, _ in found["random"]] == [16 * KIB, MIB, GIB]
    marks = [mark.label for mark in drawing.marks]
    assert marks == ["L1 32 KiB", "L2 2 MiB", "L3 480 MiB"]
    (group,) = tables(document)["Cycles of a jump"].groups
    assert len(group.rows) == 6
    assert all(re.fullmatch(r"[\d.]+ cycle", str(row[3])) for row in group.rows)
    (headline,) = report(document.cases, document).headline
    assert (headline.params["pattern"], headline.params["size_bytes"]) == ("random", GIB)


def test_the_page_of_maps_explains_each_chart() -> None:
    page = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
    sizes = [KIB << exponent for exponent in range(4, 20)]
    one: Mapping[str, object] = {"threads": 1}
    drawn = charts(
        document_of(
            *(("read", {"size_bytes": size, **one}) for size in sizes),
            *(("pointer_chase", {"size_bytes": size, **one}) for size in sizes),
            *(
                ("pointer_chase", {"size_bytes": size, "stride_bytes": 4096, **one})
                for size in sizes
            ),
            *(("pointer_chase", {"size_bytes": MIB, "chains": n, **one}) for n in (1, 2, 4, 8)),
            *(("code_chase", {"size_bytes": size, **one}) for size in sizes),
        )
    )
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert set(drawn) == {
        "Bandwidth over the working set",
        "Latency over the working set",
        "Latency over the working set, by stride",
        "Accesses in flight over the chains",
        "Time of a jump over the size of the code",
    }
    assert set(drawn) <= headings


def test_latency_under_load_is_joined_by_intensity() -> None:
    chart = charts(whole())["Latency under load"]
    found = curves(chart.drawing)
    assert list(found) == ["read", "copy"]
    for points in found.values():
        assert len(points) == 6
        assert points[0][0] == 0 and points[0][1] < points[-1][1]
    assert chart.numbers is not None
    assert len(chart.numbers.groups[0].rows) == 12


# ---- blocks ----


def test_raw_empty_and_net_stand_side_by_side() -> None:
    table = tables(whole())["Raw, empty loop and net"]
    flagged = [line for line in table.groups[0].rows if "above a fifth" in str(line[5])]
    assert [str(line[0]).split(" 1 thread")[0] for line in flagged] == [
        "read block 1 B",
        "write block 1 B",
        "update block 1 B",
    ]
    drawing = charts(whole())["Time of an access by block size"].drawing
    assert isinstance(drawing, BarChart) and not drawing.has_limits
    assert bars(drawing)[0] == ("read, 1 thread", ["block 1 B", "block 8 B", "block 64 B"])


def test_blocks_are_curves_and_have_their_distribution() -> None:
    found = curves(charts(whole())["Bandwidth over the size of a block"].drawing)
    assert list(found) == ["sequential", "random"]
    assert [x for x, _ in found["random"]][:3] == [1, 64, 4 * KIB]
    table = tables(whole())["Time of a block"]
    (group,) = table.groups
    assert [line[1] for line in group.rows] == ["64 KiB", "1 MiB", "64 MiB", "1 GiB"] * 2
    assert all(str(line[2]).endswith(("µs", "ms")) for line in group.rows)


def test_a_random_pattern_is_no_bandwidth_of_stream() -> None:
    document = document_of(
        ("copy", {"threads": 1}),
        ("copy", {"threads": 2}),
        ("copy", {"threads": 1, "pattern": "random", "block_bytes": 4096}),
    )
    assert bars(charts(document)["Bandwidth by number of threads"].drawing) == [
        ("huge pages, copy", ["1 thread", "2 threads"])
    ]
    assert "Figures of blocks" in tables(document)


# ---- the summary ----


def test_the_headline_has_what_memory_does_and_not_what_caches_do() -> None:
    titles = [case.title for case in report(whole().cases, whole()).headline]
    assert "mem.pointer_chase huge size 1 GiB 1 thread avx512" in titles
    assert "mem.pointer_chase pages=4k size 1 GiB 1 thread avx512" in titles
    assert "mem.loaded_latency copy intensity=1 2 threads avx512" in titles
    assert "mem.random_access read block 8 B 1 thread avx512" in titles
    # Of scale the best figure is above its limit.
    assert "mem.scale pages=4k 2 threads avx512 nt" in titles
    assert len(titles) <= 16


def test_a_case_that_a_cache_helped_is_no_headline_where_another_is() -> None:
    document = document_of(("copy", {"threads": 2}), ("copy", {"threads": 1}))
    fast, slow = document.cases
    quiet = slow.model_copy(
        update={
            "trials": tuple(
                trial.model_copy(
                    update={"events": tuple(e for e in trial.events if e.event != "warning")}
                )
                for trial in slow.trials
            )
        }
    )
    assert report((fast, slow), document).headline == (fast,)
    assert report((fast, quiet), document).headline == (quiet,)


# ---- whatever a document holds ----


@pytest.mark.parametrize("change", LESS)
def test_documents_that_say_less(change: Callable[[CaseResult], CaseResult]) -> None:
    cases = tuple(change(case) for case in whole().cases)
    document = whole().model_copy(update={"cases": cases})
    found = report_of(document, "result.json")
    assert "Memory" in html(found)
    assert "## Memory" in markdown(found)


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.sampled(2)
def test_few_trials_without_limits_and_peers(trials: int) -> None:
    found = report_of(memory_run(trials, limits=False, peers=False), "result.json")
    assert "no limit" in html(found) and "## Memory" in markdown(found)


def test_why_a_limit_is_missing_is_reported_once() -> None:
    reason = "the tables of the firmware are a hypervisor's"
    missing = Limit(value=None, unit="byte/s", reason=reason)
    document = document_of(("read", {}), ("triad", {}), ("copy", {}))
    cases = []
    for case in document.cases[:2]:
        metric = case.metrics[case.primary].model_copy(update={"limit": missing})
        cases.append(case.model_copy(update={"metrics": {**case.metrics, case.primary: metric}}))
    found = document.model_copy(update={"cases": (*cases, document.cases[2])})
    text = markdown(report_of(found, "result.json")).partition("## Memory")[2]
    assert text.count(f"No limit for 2 of 3 figures: {reason}.") == 1
    page = html(report_of(found, "result.json"))
    assert "measured, from zero" in page and "right: share of the limit" not in page
    assert "right: share of the limit" in html(report_of(whole(), "result.json"))


def test_a_single_case_of_each_kind_needs_no_chart() -> None:
    document = document_of(
        ("triad", {}),
        ("pointer_chase", {"size_bytes": GIB}),
        ("loaded_latency", {"load": "read", "intensity": 1}),
        ("random_access", {"operation": "read", "block_bytes": 8}),
        ("memset_write", {"block_bytes": 64 * KIB}),
    )
    assert charts(document) == {}
    parts = [block.title for block in blocks_of(document) if isinstance(block, Part)]
    assert parts == [
        "Bandwidth",
        "Latency",
        "Latency under load",
        "Small random accesses",
        "Blocks",
    ]


def with_nodes(*figures: tuple[int, int, str, float]) -> ResultDocument:
    """A case of numa with these figures in each trial: CPU node, memory node, metric, value."""
    document = document_of(("pointer_chase", {"size_bytes": GIB}))
    (case,) = document.cases
    found = tuple(
        NodeFigure(cpu_node=cpus, memory_node=memory, metric=metric, value=value)
        for cpus, memory, metric, value in figures
    )
    trials = []
    for trial in case.trials:
        assert trial.start is not None and trial.end is not None
        end = trial.end.model_copy(update={"node_figures": found})
        trials.append(trial.model_copy(update={"events": (trial.start, end)}))
    update = {"workload": "mem.numa", "trials": tuple(trials)}
    metrics = {"mem.numa": document.workloads["mem.pointer_chase"]}
    cases = (case.model_copy(update=update),)
    return document.model_copy(update={"cases": cases, "workloads": metrics})


def matrix_of(document: ResultDocument, title: str) -> MatrixChart:
    drawing = charts(document)[title].drawing
    assert isinstance(drawing, MatrixChart)
    return drawing


def test_nodes_are_matrices_beside_the_best_pair() -> None:
    """Two nodes with CPUs, and one of memory alone, which has a column and no row."""
    times_s = {(0, 0): 100e-9, (0, 1): 160e-9, (0, 4): 250e-9}
    times_s |= {(1, 0): 160e-9, (1, 1): 100e-9, (1, 4): 400e-9}
    document = with_nodes(
        *((*pair, "access_time_s", value) for pair, value in times_s.items()),
        *((*pair, "bytes_per_second", 2 / value) for pair, value in times_s.items()),
        *((*pair, "distance", 21) for pair in times_s),
    )
    for title in ("Time of an access, idle", "Bandwidth of reading"):
        drawing = matrix_of(document, title)
        assert drawing.labels == ("node 0", "node 1", "node 4")
        assert {row for row, _ in drawing.cells} == {0, 1}
        assert drawing.cells[0, 0] == 1.0 and drawing.cells[1, 2] == pytest.approx(0.25)
    assert matrix_of(document, "Time of an access, idle").scale.words[0] == "up to 132.0 ns"
    assert matrix_of(document, "Bandwidth of reading").scale.words[-1] == "less"
    assert "Time of an access, loaded" not in charts(document)
    times = charts(document)["Time of an access, idle"].numbers
    assert times is not None
    assert [column.title for column in times.columns][1:] == [
        *(f"memory of node {node}" for node in (0, 1, 4))
    ]
    assert times.groups[0].rows[1] == ("node 1", "160.0 ns", "100.0 ns", "400.0 ns")
    assert (
        "21"
        in tables(document)["Distances that the kernel states (from ACPI's SLIT, if there is one)"]
        .groups[0]
        .rows[0]
    )
    for text in (html(report_of(document, "result.json")), markdown(report_of(document, "x"))):
        assert "CXL expander" in text and "400.0 ns" in text


def test_a_workload_that_the_section_does_not_know() -> None:
    document = document_of(("triad", {}))
    (case,) = document.cases
    odd = case.model_copy(update={"workload": "mem.gather"})
    blocks = flat(report((odd,), document).blocks)
    assert "Figures of mem.gather" in {b.caption for b in blocks if isinstance(b, Table)}
