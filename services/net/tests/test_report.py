"""What the report says of the network."""

import functools
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from hostbench.model.events import WarningEvent
from hostbench.model.result import CaseResult, FarHostRecord, ProgramVersion, ResultDocument
from hostbench.page.job import report_of
from hostbench.report.content import (
    BarChart,
    Bullets,
    Chart,
    CurveChart,
    Drawing,
    Part,
    Table,
    TimeChart,
)
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from hostbench.report.subsystems import subsystem_reports
from hostbench.report.timeline import time_section
from services.net.report import report
from tests.unit.net_documents import KIB, LOOPBACK, WIRE, Path, net_run, planned_net, run_of
from tests.unit.report_sections import LESS, charts, curves, flat, parts, rows, tables


@functools.cache
def whole() -> ResultDocument:
    return net_run()


def bars(drawing: Drawing) -> dict[str, list[str]]:
    assert isinstance(drawing, BarChart)
    return {group.title: [bar.label for bar in group.bars] for group in drawing.groups}


def document_of(
    *cases: tuple[str, Mapping[str, object]], path: Path = LOOPBACK, limits: bool = False
) -> ResultDocument:
    planned = tuple(planned_net(workload, **params) for workload, params in cases)
    return run_of(planned, random.Random(1), path=path, limits=limits)


# ---- what stands above all figures ----


def test_every_case_is_in_one_table_of_figures() -> None:
    shown = [t for caption, t in tables(whole()).items() if caption.startswith("Figures of")]
    assert sum(len(group.rows) for table in shown for group in table.groups) == len(whole().cases)


def test_what_was_warned_of_is_reported_first() -> None:
    (found,) = [
        block for block in report(whole().cases, whole()).blocks if isinstance(block, Bullets)
    ]
    totals, sampled = (str(item) for item in found.items)
    assert sampled.startswith("1 case (net.tcp_stream total 100 GB): the time ended before")
    assert totals.startswith("1 case (net.udp_stream block 1 B): blocks too small to hold a number")


def test_a_warning_that_the_section_does_not_know_is_reported_in_the_programs_words() -> None:
    document = document_of(("tcp_stream", {"total_bytes": 10**9}))
    (case,) = document.cases
    odd = WarningEvent(event="warning", code="odd_path", message="the path is odd")
    trials = tuple(
        trial.model_copy(update={"events": (*trial.events, odd)}) for trial in case.trials
    )
    (found,) = [
        block
        for block in report((case.model_copy(update={"trials": trials}),), document).blocks
        if isinstance(block, Bullets)
    ]
    assert "the path is odd." in str(found.items[-1]) and len(found.items) == 2


# ---- throughput ----


def test_throughput_is_a_curve_over_blocks_and_over_streams() -> None:
    found = charts(whole())
    blocks = found["Throughput over the block size"].drawing
    assert isinstance(blocks, CurveChart) and blocks.x.logarithmic and blocks.y.logarithmic
    assert {name: [x for x, _ in points] for name, points in curves(blocks).items()} == {
        "tcp_stream": [1, KIB, 32 * KIB, 64 * KIB, 128 * KIB],
        "udp_stream": [1, KIB, 1472, 32 * KIB, 63 * KIB],
    }
    streams = found["Throughput over the number of streams"].drawing
    assert isinstance(streams, CurveChart) and not streams.y.logarithmic
    assert [[x for x, _ in points] for points in curves(streams).values()] == [[1, 2, 4, 8]] * 2
    assert "1472 B" in str(found["Throughput over the block size"].numbers)


def test_what_differs_in_something_else_is_bars_of_its_workload() -> None:
    found = bars(charts(whole())["Throughput"].drawing)
    assert list(found) == [
        "tcp_stream, block 128 KiB, 1 stream",
        "udp_stream, loopback, block 1472 B, 1 stream",
    ]
    tcp, udp = found.values()
    assert {"receive", "both", "sendfile", "bbr", "ip_version=6", "far_host"} <= set(tcp)
    assert {"receive", "both", "single", "mmsg", "gso"} <= set(udp)
    assert not [name for name in udp if "rate" in name], "a requested rate is no figure"


def test_a_link_bounds_bars_and_the_loopback_has_no_limit() -> None:
    drawing = charts(whole())["Throughput"].drawing
    assert isinstance(drawing, BarChart)
    limits = {bar.label: bar.limit for group in drawing.groups for bar in group.bars}
    assert limits.pop("far_host") == pytest.approx(1.25e9 * 0.9415)
    assert set(limits.values()) == {None}


