"""Live run: the samples of the running job second by second, and below them what disturbed it."""

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.influxql import (
    CHOSEN_JOB,
    LEAST_INTERVAL,
    TABLE,
    Query,
    equals,
    highest,
    last_trials,
    one_of,
    samples,
    series,
    source,
)
from grafana.looks import (
    BANDWIDTH,
    CLEAN_SHARE,
    CLOCK,
    CONTROL_PLANE,
    LIVE,
    POWER,
    RATE,
    SECONDS,
    SHARE,
    TEMPERATURE,
    board,
    bottom_legend,
    colour,
    organised,
    prop,
    sample_variables,
    thresholds,
    transformation,
)
from grafana.overview import tile
from grafana.tables import coloured_text, number, plain_table, sorted_by, verdict_cell, width
from orchestrator.influx.points import SAMPLES

# The metrics of samples with their units, by the id of the query.
FIGURES = {
    "A": ("operations_per_second", RATE),
    "B": ("bytes_per_second", BANDWIDTH),
    "C": ("access_time_s", SECONDS),
    "D": ("commit_time_s", SECONDS),
    "E": ("round_trip_s", SECONDS),
    "F": ("launch_time_s", SECONDS),
}
# Their names in the table of latest samples.
FIGURE_NAMES = {
    "operations_per_second": "operations",
    "bytes_per_second": "bytes",
    "access_time_s": "an access",
    "commit_time_s": "a commit",
    "round_trip_s": "a round trip",
    "launch_time_s": "a launch",
}
# One chart for each unit. A second axis would shift the time axis, and charts would no longer be
# aligned.
FIGURE_CHARTS = {
    RATE: ("Operations a second", "Operations a second of every sample, a second each"),
    BANDWIDTH: ("Bytes a second", "Bytes a second of every sample, a second each"),
    SECONDS: (
        "Time of an operation",
        "The time of an access, a commit, a round trip or a launch, of every sample, a second each",
    ),
}
# The kernel counts this in steps of two seconds, so it means nothing for shorter trials.
PRESSURE_LEAST_S = 2
# In a shorter trial, the share would be that of its start only.
USE_LEAST_S = 0.1
LATENCIES = {"A": ("latency_p50_s", "50 %"), "B": ("latency_p99_s", "99 %")}
# Wide enough for every unit, so that all charts are aligned.
AXIS_PIXELS = 90
# Two samples that are a second apart may fall into the first and the third of three seconds.
JITTER_MS = 2_500
TRIALS_SHOWN = 500
TAGS = ("host", "workload", "label")
NAME = "$tag_workload $tag_label"
THREADS_TIME = '"elapsed_s" / "threads"'
NO_SAMPLES = (
    "No samples in the chosen time: trials shorter than a second have none, and they are kept "
    "for 30 days."
)


def live() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        LIVE,
        "hostbench: live run",
        "The samples of the running job second by second, and what disturbed it. "
        "Samples arrive every ten seconds while a trial runs.",
        "now-15m",
    ).refresh("5s")
    for variable in sample_variables():
        found = found.with_variable(variable)
    return (
        found.with_panel(_now().grid_pos(GridPos(x=0, y=0, w=15, h=8)))
        .with_panel(_clean_now().grid_pos(GridPos(x=15, y=0, w=5, h=4)))
        .with_panel(_clock_now().grid_pos(GridPos(x=20, y=0, w=4, h=4)))
        .with_panel(_trials_done().grid_pos(GridPos(x=15, y=4, w=9, h=4)))
        .with_panel(_figures(RATE).grid_pos(GridPos(x=0, y=8, w=24, h=7)))
        .with_panel(_figures(BANDWIDTH))
        .with_panel(_figures(SECONDS))
        .with_panel(_latencies())
        .with_panel(_clean_shares())
        .with_panel(_clocks())
        .with_panel(_disturbances())
        .with_panel(_own_use())
        .with_panel(_trials())
        .with_row(_card())
    )


def _latest_sample(metric: str, name: str = "last") -> str:
    return (
        f'SELECT last("value") AS "{name}" FROM "{SAMPLES}"."sample" '
        f"WHERE $timeFilter AND {CHOSEN_JOB} AND {equals('metric', metric)}"
    )


def _now() -> table.Panel:
    """Return a table with a row for each case, the running one first. The metrics of one sample
    have the same time."""
    columns = {"Time": "when", "workload": "workload", "label": "case"}
    panel = (
        plain_table()
        .title("Latest sample")
        .description(
            "The last sample of each case in the chosen time, the newest first: operations and "
            "bytes a second, and the time of an access, a commit, a round trip or a launch."
        )
        .with_transformation(transformation("merge"))
        .with_transformation(
            organised({**columns, **{name: name for name in FIGURE_NAMES.values()}})
        )
        .override_by_name("when", [prop("unit", "time:HH:mm:ss"), width(80)])
        .override_by_name("workload", [width(150)])
        .override_by_name("case", [prop("custom.minWidth", 240)])
    )
    for ref, (metric, unit) in FIGURES.items():
        name = FIGURE_NAMES[metric]
        text = f'{_latest_sample(metric, name)} GROUP BY "workload", "label"'
        panel = panel.with_target(Query(text, ref, TABLE)).override_by_name(
            name, number(unit, 2, 95)
        )
    return sorted_by(panel, "when", descending=True)


