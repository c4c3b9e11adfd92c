"""What the report says of disks."""

import functools
import json
import random
import re
from collections.abc import Callable, Mapping

import pytest

from hostbench.model.result import CaseResult, ResultDocument, Verdict
from hostbench.page.job import report_of
from hostbench.report.content import (
    BarChart,
    Bullets,
    Chart,
    CurveChart,
    Part,
    Strong,
    Table,
    TimeChart,
    inlines,
)
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from hostbench.report.subsystems import subsystem_reports
from hostbench.report.timeline import time_section
from services.disk.report import report
from services.disk.report.behaviour import Kind, behaviour
from tests.unit.disk_documents import (
    FLASH,
    GIB,
    KIB,
    MIB,
    SPINNING,
    Device,
    disk_run,
    planned_disk,
    run_of,
)
from tests.unit.report_sections import (
    LESS,
    bars,
    blocks_of,
    charts,
    curves,
    flat,
    parts,
    rows,
    tables,
)


@functools.cache
def whole() -> ResultDocument:
    return disk_run()


BUFFERED = "block 1 MiB, queue_depth=1, 1 thread, buffered"
ONE_BLOCK = {"block_bytes": 4 * KIB}
PAIR = (("rand_read", ONE_BLOCK), ("seq_read", ONE_BLOCK))


def document_of(
    *cases: tuple[str, Mapping[str, object]], device: Device = FLASH, trials: int = 3
) -> ResultDocument:
    planned = tuple(planned_disk(workload, **params) for workload, params in cases)
    return run_of(planned, random.Random(1), trials=trials, device=device)


# ---- what stands above all figures ----


def test_every_case_is_in_one_table_of_figures() -> None:
    shown = [t for caption, t in tables(whole()).items() if caption.startswith("Figures of")]
    assert sum(len(group.rows) for table in shown for group in table.groups) == len(whole().cases)


def test_what_is_not_the_disks_figure_is_reported_first() -> None:
    (found,) = [
        block for block in report(whole().cases, whole()).blocks if isinstance(block, Bullets)
    ]
    contaminated, cached, other = (str(item) for item in found.items)
    assert contaminated.startswith("1 case (disk.rand_read zipf buffered): the page cache answ")
    assert cached.startswith("1 case (disk.seq_write buffered): the page cache took what")
    assert re.fullmatch(r"39 cases \(.* and 36 more\): io_uring is not allowed here\.", other)


def test_the_place_is_named_as_far_as_the_kernel_reports_it() -> None:
    text = markdown(report_of(whole(), "result.json"))
    assert "/var/tmp/hostbench-1000" in text and "ext4 on vda (virtio)" in text
    assert "virtio, reported to rotate" in text
    without = whole().model_copy(update={"host": whole().host.model_copy(update={"scratch": None})})
    assert "The file was in" not in markdown(report_of(without, "result.json"))


def test_a_run_without_warnings_has_no_cautions() -> None:
    document = document_of(("seq_read", {"engine": "psync"}))
    assert not [block for block in blocks_of(document) if isinstance(block, Bullets)]


# ---- rates ----


def test_throughput_is_a_curve_over_blocks_and_bars_of_the_rest() -> None:
    found = charts(whole())
    curve = found["Throughput over the block size"].drawing
    assert list(curves(curve)) == [
        "seq_read",
        "seq_write",
    ]
    for points in curves(curve).values():
        assert [x for x, _ in points] == [4 * KIB, 64 * KIB, 512 * KIB, MIB, 10 * MIB]
        assert points[0][1] < points[-1][1]
    beside = bars(found["Throughput by workload"].drawing)
    assert ("block 1 MiB, queue_depth=8, 1 thread, direct", ["seq_read", "seq_write"]) in beside
    # That of the page cache is a single one.
    assert len(beside) == 5 and "seq_write" not in dict(beside)[BUFFERED]


def test_operations_are_curves_over_blocks_depth_and_threads() -> None:
    found = charts(whole())
    depth = found["Operations a second over the queue depth"].drawing
    assert isinstance(depth, CurveChart) and depth.x.logarithmic
    for name, points in curves(depth).items():
        assert name in ("rand_read", "rand_write") or name.startswith(("rand_read,", "rand_write,"))
        assert [x for x, _ in points] == [1, 2, 4, 16, 64, 256]
    threads = curves(found["Operations a second over the number of threads"].drawing)
    assert [len(points) for points in threads.values()] == [3, 3]
    blocks = curves(found["Operations a second over the block size"].drawing)
    assert [len(points) for points in blocks.values()] == [4, 4]


