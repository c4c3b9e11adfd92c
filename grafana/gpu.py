"""The GPU: rates by type, bandwidths, latencies, clock, power and temperature meanwhile, by the
second."""

from grafana_foundation_sdk.builders import barchart, bargauge, dashboard, stat, timeseries, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.charts import (
    Axis,
    beside,
    curves,
    figures_history,
    highest,
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
    differs,
    equals,
    latest,
    matches,
    one_of,
    present,
    series,
)
from grafana.looks import (
    A_CYCLE,
    BANDWIDTH,
    CLOCK,
    POWER,
    RATE,
    SECONDS,
    SHARE,
    TEMPERATURE,
    api_variable,
    board,
    change_marks,
    no_legend,
    result_variables,
    row_variable,
)
from grafana.overview import tile
from grafana.parameters import axis, tags
from grafana.tables import results_table
from hostbench.model.result import OWN_TOOL

GPUS = equals("subsystem", "gpu")
OURS = f"{GPUS} AND {equals('tool', OWN_TOOL)}"
FIGURES = f"{PRIMARY} AND {GPUS}"
RATES = f"{FIGURES} AND {equals('metric', 'operations_per_second')}"
BANDWIDTHS = f"{FIGURES} AND {equals('metric', 'bytes_per_second')}"
CHASE = f"{FIGURES} AND {equals('workload', 'gpu.pointer_chase')}"
LAUNCHES = f"{FIGURES} AND {equals('workload', 'gpu.launch_latency')}"
BETWEEN_HOST_AND_DEVICE = "^gpu[.](host_to_device|device_to_host|bidirectional)$"
TRANSFERS = f"{BANDWIDTHS} AND {matches('workload', BETWEEN_HOST_AND_DEVICE)}"
# The driver's own copies between devices are not our figures.
OF_NAMED = f"{BANDWIDTHS} AND {present('device')} AND {differs('path', 'driver')}"
# A repeated row shows workloads of one unit.
KERNEL, MOVER = "kernel", "mover"
OF_KERNEL = f"{RATES} AND {one_of(KERNEL, 'workload')}"
OF_MOVER = f"{BANDWIDTHS} AND {one_of(MOVER, 'workload')}"
ALL_WORKLOADS = "gpu[.].*"
NOTHING = "No results of GPUs in the chosen time."
LIMIT = (
    "limit at the highest clock: operations a cycle of all multiprocessors, or what memory and "
    "links carry"
)


def gpu() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-gpu",
        "hostbench: GPU",
        "Rates by type of operand, bandwidth of memory and links, latencies, and the card's "
        "clock, power and temperature.",
        "now-30d",
    )
    for one in result_variables(FIGURES, ALL_WORKLOADS):
        found = found.with_variable(one)
    return (
        found.annotations(change_marks(GPUS))
        .with_variable(_rows(KERNEL, RATES, "operations a second"))
        .with_variable(_rows(MOVER, BANDWIDTHS, "bytes a second"))
        .with_variable(api_variable())
        .with_panel(_highest())
        .with_panel(_of_limit())
        .with_panel(_launch_time())
        .with_panel(peer_ratios().grid_pos(GridPos(x=18, y=4, w=6, h=5)))
        .with_panel(results_table(14).grid_pos(GridPos(x=0, y=9, w=24, h=14)))
        .with_row(dashboard.Row("Rates and bandwidths"))
        .with_panel(_by_type())
        .with_panel(_by_device())
        .with_panel(_transfers())
        .with_panel(_access_times())
        .with_row(dashboard.Row("What the card took for it"))
        .with_panel(_stat("Core clock", CLOCK, "core_clock_hertz", CORE_CLOCK))
        .with_panel(_stat("Power", POWER, "power_watts", WATTS))
        .with_panel(_stat("Temperature", TEMPERATURE, "temperature_celsius", HOTTEST))
        .with_panel(_stat("Throttled", SHARE, "throttled_ratio", THROTTLED))
        .with_panel(_stat("Operations a cycle", A_CYCLE, "operations_per_cycle", PER_CYCLE))
        .with_panel(_stat("Spread of the windows", SHARE, "rate_cv", WINDOWS))
        .with_row(dashboard.Row("Second by second"))
        .with_panel(seconds("Rate, second by second", RATE, {"operations_per_second": ""}))
        .with_panel(seconds("Bandwidth, second by second", BANDWIDTH, {"bytes_per_second": ""}))
        .with_panel(seconds("Clock, second by second", CLOCK, {"nvml_clock_hertz": ""}))
        .with_panel(seconds("Power, second by second", POWER, {"power_watts": ""}))
        .with_panel(
            seconds("Temperature, second by second", TEMPERATURE, {"temperature_celsius": ""})
        )
        .with_row(dashboard.Row("History of all chosen workloads"))
        .with_panel(figures_history("Rates", RATE, RATES))
        .with_panel(narrow_figures("Bandwidths", BANDWIDTH, BANDWIDTHS))
        .with_panel(narrow_figures("Access times", SECONDS, CHASE))
        .with_panel(narrow_figures("Launch times", SECONDS, LAUNCHES))
        .with_panel(share_history(FIGURES).span(8).height(9).legend(no_legend()))
        .with_panel(peer_history())
        .with_panel(spread_history())
        .with_row(dashboard.Row(f"${KERNEL}").repeat(KERNEL))
        .with_panel(beside(f"${KERNEL}: ours, the limit, the peer", RATE, OF_KERNEL, LIMIT))
        .with_panel(row_history(KERNEL, RATE, OF_KERNEL))
        .with_row(dashboard.Row(f"${MOVER}").repeat(MOVER))
        .with_panel(beside(f"${MOVER}: ours, the limit, the peer", BANDWIDTH, OF_MOVER, LIMIT))
        .with_panel(row_history(MOVER, BANDWIDTH, OF_MOVER))
    )


