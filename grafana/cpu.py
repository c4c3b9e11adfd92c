"""CPU: rates by type, instruction set and threads, beside limit and peer, and their history."""

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    dashboard,
    stat,
    timeseries,
)
from grafana_foundation_sdk.builders import (
    common as common_builders,
)
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.influxql import (
    PRIMARY,
    TABLE,
    Query,
    equals,
    latest,
    over_latest,
    present,
    results,
    series,
    source,
)
from grafana.looks import (
    CLOCK,
    CPU,
    LIMIT_COLOUR,
    OURS_BESIDE_PEER_COLOUR,
    OURS_COLOUR,
    PEER_COLOUR,
    PEER_RATIO,
    RATE,
    RATIO,
    SHARE,
    api_variable,
    board,
    bottom_legend,
    colour,
    no_legend,
    organised,
    prop,
    result_variables,
    side_legend,
    thresholds,
    transformation,
)
from grafana.overview import bars, shares_of_limit, tile
from grafana.tables import results_table

RATES = f"{PRIMARY} AND {equals('metric', 'operations_per_second')}"
CLOCKS = equals("metric", "clock_hertz")
PEERS = equals("role", "peer")
NAME = "$tag_workload $tag_label ($tag_host)"
GROUPED = 'GROUP BY "host", "workload", "label", "case"'
NO_RATES = "No rates in the chosen time."


def cpu() -> dashboard.Dashboard:
    """The board."""
    found = board(
        CPU,
        "hostbench: CPU",
        "What the CPUs do by type, instruction set and threads: limit and peer beside ours.",
        "now-30d",
    )
    # The clock has charts of its own: its figure is no rate.
    for variable in result_variables(RATES, "cpu[.].*"):
        found = found.with_variable(variable)
    return (
        found.with_variable(api_variable())
        .with_panel(_highest())
        .with_panel(_of_limit())
        .with_panel(_clock())
        .with_panel(_peers())
        .with_panel(results_table(14).grid_pos(GridPos(x=0, y=9, w=24, h=14)))
        .with_row(dashboard.Row("Rates by type, instruction set and threads"))
        .with_panel(_matrix("isa", "instruction set"))
        .with_panel(_matrix("threads", "number of threads"))
        .with_row(dashboard.Row("History of all chosen workloads"))
        .with_panel(_share_history())
        .with_panel(_peer_history())
        .with_panel(_clock_history())
        .with_panel(_spread_history())
        .with_row(dashboard.Row("$workload").repeat("workload"))
        .with_panel(_beside())
        .with_panel(_rate_history())
    )


def _highest() -> bargauge.Panel:
    inner = latest('"value"', ("dtype",), f"{RATES} AND {present('dtype')}")
    return (
        bars(
            "Highest rate by type",
            "The highest of the latest rates of each data type, over all chosen workloads, "
            "instruction sets and numbers of threads.",
            10,
            9,
        )
        .unit(RATE)
        .decimals(1)
        .min(0)
        .thresholds(thresholds(((None, OURS_COLOUR),)))
        .no_value(NO_RATES)
        .with_target(series(f'SELECT max("value") FROM ({inner}) GROUP BY "dtype"', "$tag_dtype"))
    )


def _of_limit() -> bargauge.Panel:
    text = over_latest('median("efficiency")', '"efficiency"', ("workload",))
    return shares_of_limit(
        "Share of the limit, by workload",
        "The median over the latest results of all cases of a workload. Limit: clock measured in "
        "the same trial x operations a cycle of the micro-architecture x cores.",
        8,
        9,
    ).with_target(series(text, "$tag_workload"))


def _clock() -> stat.Panel:
    inner = latest('"value"', ("workload",), CLOCKS)
    return (
        tile(
            "Core clock",
            "The highest and the lowest core clock of the latest results, measured under the "
            "kernels themselves.",
            6,
        )
        .unit(CLOCK)
        .decimals(2)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(f'SELECT max("value") FROM ({inner})', "highest"))
        .with_target(series(f'SELECT min("value") FROM ({inner})', "lowest", "B"))
    )