def test_two_cases_are_bars_and_one_is_neither() -> None:
    two = document_of(("rand_read", {"queue_depth": 1}), ("rand_read", {"queue_depth": 32}))
    assert bars(charts(two)["Operations a second by queue depth"].drawing) == [
        ("rand_read, block 4 KiB, 1 thread, direct", ["queue_depth=1", "queue_depth=32"])
    ]
    one = document_of(("rand_read", {}))
    assert list(charts(one)) == ["Percentiles of latency"]


def test_figures_of_the_page_cache_have_charts_of_their_own() -> None:
    document = document_of(
        *(("seq_write", {"cache_mode": mode, "queue_depth": depth})
          for mode in ("buffered", "direct") for depth in (1, 8))
    )  # fmt: skip
    found = {title: bars(chart.drawing) for title, chart in charts(document).items()
             if isinstance(chart.drawing, BarChart)}  # fmt: skip
    assert found == {
        "Throughput by queue depth": [
            ("seq_write, block 1 MiB, 1 thread, direct", ["queue_depth=1", "queue_depth=8"])
        ],
        "Throughput of the page cache by queue depth": [
            ("seq_write, block 1 MiB, 1 thread, buffered", ["queue_depth=1", "queue_depth=8"])
        ],
    }


def test_limits_and_peers_stand_beside_the_bars() -> None:
    drawing = charts(whole())["Throughput by workload"].drawing
    assert isinstance(drawing, BarChart)
    by_note = {bar.note: bar for group in drawing.groups for bar in group.bars}
    assert all(bar.peers for bar in by_note.values())
    limits = {bar.limit for group in drawing.groups for bar in group.bars}
    assert limits == {600e6}


def test_rates_tell_bytes_and_operations_and_what_they_cost() -> None:
    found = rows(tables(whole())["Rates of random access"])
    mixed = found["disk.rand_rw", "queue_depth=16 read_share=0.7"]
    assert re.fullmatch(r"[\d.]+ kop/s", mixed["operations"])
    assert re.fullmatch(r"[\d.]+ MB/s", mixed["bytes"])
    reads, writes = (float(mixed[name].split()[0]) for name in ("reads", "writes"))
    assert reads / (reads + writes) == pytest.approx(0.7, abs=0.01)
    assert mixed["CPU for 10⁶"] == "5.200 s"
    assert found["disk.rand_read", "rate=2000"]["reads"] == "–"


# ---- latency ----


def test_percentiles_are_drawn_over_how_rare_they_are() -> None:
    document = document_of(("rand_read", {"queue_depth": 4}), ("rand_write", {"queue_depth": 4}))
    chart = charts(document)["Percentiles of latency"]
    found = curves(chart.drawing)
    assert list(found) == ["rand_read queue_depth=4", "rand_write queue_depth=4"]
    for points in found.values():
        assert [x for x, _ in points] == [2, 10, 20, 100, 1000]
        assert [y for _, y in points] == sorted(y for _, y in points)
    assert isinstance(chart.drawing, CurveChart)
    labels = [mark.label for mark in chart.drawing.marks]
    assert labels == ["50 %", "90 %", "95 %", "99 %", "99.9 %"]
    assert "rand_read queue_depth=4: 50 % within" in chart.description


def test_a_percentile_of_too_few_operations_is_not_there() -> None:
    document = document_of(("rand_read", {}), device=SPINNING)
    ((_, cells),) = rows(tables(document)["Latency of operations"]).items()
    assert cells["50 %"].endswith("ms") and cells["95 %"].endswith("ms")
    assert cells["99 %"] == cells["99.9 %"] == "–"
    assert "99th 662" in markdown(report_of(document, "result.json"))
    assert "99th 662" not in markdown(
        report_of(document_of(("rand_read", {"queue_depth": 8})), "result.json")
    )


def test_reads_and_writes_of_a_mix_have_their_own_percentiles() -> None:
    found = rows(tables(document_of(("rand_rw", {"queue_depth": 8})))["Latency of operations"])
    names = [name for _, name in found]
    assert names == ["queue_depth=8", "queue_depth=8: reads", "queue_depth=8: writes"]
    assert len({cells["50 %"] for cells in found.values()}) > 1


def test_the_loop_is_named() -> None:
    found = rows(tables(whole())["Latency of operations"])
    assert found["disk.rand_read", "rate=2000"]["loop"] == "open, 2.000 kop/s"
    assert found["disk.rand_read", "block 4 KiB queue_depth=16"]["loop"] == "closed"