CORE_CLOCK = (
    "The clock that the multiprocessors had while the kernels ran, by the device's own counters, "
    "else as NVML reports it."
)
WATTS = "Mean power of the card in a trial. Only NVIDIA's devices report it."
HOTTEST = "The highest temperature of the card in a trial."
THROTTLED = (
    "The share of a trial in which the power limit, the temperature or the supply held the clock "
    "down."
)
PER_CYCLE = (
    "Operations of the whole device in a cycle of its actual clock, which throttling does not "
    "change. The limit is from the table of multiprocessors."
)
WINDOWS = (
    "Standard deviation over mean of a trial's windows, each at least 100 ms by the device's clock."
)


def _rows(name: str, condition: str, unit: str) -> dashboard.QueryVariable:
    description = f"Those of the chosen workloads whose figure is {unit}."
    return row_variable(name, condition, ALL_WORKLOADS, description)


def _highest() -> bargauge.Panel:
    return highest(
        "Highest rate by workload",
        "The highest of the latest rates of each workload, over all types and devices. A "
        "multiplication with an addition counts as two operations.",
        RATE,
        RATES,
        NOTHING,
    )


def _of_limit() -> bargauge.Panel:
    return workload_shares(
        "The lowest of the latest results of all cases of a workload. Limit: what the device "
        "could do at its highest clock. Devices that no table knows have none.",
        of=FIGURES,
    )


def _launch_time() -> stat.Panel:
    inner = latest('"value"', ("mode",), LAUNCHES)
    return (
        tile(
            "Launch",
            "The shortest of the latest times of launching an empty kernel.",
            6,
            "no launches",
        )
        .unit(SECONDS)
        .decimals(2)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(f'SELECT min("value") FROM ({inner}) GROUP BY "mode"', "$tag_mode"))
    )


def _by_type() -> barchart.Panel:
    return matrix(
        "Highest rate by workload and type",
        "The highest of the latest rates of each workload, one bar a type of operand. Tensor cores "
        "and vector units stand side by side here, and neither is a GEMM.",
        RATE,
        "workload",
        "dtype",
        latest('"value"', ("workload", "dtype"), f"{RATES} AND {present('dtype')}"),
    )


def _by_device() -> barchart.Panel:
    return matrix(
        "Highest bandwidth by workload and device",
        "The highest of the latest bandwidths of each workload, one bar for each device number. "
        "The driver's own copies from device to device are left out.",
        BANDWIDTH,
        "workload",
        "device",
        latest('"value"', ("workload", "device"), OF_NAMED),
    ).x_tick_label_rotation(-20)


def _transfers() -> barchart.Panel:
    return matrix(
        "Highest bandwidth between host and device",
        "The highest of the latest bandwidths by direction and kind of host memory. The device "
        "copies pinned pages itself; the driver first copies pageable ones. For both directions "
        "at once, the bytes of both count.",
        BANDWIDTH,
        "workload",
        "host_memory",
        latest('"value"', ("workload", "host_memory"), TRANSFERS),
    ).height(12)


def _access_times() -> xychart.Panel:
    return curves(
        "Access time over the working set",
        "The time of an access that waits for the one before it (pointer_chase), over the size of "
        "what is accessed. Steps are where a cache ends. Both scales are logarithmic.",
        axis("gpu.pointer_chase", "size_bytes"),
        Axis("value", "access time", SECONDS, 10),
        ("device", *tags("gpu.pointer_chase")),
        CHASE,
    )


def _stat(title: str, unit: str, metric: str, description: str) -> timeseries.Panel:
    condition = f"{OURS} AND {equals('metric', metric)}"
    return narrow_figures(title, unit, condition, description).axis_soft_min(0)
