"""Memory: bandwidth by kernel, latency over the working set, both under load, small blocks."""

from grafana_foundation_sdk.builders import barchart, bargauge, dashboard, stat, timeseries, xychart
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.charts import (
    GROUPED,
    Axis,
    beside,
    curves,
    highest,
    least_and_most,
    matrix,
    narrow_history,
    peer_history,
    peer_ratios,
    row_history,
    share_history,
    spread_history,
    wide_history,
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
    results,
)
from grafana.looks import (
    BANDWIDTH,
    SECONDS,
    api_variable,
    board,
    change_marks,
    no_legend,
    prop,
    result_variables,
    row_variable,
)
from grafana.parameters import axis, tags, title
from grafana.tables import results_table
from hostbench.model.result import OWN_TOOL
from services.mem.params import BLOCK, INTENSITY, PAGES, SIZE, THREADS

MEMORY = equals("subsystem", "mem")
RATES = f"{PRIMARY} AND {SOUND} AND {MEMORY} AND {equals('metric', 'bytes_per_second')}"
TIMES = f"{PRIMARY} AND {MEMORY} AND {equals('metric', 'access_time_s')}"
OURS = f"{MEMORY} AND {equals('tool', OWN_TOOL)}"
STORES = f"{OURS} AND {matches('metric', '^bytes_per_second_(plain|nt|libc)$')}"
CHASE = f"{TIMES} AND {equals('workload', 'mem.pointer_chase')}"
LOADED = f"{TIMES} AND {equals('workload', 'mem.loaded_latency')}"
BLOCKS = f'{RATES} AND "{BLOCK}" > 0'
RANDOM = (
    f"{OURS} AND {equals('workload', 'mem.random_access')} "
    f"AND {matches('metric', '^access_time_s(_net)?$')}"
)
# A repeated row shows workloads with a bandwidth only: the others have another unit.
KERNEL = "kernel"
OF_KERNEL = f"{RATES} AND {one_of(KERNEL, 'workload')}"
ALL_WORKLOADS = "mem[.].*"
NO_RATES = "No bandwidths in the chosen time."
STORE_NAMES = {"plain": "plain", "nt": "non-temporal", "libc": "libc"}

TIME_AXIS = Axis("value", "access time", SECONDS, 10)


def mem() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-mem",
        "hostbench: memory",
        "Bandwidth by kernel, threads, pages and stores, latency over the working set and under "
        "load, small blocks: limit and peer beside ours.",
        "now-30d",
    )
    for one in result_variables(f"{PRIMARY} AND {MEMORY}", ALL_WORKLOADS):
        found = found.with_variable(one)
    return (
        found.annotations(change_marks(MEMORY))
        .with_variable(_kernels())
        .with_variable(api_variable())
        .with_panel(_highest())
        .with_panel(_of_limit())
        .with_panel(_access_time())
        .with_panel(peer_ratios().grid_pos(GridPos(x=18, y=4, w=6, h=5)))
        .with_panel(results_table(14).grid_pos(GridPos(x=0, y=9, w=24, h=14)))
        .with_row(dashboard.Row("Bandwidth by kernel, threads, pages and stores"))
        .with_panel(_matrix(THREADS))
        .with_panel(_matrix(PAGES))
        .with_panel(_stores())
        .with_row(dashboard.Row("Latency"))
        .with_panel(_latency())
        .with_panel(_loaded_latency())
        .with_row(dashboard.Row("Small blocks"))
        .with_panel(_blocks())
        .with_panel(_random_access())
        .with_row(dashboard.Row("History of all chosen workloads"))
        .with_panel(_rate_history())
        .with_panel(share_history().span(6).height(9).legend(no_legend()))
        .with_panel(peer_history().span(6))
        .with_panel(_time_history().span(6))
        .with_panel(spread_history().span(6))
        .with_row(dashboard.Row(f"${KERNEL}").repeat(KERNEL))
        .with_panel(
            beside(
                f"${KERNEL}: ours, the limit, the peer",
                BANDWIDTH,
                OF_KERNEL,
                "theoretical limit, what all memory channels together transfer at most",
            )
        )
        .with_panel(row_history(KERNEL, BANDWIDTH, OF_KERNEL))
    )


