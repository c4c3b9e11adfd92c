"""Charts that the boards of several subsystems share: bars beside limit and peer, matrices,
history, curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import barchart, bargauge, stat, timeseries, xychart
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models import xychart as xy

from grafana.influxql import (
    CHOSEN,
    DECIDED,
    PRIMARY,
    TABLE,
    Query,
    equals,
    latest,
    one_of,
    over_latest,
    results,
    samples,
    series,
    source,
)
from grafana.looks import (
    CLOCK,
    LIMIT_COLOUR,
    OURS_BESIDE_PEER_COLOUR,
    OURS_COLOUR,
    PEER_COLOUR,
    PEER_RATIO,
    RATIO,
    SECONDS,
    SHARE,
    bottom_legend,
    colour,
    corner,
    matrix_of,
    no_legend,
    organised,
    prop,
    sorted_legend,
    thresholds,
    transformation,
)
from grafana.overview import bars, shares_of_limit, tile

PEERS = equals("role", "peer")
NAME = "$tag_workload $tag_label ($tag_host)"
SAMPLED = ("host", "workload", "label")
EVERY_RESULT = "Of every result in the chosen time."
NO_RESULTS = "No results in the chosen time."
PERCENTILES = {
    "latency_p50_s": "50 %",
    "latency_p90_s": "90 %",
    "latency_p99_s": "99 %",
    "latency_p99_9_s": "99.9 %",
}
SAMPLED_LATENCIES = {"latency_p50_s": ": 50 %", "latency_p99_s": ": 99 %"}
GROUPED = 'GROUP BY "host", "workload", "label", "case"'
# The height of the names below bars; with less, they would cover one another.
LINE_PIXELS = 16
# Without a version, Grafana reads the options of an xy chart as those of before 11.1.
CURVE_VERSION = "11.1.0"


def _bars(title: str, description: str, unit: str) -> barchart.Panel:
    return (
        barchart.Panel()
        .title(title)
        .description(description)
        .datasource(source())
        .span(12)
        .unit(unit)
        .legend(bottom_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
        .fill_opacity(80)
        .show_value(common.VisibilityMode.NEVER)
    )


def matrix(
    title: str, description: str, unit: str, row: str, column: str, inner: str
) -> barchart.Panel:
    """Return a chart of the highest value of a query by two tags: a group of bars for each `row`, a
    bar for each `column`."""
    panel = (
        _bars(title, description, unit)
        .height(10)
        .x_field(corner(row, column))
        .with_target(
            Query(f'SELECT max("value") AS "rate" FROM ({inner}) GROUP BY "{row}", "{column}"')
        )
    )
    # The order of the bars determines their colours, so a neighbouring chart has the same.
    for step in matrix_of(row, column, "rate"):
        panel = panel.with_transformation(step)
    # A number of threads is not a rate.
    return panel.override_by_name(corner(row, column), [prop("unit", "none")])


def beside(title: str, unit: str, condition: str, limit: str) -> barchart.Panel:
    """Return bars of the latest results that meet a condition, beside limit and peer. `limit`
    describes the limit."""
    columns = {
        "label": "case",
        "value": "ours",
        "limit": "limit",
        "peer_ours": "ours, as the peer counts",
        "peer_value": "peer",
    }
    fields = ", ".join(f'"{name}"' for name in columns if name != "label")
    description = (
        f"The latest figure of every case and its {limit}; and what the trusted tool measured in "
        "turn with it, beside our figure of the same kind: tools report the mean of a whole run, "
        "which a busy host lowers, and ours is that of undisturbed slices. Cases without a known "
        "limit or peer have no such bar. The bars do not name the host: choose one."
    )
    return (
        _bars(title, description, unit)
        .height(12)
        .orientation(common.VizOrientation.VERTICAL)
        .axis_soft_min(0)
        .x_field("case")
        # The names of cases differ at their ends.
        .x_tick_label_rotation(-60)
        .x_tick_label_max_length(32)
        .x_tick_label_spacing(LINE_PIXELS)
        .with_target(Query(latest(fields, ("label",), condition), form=TABLE))
        .with_transformation(organised(columns, ("Time", "n", "case", "host")))
        .with_transformation(transformation("sortBy", fields={}, sort=[{"field": "case"}]))
        .override_by_name("ours", [colour(OURS_COLOUR)])
        .override_by_name("limit", [colour(LIMIT_COLOUR)])
        .override_by_name("ours, as the peer counts", [colour(OURS_BESIDE_PEER_COLOUR)])
        .override_by_name("peer", [colour(PEER_COLOUR)])
    )


def history(
    title: str, description: str, unit: str, text: str, alias: str = NAME
) -> timeseries.Panel:
    """Return a chart with one line for each case and one mark for each job."""
    panel = (
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
        .no_value(NO_RESULTS)
        .with_target(series(text, alias))
    )
    # By default, Grafana shows so few decimals of a clock that neighbouring axis labels are equal.
    return panel.decimals(3) if unit == CLOCK else panel


def narrow_history(
    title: str, description: str, unit: str, text: str, alias: str = NAME
) -> timeseries.Panel:
    """Return a third of a row; the legend of the wide chart above names the lines."""
    return (
        history(title, f"{description} Hover to see which line is which.", unit, text, alias)
        .span(8)
        .height(9)
        .legend(no_legend())
    )


def wide_history(title: str, description: str, unit: str, text: str) -> timeseries.Panel:
    """Return a chart of full width, with a legend that also names the lines of the charts below
    it."""
    return history(title, description, unit, text).span(24).height(13).legend(sorted_legend())


def seconds(title: str, unit: str, metrics: Mapping[str, str]) -> timeseries.Panel:
    """Return the samples of one or two metrics; `metrics` has what to add to the names of each
    one's lines."""
    (first, name), *more = metrics.items()
    panel = narrow_history(
        title,
        "The samples of all trials in the chosen time, one a second; for longer ranges their "
        "means. InfluxDB keeps them for 30 days. Live run shows those of one job.",
        unit,
        samples(first, SAMPLED, CHOSEN),
        f"{NAME}{name}",
    )
    panel = panel.span_nulls(False).no_value("No samples in the chosen time.")
    for metric, name in more:
        panel = panel.with_target(series(samples(metric, SAMPLED, CHOSEN), f"{NAME}{name}", "B"))
    return panel