def test_rates_are_reported_in_bits_too_and_beside_what_was_offered() -> None:
    found = rows(tables(whole())["Received and offered"])
    paced = found["net.udp_stream", "rate=4000000000 gso"]
    assert paced["received"] == "3.660 GB/s" and paced["in bits"] == "29.28 Gbit/s"
    assert paced["offered"] == "4.000 GB/s" and paced["received of it"] == "91.50 %"


def test_each_direction_of_both_has_its_own_line() -> None:
    document = document_of(("tcp_stream", {"direction": "both"}), ("tcp_stream", {}))
    found = rows(tables(document)["Received and offered"])
    assert [name for _, name in found] == ["both", "both: send", "both: receive", "(defaults)"]


# ---- loss ----


def test_loss_is_a_curve_over_the_offered_rate() -> None:
    chart = charts(whole())["Loss over the offered rate"]
    found = curves(chart.drawing)
    assert list(found) == [
        "udp_stream, loopback, block 1472 B, 1 stream, gso",
        "udp_stream, loopback, block 1472 B, 1 stream, single",
    ]
    offered, lost = zip(*found["udp_stream, loopback, block 1472 B, 1 stream, gso"], strict=True)
    assert offered == pytest.approx((1e8, 5e8, 1e9, 2e9, 4e9))
    assert lost[:4] == (0, 0, 0, 0) and lost[4] == pytest.approx(8.5)
    assert "8.500 % of 4.000 GB/s" in chart.description
    assert "Received over the offered rate" in charts(whole())


def test_datagrams_are_counted_and_what_is_not_known_is_no_zero() -> None:
    found = rows(tables(whole())["Datagrams of a trial"])
    paced = found["None", "rate=4000000000 gso"]
    assert paced["sent"] == "5,434,783" and paced["lost"] == "461,957"
    assert paced["lost share"] == "8.5 %" and paced["dropped by receiver"] == "461,957"
    assert found["None", "block 1 B"]["duplicated"] == "–"


def test_tcp_alone_has_no_part_about_loss() -> None:
    assert "Loss" not in parts(document_of(("tcp_stream", {})))


def test_one_rate_is_no_curve() -> None:
    document = document_of(("udp_stream", {"rate": 10**9}), ("udp_stream", {}))
    assert not [title for title in charts(document) if "offered" in title]
    assert "Datagrams of a trial" in tables(document)


# ---- round trips and connections ----


def test_round_trips_have_a_curve_percentiles_and_a_table() -> None:
    found = charts(whole())
    blocks = curves(found["Time of a round trip over the block size"].drawing)
    assert {name: [x for x, _ in points] for name, points in blocks.items()} == {
        "tcp_rr": [1, KIB, 32 * KIB],
        "udp_rr": [1, KIB, 32 * KIB],
    }
    (title,) = [one for one in found if one.startswith("Percentiles")]
    assert title == "Percentiles of round trips"
    for points in curves(found[title].drawing).values():
        assert [x for x, _ in points] == [2, 10, 20, 100, 1000]
        assert [y for _, y in points] == sorted(y for _, y in points)
    table = rows(tables(whole())["Times of round trips"])
    assert table["net.udp_rr", "spin"]["lost"] == "0"
    assert table["net.tcp_rr", "spin"]["lost"] == "–"
    assert table["net.tcp_rr", "spin"]["99.9 %"].endswith("µs")


def test_a_load_stands_beside_the_case_without_it() -> None:
    found = rows(tables(whole())["Round trips under load"])
    loaded = found["net.tcp_rr", "4 load streams"]
    assert loaded["load"] == "4.000 GB/s" and loaded["in bits"] == "32.00 Gbit/s"
    assert float(loaded["times as long"]) == pytest.approx(7, rel=0.05)
    alone = document_of(("udp_rr", {"load_streams": 2}))
    ((_, cells),) = rows(tables(alone)["Round trips under load"]).items()
    assert cells["50 % without load"] == cells["times as long"] == "–"
    assert "Round trips under load" not in tables(document_of(("udp_rr", {})))


def test_a_loaded_round_trip_is_in_no_curve_of_quiet_ones() -> None:
    drawn = [
        name
        for title, chart in charts(whole()).items()
        if title.startswith("Time of a round trip")
        for name in (
            curves(chart.drawing)
            if isinstance(chart.drawing, CurveChart)
            else [label for labels in bars(chart.drawing).values() for label in labels]
        )
    ]
    assert drawn and not [name for name in drawn if "load" in name]


def test_connections_are_rates() -> None:
    (points,) = curves(
        charts(whole())["Connections a second over the number of streams"].drawing
    ).values()
    assert [x for x, _ in points] == [1, 2, 4]
    assert "Time of a connection" in tables(whole())


# ---- both ends ----