def _clean_now() -> stat.Panel:
    return (
        tile(
            "Clean slices, latest",
            "Share of the slices of the last second without an interruption. Below 80 % a trial "
            "is called disturbed.",
            5,
        )
        .unit(SHARE)
        .decimals(1)
        .color_mode(common.BigValueColorMode.VALUE)
        .thresholds(thresholds(CLEAN_SHARE))
        .with_target(series(_latest_sample("clean_slice_ratio"), "clean slices"))
    )


def _clock_now() -> stat.Panel:
    return (
        tile("Core clock, latest", "The core clock of the last second, under the kernel.", 4)
        .unit(CLOCK)
        .decimals(2)
        .with_target(series(_latest_sample("clock_hertz"), "clock"))
    )


def _trials_done() -> stat.Panel:
    text = (
        f'SELECT count("trial") FROM "{SAMPLES}"."disturbance" WHERE $timeFilter AND {CHOSEN_JOB}'
    )
    return tile("Trials", "Trials that ended in the chosen time.", 9).with_target(
        series(text, "trials")
    )


def _strip(title: str, description: str, height: int, unit: str) -> timeseries.Panel:
    """Return a chart of samples at full width, aligned with those above and below it."""
    return _aligned(title, description, height, unit).no_value(NO_SAMPLES)


def _aligned(title: str, description: str, height: int, unit: str) -> timeseries.Panel:
    """Return the same without a text for missing values: on a logarithmic scale, Grafana writes it
    at each line without a number."""
    return (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(source())
        .span(24)
        .height(height)
        .interval(LEAST_INTERVAL)
        .unit(unit)
        .axis_width(AXIS_PIXELS)
        .line_width(1)
        .span_nulls(JITTER_MS)
        .legend(bottom_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )


def _figures(unit: str) -> timeseries.Panel:
    """Return a chart of the metrics with this unit."""
    title, description = FIGURE_CHARTS[unit]
    panel = (
        _aligned(title, f"{description}; of longer ranges their means.", 7, unit)
        .point_size(4)
        # A trial of one second has a single sample, and no line.
        .show_points(common.VisibilityMode.ALWAYS)
        # The cases of a job differ by powers of ten: on a linear scale, all but the highest would
        # be at the bottom.
        .scale_distribution(
            common_builders.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10)
        )
    )
    for ref, (metric, its_unit) in FIGURES.items():
        if its_unit == unit:
            panel = panel.with_target(series(samples(metric, TAGS), NAME, ref))
    return panel


def _latencies() -> timeseries.Panel:
    panel = _strip(
        "Latency of operations",
        "The median and the 99th percentile of the operations of each second, for workloads that "
        "wait for a device (disks) or for the far end (network).",
        7,
        SECONDS,
    ).axis_soft_min(0)
    for ref, (metric, share) in LATENCIES.items():
        panel = panel.with_target(series(samples(metric, TAGS), f"{NAME}: {share}", ref))
    return panel


def _clean_shares() -> timeseries.Panel:
    return (
        _strip(
            "Clean slices",
            "Share of the slices of each second without an interruption: no involuntary switch, "
            "no wait for a CPU, all of the CPU's time. Below 80 % the trial is disturbed.",
            6,
            SHARE,
        )
        .min(0)
        .max(1)
        .thresholds(thresholds(CLEAN_SHARE))
        .thresholds_style(
            common_builders.GraphThresholdsStyleConfig().mode(
                common.GraphThresholdsStyleMode.DASHED
            )
        )
        .with_target(series(samples("clean_slice_ratio", TAGS), NAME))
    )


def _clocks() -> timeseries.Panel:
    panel = _strip(
        "Core clock",
        "The core clock under the kernel, second by second: turbo steps and throttling.",
        6,
        CLOCK,
    )
    return panel.decimals(3).with_target(series(samples("clock_hertz", TAGS), NAME))


def _card() -> dashboard.Row:
    """Return the row of the GPU, folded because most hosts have none."""
    charts = {
        "nvml_clock_hertz": ("Clock of the GPU", CLOCK),
        "power_watts": ("Power of the GPU", POWER),
        "temperature_celsius": ("Temperature of the GPU", TEMPERATURE),
    }
    row = dashboard.Row("GPU: clock, power and temperature").collapsed(True)
    for metric, (title, unit) in charts.items():
        description = (
            "The card's own values, second by second: its clock falls when power or temperature "
            "reach their limits. Only NVIDIA's cards report them."
        )
        target = series(samples(metric, TAGS), NAME)
        row = row.with_panel(_strip(title, description, 6, unit).with_target(target))
    return row