def test_of_many_cases_those_of_the_summary_are_drawn() -> None:
    titles = {case.title.removeprefix("disk.") for case in report(whole().cases, whole()).headline}
    found = charts(whole())
    drawn = [name for title, chart in found.items() if title.startswith("Percentiles")
             for name in curves(chart.drawing)]  # fmt: skip
    assert set(drawn) <= titles and len(drawn) >= 6


def test_commits_are_times() -> None:
    found = rows(tables(whole())["Time of a commit, and how many a second"])
    assert [name for _, name in found] == ["block 512 B", "block 4 KiB", "block 64 KiB"]
    for cells in found.values():
        assert cells["50 %"].endswith("µs") and cells["commits"].endswith("op/s")
    (points,) = curves(charts(whole())["Time of a commit over the block size"].drawing).values()
    assert [x for x, _ in points] == [512, 4 * KIB, 64 * KIB]


# ---- evidence ----


def test_evidence_names_the_mode_and_the_engine_that_were_used() -> None:
    found = rows(tables(whole())["Evidence for each case"])
    plain = found["disk.seq_read", "queue_depth=8"]
    assert plain["cache mode"] == "direct" and plain["engine"] == "libaio"
    assert plain["read there"] == "100.0 %" and plain["written there"] == "–"
    assert plain["cached before"] == "0.00 %" and plain["warnings"] == "engine fallback"
    dirty = found["disk.rand_read", "zipf buffered"]
    assert dirty["read there"] == "2.0 %" and dirty["cached before"] == "100.0 %"
    assert "cache contaminated" in dirty["warnings"]


def test_a_sample_says_of_how_many_bytes() -> None:
    params = {"total_bytes": 1 << 40, "engine": "psync"}
    document = document_of(("seq_read", params), ("rand_read", params))
    for (workload, _), cells in rows(tables(document)["Evidence for each case"]).items():
        sampled = re.fullmatch(r"sampled, ([\d.]+) [KMG]iB of 1 TiB", cells["warnings"])
        assert sampled and float(sampled[1]) > 0, workload
    (found,) = [block for block in report(document.cases, document).blocks
                if isinstance(block, Bullets)]  # fmt: skip
    (item,) = found.items
    assert str(item).startswith("2 cases (") and "those of a sample" in str(item)


def test_a_mode_that_was_not_possible_is_reported_beside_what_was_requested() -> None:
    document = document_of(("seq_read", {}))
    (case,) = document.cases
    changed = []
    for trial in case.trials:
        assert trial.start is not None
        params = {**trial.start.params, "cache_mode": "buffered"}
        start = trial.start.model_copy(update={"params": params})
        changed.append(trial.model_copy(update={"events": (start, *trial.events[1:])}))
    fallen = case.model_copy(update={"trials": tuple(changed)})
    ((_, cells),) = rows(tables(document.model_copy(update={"cases": (fallen,)}))[
        "Evidence for each case"
    ]).items()  # fmt: skip
    assert cells["cache mode"] == "buffered (direct was requested)"


def test_every_case_has_its_fio_command() -> None:
    found = rows(tables(whole())["The same with fio"])
    assert len(found) == sum(case.primary in case.metrics for case in whole().cases)
    command = found["disk.rand_read", "block 4 KiB queue_depth=64"]["command"]
    assert command.startswith("fio ")
    assert "--rw=randread" in command and "--iodepth=64" in command and "--direct=1" in command


def test_the_document_itself_has_the_fio_command() -> None:
    document = document_of(("rand_read", {"queue_depth": 64}), ("seq_read", {"verify": "on"}))
    read, verified = json.loads(document.model_dump_json())["cases"]
    command = read["equivalent_command"]
    assert command.startswith("fio ") and "--filename=FILE" in command
    # As resolved, not as requested.
    assert "--iodepth=64" in command and "--ioengine=libaio" in command
    assert verified["equivalent_command"] is None, "fio checks blocks of its own making only"


def test_bytes_are_sizes() -> None:
    table = tables(whole())["What all trials together wrote and read"]
    cells = rows(table)["disk.seq_read", "queue_depth=8"]
    # Four trials; the fixture has each fill the file.
    assert cells["filled"] == "4 GiB" and cells["file used"] == "1 GiB"
    assert cells["busy"] == "97.0 %"
    assert "last fsync" not in cells


# ---- what kind of device ----