def _peers() -> stat.Panel:
    inner = latest('"ratio"', ("tool",), PEERS)
    return (
        tile(
            "Ours / peer",
            "Our rate over that of each trusted tool, at the median of all cases measured beside "
            "it. Near 1 is what it should be.",
            6,
        )
        .grid_pos(GridPos(x=18, y=4, w=6, h=5))
        .unit(RATIO)
        .decimals(3)
        .thresholds(thresholds(PEER_RATIO))
        .color_mode(common.BigValueColorMode.VALUE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .no_value("no peer")
        .with_target(series(f'SELECT median("ratio") FROM ({inner}) GROUP BY "tool"', "$tag_tool"))
    )


def _log_bars(title: str, description: str) -> barchart.Panel:
    return (
        barchart.Panel()
        .title(title)
        .description(description)
        .datasource(source())
        .span(12)
        .height(10)
        .unit(RATE)
        .legend(bottom_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
        .scale_distribution(
            common_builders.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10)
        )
        .fill_opacity(80)
        .show_value(common.VisibilityMode.NEVER)
    )


def _matrix(tag: str, name: str) -> barchart.Panel:
    """The highest rate by one parameter, a bar for each type."""
    typed = f"{RATES} AND {present('dtype')} AND {present(tag)}"
    inner = latest('"value"', ("dtype", tag), typed)
    return (
        _log_bars(
            f"Highest rate by {name} and type",
            f"The highest of the latest rates for each {name}, one bar a data type. The scale is "
            "logarithmic: AMX on bf16 does a hundred times what scalar fp64 does.",
        )
        .x_field(f"{tag}\\dtype")
        .with_target(
            Query(f'SELECT max("value") AS "rate" FROM ({inner}) GROUP BY "{tag}", "dtype"')
        )
        .with_transformation(transformation("sortBy", fields={}, sort=[{"field": tag}]))
        .with_transformation(
            transformation("groupingToMatrix", columnField="dtype", rowField=tag, valueField="rate")
        )
        # A number of threads is no rate.
        .override_by_name(f"{tag}\\dtype", [prop("unit", "none")])
    )


def _beside() -> barchart.Panel:
    columns = {
        "label": "case",
        "value": "ours",
        "limit": "limit",
        "peer_ours": "ours, as the peer counts",
        "peer_value": "peer",
    }
    fields = ", ".join(f'"{name}"' for name in columns if name != "label")
    return (
        barchart.Panel()
        .title("$workload: ours, the limit, the peer")
        .description(
            "The latest figure of every case and its theoretical limit at the clock it had; and "
            "what the trusted tool measured in turn with it, beside our figure of the same kind: "
            "tools report the mean of a whole run, which a busy host lowers, and ours is that of "
            "undisturbed slices. Cases without a known limit or peer have no such bar."
        )
        .datasource(source())
        .span(12)
        .height(12)
        .unit(RATE)
        .legend(bottom_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
        .orientation(common.VizOrientation.VERTICAL)
        .axis_soft_min(0)
        .fill_opacity(80)
        .show_value(common.VisibilityMode.NEVER)
        .x_field("case")
        .x_tick_label_rotation(-45)
        .x_tick_label_max_length(22)
        .with_target(Query(latest(fields, ("label",), RATES), form=TABLE))
        .with_transformation(organised(columns, ("Time", "n", "case", "host")))
        .with_transformation(transformation("sortBy", fields={}, sort=[{"field": "case"}]))
        .override_by_name("ours", [colour(OURS_COLOUR)])
        .override_by_name("limit", [colour(LIMIT_COLOUR)])
        .override_by_name("ours, as the peer counts", [colour(OURS_BESIDE_PEER_COLOUR)])
        .override_by_name("peer", [colour(PEER_COLOUR)])
    )


def _history(
    title: str, description: str, unit: str, text: str, alias: str = NAME
) -> timeseries.Panel:
    """One line a case, one mark a job."""
    return (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(source())
        .unit(unit)
        .line_width(1)
        .point_size(6)
        .show_points(common.VisibilityMode.ALWAYS)
        .span_nulls(True)
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
        .no_value("No results in the chosen time.")
        .with_target(series(text, alias))
    )


def _narrow_history(title: str, description: str, unit: str, text: str) -> timeseries.Panel:
    """Three stand side by side; the legend above them tells the lines."""
    return (
        _history(title, f"{description} Hover to see which line is which.", unit, text)
        .span(8)
        .height(9)
        .legend(no_legend())
    )


def _share_history() -> timeseries.Panel:
    return (
        _history(
            "Share of the limit",
            "Every result in the chosen time over its own limit: what a change of host, kernel "
            "or load did, whatever the type.",
            SHARE,
            f'SELECT "efficiency" {results()} {GROUPED}',
        )
        .span(24)
        .height(11)
        .legend(side_legend("lastNotNull", "min"))
        .axis_soft_max(1)
    )


def _peer_history() -> timeseries.Panel:
    return _narrow_history(
        "Ours over the peer's",
        "Our figure over that of the trusted tool measured in turn with it. When both fall, this "
        "line stays: then the host has changed, not the benchmark.",
        RATIO,
        f'SELECT "peer_ratio" {results()} {GROUPED}',
    )


def _clock_history() -> timeseries.Panel:
    return _narrow_history(
        "Core clock",
        "The core clock measured under each kernel: vector instructions may lower it.",
        CLOCK,
        f'SELECT "value" {results(CLOCKS)} {GROUPED}',
    )


def _spread_history() -> timeseries.Panel:
    return _narrow_history(
        "Spread",
        "Half the interval that holds the true median, over the median. 2 % is the target; a host "
        "that others use has more.",
        SHARE,
        f'SELECT "spread" {results()} {GROUPED}',
    ).axis_soft_min(0)


def _rate_history() -> timeseries.Panel:
    return (
        _history(
            "$workload: history",
            "The figure of every job in the chosen time.",
            RATE,
            f'SELECT "value" {results(RATES)} {GROUPED}',
            "$tag_label ($tag_host)",
        )
        .span(12)
        .height(12)
        .legend(bottom_legend())
        .axis_soft_min(0)
    )