def _marks(title: str, description: str, height: int, unit: str) -> timeseries.Panel:
    """Return a chart with one mark for each trial, at its start."""
    return (
        _strip(title, description, height, unit)
        .draw_style(common.GraphDrawStyle.POINTS)
        .point_size(9)
    )


def _disturbances() -> timeseries.Panel:
    marks = {
        "psi_cpu_some_s": ("some task waited for a CPU", "#8e8e8e", '"elapsed_s"'),
        "wait_s": ("waited in the run queue", "yellow", THREADS_TIME),
        "steal_s": ("stolen by the hypervisor", "red", THREADS_TIME),
        "throttled_s": ("throttled by a quota", "purple", THREADS_TIME),
    }
    panel = _marks(
        "Disturbance of each trial",
        "What the kernel counted during a trial, as shares of its threads' time: waiting in the "
        "run queue, stolen by the hypervisor, throttled by a cgroup's quota; and the share of the "
        "time in which any task of the host waited for a CPU, of trials of two seconds and more. "
        "One mark a trial, where it began; it comes when the trial has ended, and of many in a "
        "pixel the worst is shown. No mark: nothing of that kind happened.",
        7,
        SHARE,
    ).axis_soft_min(0)
    for ref, (field, (name, shade, over)) in zip("ABCD", marks.items(), strict=True):
        some = f'{CHOSEN_JOB} AND "{field}" > 0'
        if field == "psi_cpu_some_s":
            some += f' AND "elapsed_s" >= {PRESSURE_LEAST_S}'
        text = highest(f'"{field}" / {over}', "disturbance", some)
        panel = panel.with_target(series(text, name, ref)).override_by_name(name, [colour(shade)])
    return panel


def _own_use() -> timeseries.Panel:
    some = f'{one_of("host")} AND {one_of("job")} AND "elapsed_s" >= {USE_LEAST_S}'
    text = highest('"cpu_ratio"', "control_plane", some, ("component",))
    return (
        _marks(
            "hostbench's own use of the CPU",
            "The share of one core that each process of hostbench used during a trial. Below 1 % "
            "it disturbs no figure. Runs without the stack have none.",
            6,
            SHARE,
        )
        .axis_soft_min(0)
        .axis_soft_max(0.012)
        .thresholds(thresholds(CONTROL_PLANE))
        .thresholds_style(
            common_builders.GraphThresholdsStyleConfig().mode(
                common.GraphThresholdsStyleMode.DASHED
            )
        )
        .no_value("Nothing in the chosen time; runs without the stack have none.")
        .with_target(series(text, "$tag_component"))
    )


def _trials() -> table.Panel:
    columns = {
        "Time": "began",
        "host": "host",
        "workload": "workload",
        "label": "case",
        "trial": "trial",
        "elapsed_s": "took",
        "verdict": "verdict",
        "clean_slice_ratio": "clean slices",
        "cpu_ratio": "CPU time got",
        "wait_s": "waited",
        "steal_s": "stolen",
        "throttled_s": "throttled",
        "involuntary_switches": "switches",
        "job": "job",
    }
    selected = [name for name in columns if name != "Time"]
    panel = (
        plain_table()
        .title("Trials")
        .description(
            f"The last {TRIALS_SHOWN} trials in the chosen time, and what the kernel saw of each."
        )
        .height(10)
        .with_target(Query(last_trials(selected, TRIALS_SHOWN), form=TABLE))
        .with_transformation(organised(columns))
        # On a screen of 1440 pixels all but the job, which is chosen above.
        .override_by_name("began", [prop("unit", "time:YYYY-MM-DD HH:mm:ss"), width(155)])
        .override_by_name("trial", number("none", 0, 55))
        .override_by_name("took", number(SECONDS, 2, 85))
        .override_by_name("verdict", verdict_cell())
        .override_by_name("clean slices", [*number(SHARE, 1, 105), *coloured_text(CLEAN_SHARE)])
        .override_by_name("CPU time got", number(SHARE, 1, 115))
        .override_by_name("waited", number(SECONDS, 3, 95))
        .override_by_name("stolen", number(SECONDS, 3, 85))
        .override_by_name("throttled", number(SECONDS, 3, 85))
        .override_by_name("switches", number("none", 0, 75))
        .override_by_name("case", [prop("custom.minWidth", 190)])
        .override_by_name("host", [width(100)])
        .override_by_name("workload", [width(145)])
        .override_by_name("job", [prop("custom.minWidth", 240)])
    )
    return sorted_by(panel, "began", descending=True)
