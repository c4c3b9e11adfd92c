"""The network: throughput by block and streams, loss, round trips, both ends, by the second."""

from grafana_foundation_sdk.builders import barchart, bargauge, dashboard, stat, timeseries, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.charts import (
    PERCENTILES,
    SAMPLED_LATENCIES,
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
    SOUND,
    equals,
    latest,
    matches,
    one_of,
    present,
    series,
)
from grafana.looks import (
    BANDWIDTH,
    NUMBER,
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
from grafana.overview import tile
from grafana.parameters import axis, other_fields, tags
from grafana.tables import results_table
from hostbench.model.result import OWN_TOOL

NETWORKS = equals("subsystem", "net")
OURS = f"{SOUND} AND {NETWORKS} AND {equals('tool', OWN_TOOL)}"
# For a case with a set rate, that rate determines its throughput and its share of the limit.
UNPACED = equals("paced", "no")
AT_ANY_RATE = f"{PRIMARY} AND {SOUND} AND {NETWORKS} AND {equals('metric', 'bytes_per_second')}"
THROUGHPUTS = f"{AT_ANY_RATE} AND {UNPACED}"
SHARES = f"{PRIMARY} AND {UNPACED}"
TRIPS = f"{PRIMARY} AND {NETWORKS} AND {equals('metric', 'round_trip_s')}"
CONNECTIONS = f"{PRIMARY} AND {NETWORKS} AND {equals('metric', 'operations_per_second')}"
LOSSES = f"{OURS} AND {equals('metric', 'lost_ratio')}"
DATAGRAMS = f"{AT_ANY_RATE} AND {equals('workload', 'net.udp_stream')}"
LATENCIES = (
    f"{OURS} AND {matches('workload', '^net[.](tcp|udp)_rr$')} "
    f"AND {matches('metric', '^latency_p(50|90|99|99_9)_s$')}"
)
QUIET = f'{LATENCIES} AND "load_streams" = 0'
ONE_AT_A_TIME = f'{QUIET} AND "streams" = 1'
# A repeated row shows workloads of one unit.
STREAM, TRIP = "stream", "trip"
OF_STREAM = f"{THROUGHPUTS} AND {one_of(STREAM, 'workload')}"
OF_TRIP = f"{TRIPS} AND {one_of(TRIP, 'workload')}"
ALL_WORKLOADS = "net[.].*"
NOTHING = "No results of networks in the chosen time."

BLOCK, STREAMS = "block_bytes", "streams"
OFFERED_AXIS = Axis("offered_bytes_per_second", "offered", BANDWIDTH)
LIMIT = "limit, what the link carries of payload at its MTU, or the operator set"


def net() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-net",
        "hostbench: network",
        "Throughput by block, streams and path, loss over the offered rate, round trips with and "
        "without load, the CPU time of both ends, and the same second by second.",
        "now-30d",
    )
    for one in result_variables(f"{PRIMARY} AND {NETWORKS}", ALL_WORKLOADS):
        found = found.with_variable(one)
    return (
        found.annotations(change_marks(NETWORKS))
        .with_variable(_rows(STREAM, "bytes_per_second", "bytes a second"))
        .with_variable(_rows(TRIP, "round_trip_s", "a time of a round trip"))
        .with_variable(api_variable())
        .with_panel(_highest())
        .with_panel(_of_limit())
        .with_panel(_round_trip())
        .with_panel(peer_ratios().grid_pos(GridPos(x=18, y=4, w=6, h=5)))
        .with_panel(results_table(14).grid_pos(GridPos(x=0, y=9, w=24, h=14)))
        .with_row(dashboard.Row("Throughput"))
        .with_panel(_over(BLOCK))
        .with_panel(_over(STREAMS))
        .with_panel(_by("target", "target", BY_TARGET))
        .with_panel(_by("direction", "direction", BY_DIRECTION))
        .with_row(dashboard.Row("Loss of datagrams"))
        .with_panel(_over_offered("Loss", "lost", SHARE, LOSSES, LOSS))
        .with_panel(_over_offered("Received", "received", BANDWIDTH, DATAGRAMS, RECEIVED))
        .with_row(dashboard.Row("Round trips"))
        .with_panel(_one_at_a_time())
        .with_panel(_trips_over_blocks())
        .with_panel(_under_load())
        .with_panel(_connections())
        .with_row(dashboard.Row("What it cost, and what TCP did"))
        .with_panel(_stat("CPU time, near end", SECONDS, "cpu_seconds_per_gigabyte", NEAR))
        .with_panel(_stat("CPU time, far end", SECONDS, "far_cpu_seconds_per_gigabyte", FAR))
        .with_panel(_stat("Retransmits", NUMBER, "retransmits", RETRANSMITS))
        .with_row(dashboard.Row("Second by second"))
        .with_panel(seconds("Throughput, second by second", BANDWIDTH, {"bytes_per_second": ""}))
        .with_panel(seconds("Operations, second by second", RATE, {"operations_per_second": ""}))
        .with_panel(seconds("Round trips, second by second", SECONDS, SAMPLED_LATENCIES))
        .with_row(dashboard.Row("History of all chosen workloads"))
        .with_panel(figures_history("Throughput", BANDWIDTH, THROUGHPUTS))
        .with_panel(narrow_figures("Round trips", SECONDS, TRIPS))
        .with_panel(_losses())
        .with_panel(narrow_figures("Connections", RATE, CONNECTIONS))
        .with_panel(share_history(SHARES).span(8).height(9).legend(no_legend()))
        .with_panel(peer_history())
        .with_panel(spread_history())
        .with_row(dashboard.Row(f"${STREAM}").repeat(STREAM))
        .with_panel(beside(f"${STREAM}: ours, the limit, the peer", BANDWIDTH, OF_STREAM, LIMIT))
        .with_panel(row_history(STREAM, BANDWIDTH, OF_STREAM))
        .with_row(dashboard.Row(f"${TRIP}").repeat(TRIP))
        .with_panel(beside(f"${TRIP}: ours and the peer", SECONDS, OF_TRIP, NO_LIMIT))
        .with_panel(row_history(TRIP, SECONDS, OF_TRIP))
    )