def test_cpu_time_of_both_ends_stands_side_by_side() -> None:
    found = rows(tables(whole())["CPU time for 10⁹ bytes at both ends"])
    assert found["net.tcp_stream", "sendfile"] == {
        "case": "sendfile",
        "near end": "227.3 ms",
        "far end": "136.4 ms",
        "both": "363.6 ms",
    }
    trips = rows(tables(whole())["CPU time for 10⁶ round trips at both ends"])
    assert trips["net.udp_rr", "spin"]["both"] == "11.30 s"
    drawn = bars(charts(whole())["CPU time for 10⁹ bytes"].drawing)
    assert set(map(tuple, drawn.values())) == {("near end", "far end")}


def test_what_was_in_force_is_reported_beside_what_was_requested() -> None:
    found = rows(tables(whole())["What was in force"])
    plain = found["net.tcp_stream", "receive"]
    assert plain["congestion control"] == "cubic" and plain["of the far end"] == "reno"
    assert plain["send path"] == "sendfile" and plain["send buffer"] == "8 MiB"
    assert plain["near end's CPUs"] == "0-1" and plain["far end's CPUs"] == "1"
    assert found["net.tcp_stream", "zerocopy"]["copied after all"] == "100.0 %"
    udp = found["net.udp_stream", "receive"]
    assert udp["UDP path"] == "gso" and udp["segments a send"] == "44" and udp["GRO"] == "yes"
    assert found["net.udp_stream", "single"]["GRO"] == "no"
    tcp = rows(tables(whole())["TCP at the end of the timed region"])
    assert tcp["net.tcp_stream", "receive"]["retransmits"] == "0"
    assert not [name for workload, name in tcp if workload != "net.tcp_stream"]


def test_each_path_is_reported_once() -> None:
    table = tables(whole())["Paths that cases took"]
    (group,) = table.groups
    lines = [dict(zip((c.title for c in table.columns), row, strict=True)) for row in group.rows]
    assert [one["target"] for one in lines] == ["loopback", "far host"]
    assert [one["interface"] for one in lines] == ["lo", "eth0"]
    assert [one["far host name"] for one in lines] == ["–", "beta"]
    ran = [case for case in whole().cases if any(trial.start for trial in case.trials)]
    assert sum(int(str(one["cases"])) for one in lines) == len(ran)


def test_both_ends_counts_stand_side_by_side() -> None:
    found = rows(tables(whole())["What either end counted in all trials together"])
    assert found["net.tcp_stream", "receive"]["arrived"] == "100.0 %"
    assert found["net.udp_stream", "rate=4000000000 gso"]["arrived"] == "91.5 %"
    sampled = found["net.tcp_stream", "total 100 GB"]["warnings"]
    assert re.fullmatch(r"sampled, [\d.]+ GB of 100\.0 GB", sampled)


def test_what_iperf3_can_do_too_has_its_command() -> None:
    found = rows(tables(whole())["The same with iperf3, where it can do it"])
    command = found["net.tcp_stream", "receive"]["command"]
    assert "iperf3 --client SERVER" in command and "--reverse" in command
    assert ("net.tcp_stream", "zerocopy") not in found
    assert not [workload for workload, _ in found if workload.endswith("rr")]


# ---- the summary ----


def test_the_headline_has_each_workload_to_each_target() -> None:
    titles = [case.title for case in report(whole().cases, whole()).headline]
    assert len(titles) == len(set(titles)) <= 16
    assert {"net.tcp_stream far_host", "net.tcp_rr far_host", "net.udp_rr spin"} <= set(titles)
    assert not [title for title in titles if "load_streams" in title or "32 KiB" in title]


def test_a_rate_with_loss_is_no_headline_where_there_is_one_not_far_below() -> None:
    document = document_of(
        *(("udp_stream", params) for params in ({}, {"rate": 10**7}, {"rate": 2 * 10**9}))
    )
    lossy, slow, paced = document.cases
    assert report(document.cases, document).headline == (paced,)
    assert report((lossy, slow), document).headline == (lossy,)


def test_a_round_trip_of_one_stream_is_the_headline() -> None:
    document = document_of(
        *(
            ("tcp_rr", params)
            for params in ({"streams": 2}, {}, {"load_streams": 1}, {"block_bytes": KIB})
        )
    )
    assert [case.title for case in report(document.cases, document).headline] == ["net.tcp_rr"]


# ---- over time ----


def test_samples_are_drawn_second_by_second() -> None:
    section = time_section(whole())
    assert section is not None
    drawn = [b for b in flat(section.blocks) if isinstance(b, Chart)]
    titles = {
        panel.title
        for chart in drawn
        if isinstance(chart.drawing, TimeChart)
        for panel in chart.drawing.panels
    }
    assert "bytes per second" in titles or "round trip" in titles