def _kernels() -> dashboard.QueryVariable:
    description = "Those of the chosen workloads whose figure is a bandwidth."
    return row_variable(KERNEL, RATES, ALL_WORKLOADS, description)


def _highest() -> bargauge.Panel:
    return highest(
        "Highest bandwidth by kernel",
        "The highest of the latest bandwidths of each kernel, over all working sets, numbers "
        "of threads, page sizes and stores: also of those that fit into the cache. Bytes are "
        "counted as STREAM does, 1 GB = 10⁹ bytes; the kernels are based on a variant of the "
        "STREAM benchmark.",
        BANDWIDTH,
        RATES,
        NO_RATES,
    )


def _of_limit() -> bargauge.Panel:
    return workload_shares(
        "The lowest of the latest results of all cases of a workload. Limit: the most that all "
        "memory channels together can transfer. Virtual machines and containers cannot read it, "
        "so the operator has to set it there.",
    )


def _access_time() -> stat.Panel:
    return least_and_most(
        "Access time",
        "The lowest and the highest of the latest times of a dependent access, over all "
        "working sets: near those of the first cache and of memory.",
        CHASE,
    )


def _matrix(tag: str) -> barchart.Panel:
    name = title("mem.read", tag)
    return matrix(
        f"Highest bandwidth by kernel and {name}",
        f"The highest of the latest bandwidths of each kernel, one bar a {name}: over all working "
        "sets, also those that fit into the cache.",
        BANDWIDTH,
        "workload",
        tag,
        latest('"value"', ("workload", tag), f"{RATES} AND {present(tag)}"),
    ).span(8)


def _stores() -> barchart.Panel:
    panel = matrix(
        "Highest bandwidth by kernel and store",
        "The rate of each kind of store that the program tried before it took the best one: "
        "plain, non-temporal (past the caches), and libc's memcpy or memset.",
        BANDWIDTH,
        "workload",
        "metric",
        latest('"value"', ("workload", "metric"), STORES),
    ).span(8)
    for store, name in STORE_NAMES.items():
        panel = panel.override_by_name(f"bytes_per_second_{store}", [prop("displayName", name)])
    return panel


def _latency() -> xychart.Panel:
    return curves(
        "Access time over the working set",
        "The time of an access that waits for the one before it (pointer_chase), over the size of "
        "what is accessed. Steps are where a cache ends. Both scales are logarithmic.",
        axis("mem.pointer_chase", SIZE),
        TIME_AXIS,
        tags("mem.pointer_chase"),
        CHASE,
    )


def _loaded_latency() -> xychart.Panel:
    return curves(
        "Access time under load",
        "The time of a dependent access of one thread, over the bandwidth that the other threads "
        "use at the same time; points are joined from the lowest to the highest intensity.",
        Axis("load_bytes_per_second", "bandwidth taken", BANDWIDTH),
        Axis("value", "access time", SECONDS),
        tags("mem.loaded_latency"),
        LOADED,
        INTENSITY,
    )


def _blocks() -> xychart.Panel:
    return curves(
        "Bandwidth over the size of blocks",
        "The bandwidth of kernels that work block by block, one after the other or in random "
        "order. Both scales are logarithmic.",
        axis("mem.read_write", BLOCK),
        Axis("value", "bandwidth", BANDWIDTH, 10),
        ("workload", *tags("mem.read_write", "mem.memset_write")),
        BLOCKS,
    )


def _random_access() -> xychart.Panel:
    return curves(
        "Time of a small random access",
        "The time of one of many accesses that do not wait for one another (random_access), over "
        "their size: as measured, and less the time of the loop without the access (net).",
        axis("mem.random_access", BLOCK),
        TIME_AXIS,
        ("metric", *tags("mem.random_access")),
        RANDOM,
    )


def _rate_history() -> timeseries.Panel:
    return wide_history(
        "Bandwidth",
        "The bandwidth of every result in the chosen time.",
        BANDWIDTH,
        f'SELECT "value" {results(RATES)} {GROUPED}',
    )


def _time_history() -> timeseries.Panel:
    return narrow_history(
        "Access times",
        "The time of an access of every result in the chosen time.",
        SECONDS,
        f'SELECT "value" {results(TIMES)} {GROUPED}',
    )