NO_LIMIT = "limit, which a round trip has none of"
BY_TARGET = (
    "one bar a target: the loopback of a host, which is its kernel and its memory, or the far host."
)
BY_DIRECTION = "one bar a direction as seen from the near end; both counts the two together."
LOSS = (
    "The share of sent datagrams that were never received, over the rate that the sender gave to "
    "its kernel."
)
RECEIVED = (
    "The part that the receiver got: where this line bends, the path or the receiver reaches its "
    "limit."
)
NEAR = "CPU time of the program that ran the trial, for 10⁹ bytes of payload."
FAR = "The same of the process at the far end, on this host or on another one."
RETRANSMITS = "Segments that TCP sent again in a trial. On the loopback there should be none."


def _rows(name: str, metric: str, unit: str) -> dashboard.QueryVariable:
    condition = f"{PRIMARY} AND {SOUND} AND {NETWORKS} AND {equals('metric', metric)}"
    description = f"Those of the chosen workloads whose figure is {unit}."
    return row_variable(name, condition, ALL_WORKLOADS, description)


def _highest() -> bargauge.Panel:
    return highest(
        "Highest throughput by workload",
        "The highest of the latest throughputs, payload at the receiver, over all targets, "
        "blocks, streams and ways of sending. 1 GB/s is 8 Gbit/s.",
        BANDWIDTH,
        THROUGHPUTS,
        NOTHING,
    )


def _of_limit() -> bargauge.Panel:
    return workload_shares(
        "The lowest of the latest results of all cases of a workload but those that were given "
        "a rate. Limit: what a physical link carries of payload, or what the operator set. The "
        "loopback and virtual interfaces have none.",
        of=SHARES,
    )


def _losses() -> timeseries.Panel:
    # For zeros only, Grafana makes an axis up to 10,000 %.
    return narrow_figures("Lost datagrams", SHARE, LOSSES).axis_soft_min(0).axis_soft_max(0.01)


