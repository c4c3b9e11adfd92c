"""Disks: throughput and operations by block and queue depth, latency, evidence, by the second."""

from grafana_foundation_sdk.builders import barchart, bargauge, dashboard, stat, timeseries, xychart
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.charts import (
    PERCENTILES,
    SAMPLED_LATENCIES,
    Axis,
    beside,
    curves,
    figures_history,
    highest,
    least_and_most,
    matrix,
    narrow_figures,
    peer_history,
    peer_ratios,
    row_history,
    seconds,
    share_history,
    spread_history,
    workload_shares,
)
from grafana.influxql import (
    PRIMARY,
    SOUND,
    equals,
    latest,
    matches,
    one_of,
    present,
)
from grafana.looks import (
    BANDWIDTH,
    RATE,
    SECONDS,
    SHARE,
    api_variable,
    board,
    change_marks,
    no_legend,
    prop,
    result_variables,
    row_variable,
)
from grafana.parameters import axis, other_fields, tags
from grafana.tables import results_table
from hostbench.model.result import OWN_TOOL
from services.disk.params import BLOCK, DEPTH

DISKS = equals("subsystem", "disk")
OURS = f"{SOUND} AND {DISKS} AND {equals('tool', OWN_TOOL)}"
# Reads and writes report bytes and operations, whichever is their primary figure.
ACCESSES = f"{OURS} AND {matches('workload', '^disk[.](seq|rand)_')}"
THROUGHPUTS = f"{ACCESSES} AND {equals('metric', 'bytes_per_second')}"
OPERATIONS = f"{ACCESSES} AND {equals('metric', 'operations_per_second')}"
COMMITS = f"{PRIMARY} AND {DISKS} AND {equals('metric', 'commit_time_s')}"
LATENCIES = f"{ACCESSES} AND {matches('metric', '^latency_p(50|90|99|99_9)_s$')}"
ONE_AT_A_TIME = f'{LATENCIES} AND "threads" = \'1\' AND "{DEPTH}" = 1'
# A repeated row shows workloads of one unit.
STREAM, ACCESS = "stream", "access"
OF_STREAM = f"{PRIMARY} AND {THROUGHPUTS} AND {one_of(STREAM, 'workload')}"
OF_ACCESS = f"{PRIMARY} AND {OPERATIONS} AND {one_of(ACCESS, 'workload')}"
ALL_WORKLOADS = "disk[.].*"
NOTHING = "No results of disks in the chosen time."

# As far as points show, reads and writes have the same parameters.
ANY_ACCESS = "disk.rand_read"
LIMIT = "limit, what the link to the device transfers at most, or the operator set"


def disk() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-disk",
        "hostbench: disk",
        "Throughput and operations a second by block and queue depth, latency, commits, evidence "
        "that the figures are the disk's, and samples second by second.",
        "now-30d",
    )
    for one in result_variables(f"{PRIMARY} AND {DISKS}", ALL_WORKLOADS):
        found = found.with_variable(one)
    return (
        found.annotations(change_marks(DISKS))
        .with_variable(_rows(STREAM, "bytes_per_second", "bytes a second"))
        .with_variable(_rows(ACCESS, "operations_per_second", "operations a second"))
        .with_variable(api_variable())
        .with_panel(_highest("throughput", "throughputs", BANDWIDTH, THROUGHPUTS))
        .with_panel(_of_limit())
        .with_panel(_commit_time())
        .with_panel(peer_ratios().grid_pos(GridPos(x=18, y=4, w=6, h=5)))
        .with_panel(results_table(14).grid_pos(GridPos(x=0, y=9, w=24, h=14)))
        .with_row(dashboard.Row("By block size, queue depth and cache mode"))
        .with_panel(_over("Throughput", BLOCK, BANDWIDTH, THROUGHPUTS))
        .with_panel(_over("Operations", BLOCK, RATE, OPERATIONS))
        .with_panel(_over("Throughput", DEPTH, BANDWIDTH, THROUGHPUTS))
        .with_panel(_over("Operations", DEPTH, RATE, OPERATIONS))
        .with_panel(_by_mode())
        .with_panel(_highest("rate", "rates of operations", RATE, OPERATIONS).height(10))
        .with_row(dashboard.Row("Latency"))
        .with_panel(_one_at_a_time())
        .with_panel(_latency())
        .with_row(dashboard.Row("Evidence that the figures are the disk's"))
        .with_panel(_evidence("Read at the device", "device_read_ratio", READ_AT_DEVICE))
        .with_panel(_evidence("In memory before", "cached_ratio_before", IN_MEMORY))
        .with_panel(_evidence("Device busy", "device_busy_ratio", BUSY))
        .with_row(dashboard.Row("Second by second"))
        .with_panel(seconds("Throughput, second by second", BANDWIDTH, {"bytes_per_second": ""}))
        .with_panel(seconds("Operations, second by second", RATE, {"operations_per_second": ""}))
        .with_panel(seconds("Latency, second by second", SECONDS, SAMPLED_LATENCIES))
        .with_row(dashboard.Row("History of all chosen workloads"))
        .with_panel(figures_history("Throughput", BANDWIDTH, THROUGHPUTS))
        .with_panel(narrow_figures("Operations", RATE, OPERATIONS))
        .with_panel(narrow_figures("Slowest of a hundred", SECONDS, _of_metric("latency_p99_s")))
        .with_panel(narrow_figures("Commits", SECONDS, COMMITS))
        .with_panel(share_history().span(8).height(9).legend(no_legend()))
        .with_panel(peer_history())
        .with_panel(spread_history())
        .with_row(dashboard.Row(f"${STREAM}").repeat(STREAM))
        .with_panel(beside(f"${STREAM}: ours, the limit, the peer", BANDWIDTH, OF_STREAM, LIMIT))
        .with_panel(row_history(STREAM, BANDWIDTH, OF_STREAM))
        .with_row(dashboard.Row(f"${ACCESS}").repeat(ACCESS))
        .with_panel(beside(f"${ACCESS}: ours, the limit, the peer", RATE, OF_ACCESS, LIMIT))
        .with_panel(row_history(ACCESS, RATE, OF_ACCESS))
    )