def figures_history(title: str, unit: str, condition: str) -> timeseries.Panel:
    """Return every result that meets a condition, at full width."""
    return wide_history(title, EVERY_RESULT, unit, _values(condition))


def narrow_figures(
    title: str, unit: str, condition: str, description: str = EVERY_RESULT
) -> timeseries.Panel:
    """Return the same as a third of a row."""
    return narrow_history(title, description, unit, _values(condition))


def row_history(row: str, unit: str, condition: str) -> timeseries.Panel:
    """Return the same in a row that is repeated for the values of a variable, with what a baseline
    expects of headline figures."""
    name = "$tag_label ($tag_host)"
    band = f'SELECT "expected", "usual" {DECIDED} AND {one_of(row, "workload")} {GROUPED}'
    return (
        history(
            f"${row}: history",
            "The figure of every job in the chosen time. Where the orchestrator has a baseline of "
            "the model, grey lines stand beside the headline figures: dotted what is usual, dashed "
            "the least of a sound host, of times the most.",
            unit,
            _values(condition),
            name,
        )
        .with_target(series(band, f"{name}: $col", "B"))
        .override_by_regexp("/: usual$/", _grey_line("dot", 0, 8))
        .override_by_regexp("/: expected$/", _grey_line("dash", 8, 6))
        .span(12)
        .height(12)
        .legend(bottom_legend())
        .axis_soft_min(0)
    )


def _grey_line(fill: str, *dash: int) -> list[dashboard.DynamicConfigValue]:
    """Return the options of a line that is not a figure; hovering shows its name."""
    return [
        colour(LIMIT_COLOUR),
        prop("custom.lineStyle", {"fill": fill, "dash": list(dash)}),
        prop("custom.showPoints", "never"),
        prop("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False}),
    ]


def _values(condition: str) -> str:
    return f'SELECT "value" {results(condition)} {GROUPED}'


def peer_ratios() -> stat.Panel:
    """Return our figures over those of each trusted tool."""
    inner = latest('"ratio"', ("tool",), PEERS)
    return (
        tile(
            "Ours / peer",
            "Our figure divided by that of each trusted tool: the median of all cases that the "
            "tool was measured with. It should be near 1.",
            6,
            "no peer",
        )
        .unit(RATIO)
        .decimals(3)
        .thresholds(thresholds(PEER_RATIO))
        .color_mode(common.BigValueColorMode.VALUE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(f'SELECT median("ratio") FROM ({inner}) GROUP BY "tool"', "$tag_tool"))
    )


def highest(
    title: str, description: str, unit: str, condition: str, nothing: str, tag: str = "workload"
) -> bargauge.Panel:
    """Return a bar for each workload, or for each value of another tag: the highest of its latest
    figures. `nothing`: the text without any."""
    inner = latest('"value"', (tag,), condition)
    text = f'SELECT max("value") FROM ({inner}) GROUP BY "{tag}"'
    return (
        bars(title, description, 10, 9, nothing)
        .unit(unit)
        .decimals(1)
        .min(0)
        .thresholds(thresholds(((None, OURS_COLOUR),)))
        .with_target(series(text, f"$tag_{tag}"))
    )


def least_and_most(title: str, description: str, condition: str) -> stat.Panel:
    """Return the lowest and the highest of the latest times."""
    inner = latest('"value"', ("workload",), condition)
    return (
        tile(title, description, 6)
        .unit(SECONDS)
        .decimals(1)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(f'SELECT min("value") FROM ({inner})', "lowest"))
        .with_target(series(f'SELECT max("value") FROM ({inner})', "highest", "B"))
    )