@pytest.mark.parametrize(
    ("device", "kind", "why"),
    [
        (FLASH, Kind.SSD, "99 of 100 take less than"),
        (Device(90e-6, 20e-6), Kind.SSD, "times a sequential one"),
        (SPINNING, Kind.SPINNING, "heads that must move"),
        # 15,000 turns a minute, tracks side by side.
        (Device(2.4e-3, 0.1e-3), Kind.SPINNING, "heads that must move"),
        # A file in the memory of a hypervisor.
        (Device(45e-6, 43e-6), Kind.UNKNOWN, "a cache in memory may have served both"),
        # Most of it there, and heads for the rest.
        (Device(60e-6, 40e-6, tail=90), Kind.UNKNOWN, "one in a hundred takes 6.1"),
        # A throttled volume: everything takes long.
        (Device(6e-3, 5e-3), Kind.UNKNOWN, "neither what flash nor what heads alone explain"),
        (Device(1.4e-3, 0.3e-3), Kind.UNKNOWN, "neither what flash nor what heads alone explain"),
    ],
)
def test_what_reads_cost_tells_what_it_is(device: Device, kind: Kind, why: str) -> None:
    found = behaviour(document_of(*PAIR, device=device).cases)
    assert found.kind is kind, found.why
    assert re.search(why, found.why), found.why
    assert [case.workload for case in found.pair] == ["disk.rand_read", "disk.seq_read"]


def test_a_slow_median_of_few_operations_is_enough_for_a_spinning_disk() -> None:
    found = behaviour(document_of(*PAIR, device=SPINNING).cases)
    assert "latency_p99_s" not in found.pair[0].metrics
    assert found.kind is Kind.SPINNING


@pytest.mark.parametrize(
    "change",
    [
        {"cache_mode": "buffered"},
        {"queue_depth": 2},
        {"threads": 2},
        {"rate": 100},
        {"block_bytes": 64 * KIB},
        {"block_bytes": 512},
        {"file_bytes": 2 * GIB},
        {"distribution": "zipf"},
    ],
)
def test_cases_that_differ_in_more_decide_nothing(change: dict[str, object]) -> None:
    document = document_of(("rand_read", {**ONE_BLOCK, **change}), ("seq_read", ONE_BLOCK))
    found = behaviour(document.cases)
    assert found.kind is Kind.UNKNOWN and not found.pair
    assert "queue depth 1" in found.why


def with_metric(case: CaseResult, name: str, value: float) -> CaseResult:
    metric = case.metrics[name]
    statistics = metric.statistics.model_copy(update={"median": value})
    changed = metric.model_copy(update={"statistics": statistics})
    return case.model_copy(update={"metrics": {**case.metrics, name: changed}})


def test_figures_that_are_in_doubt_decide_nothing() -> None:
    random_one, ordered = document_of(*PAIR).cases
    disturbed = random_one.model_copy(update={"verdict": Verdict.DISTURBED})
    assert behaviour((disturbed, ordered)).why == "disk.rand_read block 4 KiB is disturbed"
    cached = with_metric(ordered, "device_read_ratio", 0.3)
    found = behaviour((random_one, cached))
    assert found.kind is Kind.UNKNOWN and "page cache (30.0 % at the device)" in found.why
    unfinished = random_one.model_copy(update={"verdict": None})
    assert "not finished" in behaviour((unfinished, ordered)).why


def test_the_smallest_blocks_decide() -> None:
    cases = [(name, {"block_bytes": size}) for size in (16 * KIB, 512) for name, _ in PAIR]
    found = behaviour(document_of(*cases).cases)
    assert [case.params["block_bytes"] for case in found.pair] == [512, 512]


def test_the_conclusion_stands_in_the_section_with_its_rule() -> None:
    document = document_of(*PAIR)
    strong = [
        inline.text
        for block in blocks_of(document)
        if hasattr(block, "text")
        for inline in inlines(block.text)
        if isinstance(inline, Strong)
    ]
    assert strong == ["It behaves like an SSD"]
    text = markdown(report_of(document, "result.json"))
    assert "needs 2 ms or more for a random read" in text


def test_without_reads_there_is_no_conclusion() -> None:
    assert not [title for title in parts(document_of(("seq_write", {}))) if "kind of" in title]


# ---- the summary ----


def test_the_headline_has_what_disks_do_and_not_what_caches_do() -> None:
    titles = [case.title for case in report(whole().cases, whole()).headline]
    assert "disk.rand_read block 4 KiB" in titles
    assert any(re.match(r"disk.rand_read block 4 KiB queue_depth=\d+", one) for one in titles)
    assert any(one.startswith("disk.fsync_latency") for one in titles)
    assert not [one for one in titles if one in ("disk.seq_write buffered",
                                                 "disk.rand_read zipf buffered")]  # fmt: skip
    assert len(titles) == len(set(titles)) <= 16


def test_a_cached_figure_is_a_headline_where_there_is_no_other() -> None:
    document = document_of(("seq_write", {"cache_mode": "buffered"}))
    assert report(document.cases, document).headline == document.cases