def _round_trip() -> stat.Panel:
    inner = latest('"value"', ("workload", "target"), TRIPS)
    text = f'SELECT min("value") FROM ({inner}) GROUP BY "workload", "target"'
    return (
        tile(
            "Round trip",
            "The shortest of the latest medians, there and back, of each protocol and target.",
            6,
        )
        .unit(SECONDS)
        .decimals(1)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(text, "$tag_workload $tag_target"))
    )


def _over(param: str) -> xychart.Panel:
    """Return a line for each combination of the other tags."""
    x = axis("net.tcp_stream", param)
    return curves(
        f"Throughput over the {x.name}",
        f"The latest throughput, payload at the receiver, over the {x.name}, a line for everything "
        "else that distinguishes cases. Both scales are logarithmic.",
        x,
        Axis("value", "throughput", BANDWIDTH, 10),
        ("workload", "far_host", *tags("net.tcp_stream", "net.udp_stream")),
        THROUGHPUTS,
        fields=other_fields("net.tcp_stream", param),
    )


def _by(tag: str, name: str, which: str) -> barchart.Panel:
    return matrix(
        f"Highest throughput by workload and {name}",
        f"The highest of the latest throughputs, {which}",
        BANDWIDTH,
        "workload",
        tag,
        latest('"value"', ("workload", tag), f"{THROUGHPUTS} AND {present(tag)}"),
    )


def _over_offered(
    what: str, name: str, unit: str, condition: str, description: str
) -> xychart.Panel:
    return curves(
        f"{what} over the offered rate",
        description,
        OFFERED_AXIS,
        Axis("value", name, unit),
        ("target", "far_host", "direction", "ip_version", "udp_path"),
        condition,
        fields=(BLOCK, STREAMS),
    )


def _one_at_a_time() -> barchart.Panel:
    panel = matrix(
        "Round trip of one stream",
        "Percentiles of the time there and back with one stream and no load: of each workload the "
        "highest of its latest results, over all blocks, targets and ways of waiting.",
        SECONDS,
        "workload",
        "metric",
        latest('"value"', ("workload", "metric"), ONE_AT_A_TIME),
    ).height(12)
    for metric, name in PERCENTILES.items():
        panel = panel.override_by_name(metric, [prop("displayName", name)])
    return panel


def _trips_over_blocks() -> xychart.Panel:
    return curves(
        "Round trip over the block size",
        "Percentiles of the time there and back without load over the block size, both ways of "
        "the same size. Both scales are logarithmic.",
        axis("net.tcp_rr", BLOCK),
        Axis("value", "round trip", SECONDS, 10),
        ("metric", "workload", "target", "far_host", "wait"),
        QUIET,
        fields=(STREAMS,),
    )


def _under_load() -> xychart.Panel:
    return curves(
        "Round trip under load",
        "Percentiles of the time there and back over the bandwidth of bulk streams between the "
        "same ends: how long packets wait in queues. Points are joined by the number of those "
        "streams.",
        Axis("load_bytes_per_second", "bandwidth taken", BANDWIDTH),
        Axis("value", "round trip", SECONDS, 10),
        ("metric", "workload", "target", "far_host", "wait"),
        f'{LATENCIES} AND "load_streams" > 0',
        order="load_streams",
        fields=(BLOCK, STREAMS),
    )


def _connections() -> xychart.Panel:
    return curves(
        "Connections over the number of streams",
        "The latest rates of connect, request, answer and close, over the number of streams that "
        "do so at the same time.",
        axis("net.tcp_crr", STREAMS),
        Axis("value", "connections a second", RATE),
        ("workload", "target", "far_host"),
        CONNECTIONS,
        fields=(BLOCK,),
    )


def _stat(title: str, unit: str, metric: str, description: str) -> timeseries.Panel:
    condition = f"{OURS} AND {equals('metric', metric)}"
    return narrow_figures(title, unit, condition, description).axis_soft_min(0)