def workload_shares(description: str, of: str = PRIMARY) -> bargauge.Panel:
    """Return a bar for each workload: the lowest share of the limit among its latest results. So if
    the bar is green, all of them are. `of` selects the results."""
    text = over_latest('min("efficiency")', '"efficiency"', ("workload",), of=of)
    panel = shares_of_limit("Lowest share of the limit, by workload", description, 8, 9)
    return panel.with_target(series(text, "$tag_workload"))


def share_history(of: str = PRIMARY) -> timeseries.Panel:
    """Return every result over its own limit. `of` selects the results."""
    panel = wide_history(
        "Share of the limit",
        "Every result in the chosen time as a share of its own limit: the effect of a change of "
        "host, kernel or load on all workloads.",
        SHARE,
        f'SELECT "efficiency" {results(of)} {GROUPED}',
    )
    return panel.axis_soft_max(1).no_value("No result with a known limit.")


def peer_history() -> timeseries.Panel:
    """Return our figures over the peers'."""
    return narrow_history(
        "Ours over the peer's",
        "Our figure divided by that of the trusted tool measured in turn with it. If both fall, "
        "this line stays level: then the host has changed, not the benchmark.",
        RATIO,
        f'SELECT "peer_ratio" {results()} {GROUPED}',
    ).no_value("No peer was measured.")


def spread_history() -> timeseries.Panel:
    """Return how much the trials of each result differ."""
    return narrow_history(
        "Spread",
        "Half the interval that contains the true median, divided by the median. 2 % is the "
        "target; on a shared host it is more.",
        SHARE,
        f'SELECT "spread" {results()} {GROUPED}',
    ).axis_soft_min(0)


class _Curves(xychart.Panel):
    def build(self) -> dashboard.Panel:
        """See Builder."""
        panel = super().build()
        panel.plugin_version = CURVE_VERSION
        return panel


@dataclass(frozen=True)
class Axis:
    """One axis of curves. `field` is its name in InfluxDB; `log`: the base of its scale; None:
    linear. `is_tag`: it is a tag, which InfluxDB stores as text."""

    field: str
    name: str
    unit: str
    log: int | None = None
    is_tag: bool = False

    @property
    def selected(self) -> str:
        """The axis in a SELECT."""
        return f'"{self.field}" AS "{self.name}"'

    @property
    def properties(self) -> list[dashboard.DynamicConfigValue]:
        """Return the options of the axis' field."""
        scale = (
            common.ScaleDistributionConfig(common.ScaleDistribution.LINEAR)
            if self.log is None
            else common.ScaleDistributionConfig(common.ScaleDistribution.LOG, self.log)
        )
        return [
            prop("unit", self.unit),
            prop("custom.axisLabel", self.name),
            prop("custom.scaleDistribution", scale),
        ]


# No text for missing values: on a logarithmic scale, Grafana writes it at each line without a
# number.
def curves(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    tags: Sequence[str],
    condition: str,
    order: str | None = None,
    fields: Sequence[str] = (),
) -> xychart.Panel:
    """Return the latest results that meet a condition, with a line for each combination of host,
    tags and `fields`, which are numbers. `order`: the field that orders the points of a line; None:
    `x`."""
    lines = ("host", *tags, *fields)
    more = (*fields, *([order] if order else []))
    columns = [x.selected, y.selected, *(f'"{name}"' for name in more)]
    ordered = transformation("sortBy", fields={}, sort=[{"field": order or x.name}])
    # The first column of numbers is x, the second is y.
    shown = {name: name for name in (x.name, y.name, *lines)}
    left_out = ("Time", "n", "case", *([order] if order else []))
    panel = (
        _Curves()
        .title(title)
        .description(description)
        .datasource(source())
        .span(12)
        .height(12)
        .mapping(xy.SeriesMapping.AUTO)
        .show(xy.XYShowMode.POINTS_AND_LINES)
        .point_size(xychart.XychartFieldConfigPointSize().fixed(6))
        .line_width(1)
        .legend(bottom_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.SINGLE))
        .with_target(Query(latest(", ".join(columns), tags, condition), form=TABLE))
    )
    if x.is_tag:
        number = {"targetField": x.name, "destinationType": "number"}
        panel = panel.with_transformation(
            transformation("convertFieldType", fields={}, conversions=[number])
        )
    return (
        panel.with_transformation(ordered)
        .with_transformation(organised(shown, left_out))
        # A table for each line, named by its tags; what all names have in common is not shown.
        .with_transformation(
            transformation(
                "partitionByValues",
                fields=list(lines),
                keepFields=False,
                naming={"asLabels": False, "append": False, "withNames": True},
            )
        )
        .override_by_name(x.name, x.properties)
        .override_by_name(y.name, y.properties)
    )