# ---- over time ----


def test_samples_are_drawn_second_by_second() -> None:
    section = time_section(whole())
    assert section is not None
    drawn = [b for b in flat(section.blocks) if isinstance(b, Chart)]
    panels = [
        [panel.title for panel in chart.drawing.panels]
        for chart in drawn
        if isinstance(chart.drawing, TimeChart)
    ]
    assert len(panels) == len(drawn) > 4
    for titles in panels:
        assert {"latency p50", "latency p99"} <= set(titles)


# ---- whatever a document holds ----


@pytest.mark.parametrize("change", LESS)
def test_documents_that_say_less(change: Callable[[CaseResult], CaseResult]) -> None:
    cases = tuple(change(case) for case in whole().cases)
    document = whole().model_copy(update={"cases": cases})
    section = report(document.cases, document)
    assert section.title == "Disk"
    shown = [t for c, t in tables(document).items() if c.startswith("Figures of")]
    assert sum(len(group.rows) for table in shown for group in table.groups) == len(cases)


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.sampled(2)
def test_few_trials_without_limits_and_peers(trials: int) -> None:
    found = report_of(disk_run(trials, limits=False, peers=False), "result.json")
    assert "no limit" in html(found) and "## Disk" in markdown(found)


def test_a_single_case_of_each_kind() -> None:
    document = document_of(("seq_read", {}), ("rand_write", {}), ("fsync_latency", {}))
    assert list(charts(document)) == ["Percentiles of latency"]
    assert parts(document) == [
        "Throughput",
        "Operations a second",
        "Latency",
        "Commits",
        "What kind of device it behaves like",
        "Evidence",
    ]


def test_a_workload_that_the_section_does_not_know() -> None:
    document = document_of(("seq_read", {}))
    (case,) = document.cases
    odd = case.model_copy(update={"workload": "disk.trim"})
    blocks = flat(report((odd,), document).blocks)
    assert "Figures of disk.trim" in {b.caption for b in blocks if isinstance(b, Table)}


# ---- naive workloads ----


def naive_run() -> ResultDocument:
    """One sound read, and one read and one write that went through memory."""
    document = document_of(
        ("seq_read", {}), ("seq_read", {"block_bytes": 8 * KIB}), ("seq_write", {})
    )
    sound, read, write = document.cases
    reads = _in_memory(read, "naive_read", cached_ratio_before=1.0, device_read_ratio=0.0)
    writes = _in_memory(
        write, "naive_write", cached_ratio_before=1.0, device_read_ratio=None, sync_after_s=0.3
    )
    metrics = document.workloads["disk.seq_read"]
    return document.model_copy(
        update={
            "cases": (sound, reads, writes),
            "workloads": {
                **document.workloads,
                "disk.naive_read": metrics,
                "disk.naive_write": metrics,
            },
        }
    )


def _in_memory(case: CaseResult, workload: str, **values: float | None) -> CaseResult:
    """The case as if memory had served it; None: it has no such metric."""
    metrics = dict(case.metrics)
    like = metrics["cached_ratio_before"]
    for name, value in values.items():
        metrics.pop(name, None)
        if value is not None:
            statistics = like.statistics.model_copy(update={"median": value})
            unit = "s" if name.endswith("_s") else "1"
            metrics[name] = like.model_copy(update={"unit": unit, "statistics": statistics})
    update = {"workload": f"disk.{workload}", "naive": True, "peers": (), "metrics": metrics}
    return case.model_copy(update=update)


def test_what_naive_figures_leave_out_stands_in_their_part() -> None:
    document = naive_run()
    part = subsystem_reports(document)["disk"].blocks[-1]
    assert isinstance(part, Part) and part.title == "Naive"
    found = {b.caption: b for b in flat(part.blocks) if isinstance(b, Table)}
    cells = rows(found["Memory and disk behind the naive figures"])
    by_case = {workload: row for (workload, _), row in cells.items()}
    assert by_case["disk.naive_read"]["cached before"] == "100.0 %"
    assert by_case["disk.naive_read"]["read there"] == "0.00 %"
    assert by_case["disk.naive_read"]["after the clock"] == "–"
    assert by_case["disk.naive_write"]["read there"] == "–"
    assert by_case["disk.naive_write"]["after the clock"] == "300.0 ms"
    text = markdown(report_of(document, "result.json"))
    assert text.count("After the clock: how long an fsync took") == 1


def test_without_naive_cases_nothing_is_reported_of_them() -> None:
    assert "After the clock" not in markdown(report_of(whole(), "result.json"))