def _of_metric(metric: str) -> str:
    return f"{ACCESSES} AND {equals('metric', metric)}"


def _rows(name: str, metric: str, unit: str) -> dashboard.QueryVariable:
    condition = f"{PRIMARY} AND {SOUND} AND {DISKS} AND {equals('metric', metric)}"
    description = f"Those of the chosen workloads whose figure is in {unit}."
    return row_variable(name, condition, ALL_WORKLOADS, description)


def _highest(name: str, names: str, unit: str, condition: str) -> bargauge.Panel:
    return highest(
        f"Highest {name} by workload",
        f"The highest of the latest {names} of each workload, over all blocks, queue depths, "
        "threads and cache modes: also of those that the page cache served, which the table "
        "shows by the verdict and the cache mode.",
        unit,
        condition,
        NOTHING,
    )


def _of_limit() -> bargauge.Panel:
    return workload_shares(
        "The lowest of the latest results of all cases of a workload. Limit: the most that the "
        "link to the device can transfer, or what the operator set. A virtual disk has no link, "
        "so the operator has to set its limit.",
    )


def _commit_time() -> stat.Panel:
    return least_and_most(
        "Time of a commit",
        "The lowest and the highest of the latest times that it took to write a block and "
        "have the device confirm it (fdatasync), over all block sizes.",
        COMMITS,
    )


def _over(what: str, param: str, unit: str, condition: str) -> xychart.Panel:
    """Return a line for each workload and each combination of its other parameters that are tags or
    axes."""
    x = axis(ANY_ACCESS, param)
    return curves(
        f"{what} over the {x.name}",
        f"The latest {what.lower()} of reads and writes over the {x.name}, a line for everything "
        "else that distinguishes cases. Both scales are logarithmic.",
        x,
        Axis("value", f"{what.lower()} a second", unit, 10),
        ("workload", *tags(ANY_ACCESS)),
        condition,
        fields=other_fields(ANY_ACCESS, param),
    )


def _by_mode() -> barchart.Panel:
    return matrix(
        "Highest throughput by workload and cache mode",
        "The highest of the latest throughputs, one bar a cache mode. Buffered writes that wait "
        "for nothing show the page cache and not the disk; with fsync_end, dsync or sync, and "
        "direct, they show the disk.",
        BANDWIDTH,
        "workload",
        "cache_mode",
        latest('"value"', ("workload", "cache_mode"), f"{THROUGHPUTS} AND {present('cache_mode')}"),
    ).span(14)


def _one_at_a_time() -> barchart.Panel:
    panel = matrix(
        "Latency of one operation at a time",
        "Percentiles of the latency with one thread and queue depth 1: of each workload the "
        "highest of its latest results, over all block sizes and cache modes.",
        SECONDS,
        "workload",
        "metric",
        latest('"value"', ("workload", "metric"), ONE_AT_A_TIME),
    ).height(12)
    for metric, name in PERCENTILES.items():
        panel = panel.override_by_name(metric, [prop("displayName", name)])
    return panel


def _latency() -> xychart.Panel:
    return curves(
        "Latency over the queue depth",
        "Percentiles of the latency of reads and writes over the queue depth. If further requests "
        "only wait, latency grows and operations a second do not. Both scales are logarithmic.",
        axis(ANY_ACCESS, DEPTH),
        Axis("value", "latency", SECONDS, 10),
        ("metric", "workload", *tags(ANY_ACCESS)),
        LATENCIES,
        fields=other_fields(ANY_ACCESS, DEPTH),
    )


READ_AT_DEVICE = (
    "The bytes that the kernel read from the device for the program, divided by those that the "
    "program read. Direct and cold reads must have 100 %. The rest came from memory, and below 95 "
    "% the figure is not the disk's."
)
IN_MEMORY = (
    "The share of the file that was in the page cache right before the timed region: 0 % for "
    "reads that should come from the device."
)
BUSY = (
    "The share of the time in which the device was busy. Far below 100 %, the path to the device "
    "was the bottleneck, not the device."
)


def _evidence(title: str, metric: str, description: str) -> timeseries.Panel:
    condition = f"{OURS} AND {equals('metric', metric)}"
    return narrow_figures(title, SHARE, condition, description).axis_soft_min(0).axis_soft_max(1)