# ---- whatever a document holds ----


@pytest.mark.parametrize("change", LESS)
def test_documents_that_say_less(change: Callable[[CaseResult], CaseResult]) -> None:
    cases = tuple(change(case) for case in whole().cases)
    document = whole().model_copy(update={"cases": cases})
    section = report(document.cases, document)
    assert section.title == "Network"
    shown = [t for c, t in tables(document).items() if c.startswith("Figures of")]
    assert sum(len(group.rows) for table in shown for group in table.groups) == len(cases)


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.sampled(2)
def test_few_trials_without_limits_and_peers(trials: int) -> None:
    found = report_of(net_run(trials, limits=False, peers=False), "result.json")
    assert "no limit" in html(found) and "## Network" in markdown(found)


def test_both_hosts_are_reported() -> None:
    program = ProgramVersion(name="net-bench", subsystem="net", version="0.1.0", sha256="12" * 32)
    inventory_of_far = whole().host.model_copy(update={"hostname": "beta"})
    far = FarHostRecord(
        inventory=inventory_of_far, program=program, address="192.0.2.2", near_address="192.0.2.1"
    )
    page = report_of(whole().model_copy(update={"far_host": far}), "result.json")
    assert page.title == f"net on {whole().host.hostname} and beta"
    (section,) = [one for one in page.sections if one.anchor == "far-host"]
    assert "192.0.2.1" in str(section.blocks[0]) and "12" * 32 in str(section.blocks[0])
    assert [name for name, _ in page.facts.items][-1] == "Far host"
    # The charts take most of the time to write, and show nothing of the far host.
    assert "Far host" in html(replace(page, sections=(section,)))
    alone = report_of(whole(), "result.json")
    assert not [one for one in alone.sections if one.anchor == "far-host"]


def test_a_single_case_of_each_kind() -> None:
    document = document_of(
        *((name, {}) for name in ("tcp_stream", "udp_stream", "tcp_rr", "tcp_crr")), path=WIRE
    )
    assert parts(document) == [
        "Throughput",
        "Loss",
        "Round trips",
        "Connections",
        "CPU time at both ends",
        "What was in force",
        "The path",
        "Evidence",
    ]


def test_a_workload_that_the_section_does_not_know() -> None:
    document = document_of(("tcp_stream", {}))
    (case,) = document.cases
    odd = case.model_copy(update={"workload": "net.sctp_stream"})
    blocks = flat(report((odd,), document).blocks)
    assert "Figures of net.sctp_stream" in {b.caption for b in blocks if isinstance(b, Table)}


# ---- workloads that mislead on purpose ----


def naive(document: ResultDocument, *, arrived: float | None = 0.5) -> ResultDocument:
    """The document as if its cases had counted what they sent, and such a share of it arrived."""
    return document.model_copy(
        update={
            "cases": tuple(counted_by_sender(case, arrived) for case in document.cases),
            "workloads": {"net.naive_stream": document.workloads["net.udp_stream"]},
        }
    )


def counted_by_sender(case: CaseResult, arrived: float | None) -> CaseResult:
    figure = case.metrics["bytes_per_second"]
    metrics = {"bytes_per_second": figure, "lost_ratio": case.metrics["lost_ratio"]}
    if arrived is not None:
        median = figure.statistics.median * arrived
        statistics = figure.statistics.model_copy(update={"median": median})
        metrics["arrived_bytes_per_second"] = figure.model_copy(update={"statistics": statistics})
    update = {"workload": "net.naive_stream", "naive": True, "peers": (), "metrics": metrics}
    return case.model_copy(update=update)


def naive_tables(document: ResultDocument) -> dict[str, Table]:
    part = subsystem_reports(document)["net"].blocks[-1]
    assert isinstance(part, Part) and part.title == "Naive"
    return {block.caption: block for block in flat((part,)) if isinstance(block, Table)}


def test_what_a_sender_counts_stands_beside_what_arrived() -> None:
    document = naive(document_of(("udp_stream", {"block_bytes": 1472}), ("udp_stream", {})))
    found = rows(naive_tables(document)["Counted and arrived"])
    assert len(found) == 2 and {row["times as much"] for row in found.values()} == {"2.00"}
    for row in found.values():
        assert row["counted"] != row["arrived"] and row["lost share"].endswith("%")


def test_without_counts_of_arrivals_there_is_no_such_table() -> None:
    document = naive(document_of(("udp_stream", {})), arrived=None)
    assert "Counted and arrived" not in naive_tables(document)
