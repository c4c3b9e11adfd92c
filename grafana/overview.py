"""Overview: the hosts, the quality of the last results, and how near to the limits they are."""

from grafana_foundation_sdk.builders import bargauge, dashboard, stat, table
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.models import common

from grafana.influxql import (
    PRIMARY,
    SOUND,
    SUBMITTED,
    TABLE,
    Query,
    equals,
    latest,
    over_latest,
    results,
    series,
    source,
)
from grafana.looks import (
    CONTROL_PLANE,
    DELIVERED,
    MOMENT,
    OF_LIMIT,
    OVERVIEW,
    PLAIN,
    SHARE,
    VERDICT_COLOURS,
    Steps,
    api_variable,
    board,
    colour,
    nothing_there,
    organised,
    prop,
    result_variables,
    thresholds,
    transformation,
)
from grafana.tables import (
    CONSOLE_LINK,
    JOB_LINK,
    REPORT_LINK,
    coloured_text,
    crossed,
    figure_text,
    filtered,
    half_interval,
    job_state_cell,
    number,
    plain_table,
    results_table,
    sorted_by,
    width,
)
from hostbench.model.registry import built_in_names, find_subsystem
from hostbench.model.result import Verdict
from orchestrator.influx.points import SAMPLES

# The workload that describes a host best, for each built-in subsystem that names one.
FOREMOST = PRIMARY + " AND ({})".format(
    " OR ".join(
        equals("workload", f"{name}.{foremost}")
        for name in built_in_names()
        for foremost in find_subsystem(name).headlines[:1]
    )
)
# InfluxDB's names of the columns, and the names that people read.
LINE_COLUMNS = {
    "host": "host",
    "subsystem": "subsystem",
    "figure": "figure",
    "workload": "workload",
    "label": "case",
    "efficiency": "lowest of limit",
    "delivered_ratio": "lowest delivered",
    "condition": "host was",
    "share": "taken",
    "culprit": "culprit",
}
# Columns of the states of a job; columns of its cases, with the aggregation of each.
JOB_STATE = ("submitted_ms", "host", "state", "reason", "began_ms")
JOB_CASES = {"n": "count", "efficiency": "min", "spread": "max", "until_ms": "max"}


def overview() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        OVERVIEW,
        "hostbench: overview",
        "Hosts, latest verdicts, and how near to the hardware's limits the results are.",
        "now-30d",
    )
    for variable in result_variables():
        found = found.with_variable(variable)
    return (
        found.with_variable(api_variable())
        .with_panel(_lines())
        .with_panel(_hosts())
        .with_panel(_cases())
        .with_panel(_verdicts())
        .with_panel(_control_plane())
        .with_panel(_by_subsystem())
        .with_panel(_delivered())
        .with_panel(_by_workload())
        .with_panel(results_table(16))
        .with_panel(_jobs())
    )


def _lines() -> table.Panel:
    """Return the table that a reader sees first: three queries, merged by host and subsystem."""
    worst = latest(
        '"efficiency", "delivered_ratio", "condition_share", "condition", "culprit"',
        ("subsystem",),
        f"{PRIMARY} AND {SOUND}",
    )
    best = latest('"value", "figure", "verdict"', ("subsystem", "workload", "label"), FOREMOST)
    grouped = 'GROUP BY "host", "subsystem"'
    least = (
        'SELECT min("efficiency") AS "efficiency", min("delivered_ratio") AS "delivered_ratio" '
        f"FROM ({worst}) {grouped}"
    )
    taken = f'SELECT max("condition_share") AS "share", "condition", "culprit" FROM ({worst})'
    usable = " OR ".join(equals("verdict", one) for one in (Verdict.CLEAN, Verdict.NOISY))
    figure = f'SELECT max("value") AS "value", "figure", "workload", "label" FROM ({best})'
    panel = (
        plain_table()
        .title("Each subsystem in a line")
        .description(
            "The best figure of its foremost workload that may be used, and beside it the worst of "
            "all its latest results: the lowest share of a limit, the lowest share delivered, and "
            "what took most of the host, with its share and the culprit. Nothing stands there "
            "where no more was taken than is counted, or where that is unknown: the table of "
            "results says which."
        )
        .height(7)
        .with_target(Query(f"{figure} WHERE {usable} {grouped}", "A", TABLE))
        .with_target(Query(least, "B", TABLE))
        .with_target(Query(f"{taken} {grouped}", "C", TABLE))
        # Rows are merged if all common columns are equal, so the differing times must go. Columns
        # get their names last: a merged table has InfluxDB's names.
        .with_transformation(
            transformation("filterFieldsByName", exclude={"names": ["Time", "value"]})
        )
        .with_transformation(transformation("merge"))
        .with_transformation(organised(LINE_COLUMNS))
        .override_by_name("host", [*filtered(), width(130)])
        .override_by_name("subsystem", [width(95)])
        .override_by_name("figure", figure_text())
        .override_by_name("workload", [width(130)])
        .override_by_name("case", [prop("custom.minWidth", 170)])
        .override_by_name("lowest of limit", [*number(SHARE, 1, 120), *coloured_text(OF_LIMIT)])
        .override_by_name("lowest delivered", [*number(SHARE, 1, 130), *coloured_text(DELIVERED)])
        .override_by_name("taken", [*number(SHARE, 1, 90), *coloured_text(PLAIN)])
        .override_by_name("host was", [*coloured_text(PLAIN), width(90)])
        .override_by_name("culprit", [*coloured_text(PLAIN), prop("custom.minWidth", 230)])
    )
    return sorted_by(panel, "host", "subsystem")


def last_value() -> common_builders.ReduceDataOptions:
    """Return what a tile shows of a series."""
    return common_builders.ReduceDataOptions().calcs(["lastNotNull"])


def tile(title: str, description: str, span: int, nothing: str = "–") -> stat.Panel:
    """Return a large number. `nothing`: the text without a value."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(source())
        .height(4)
        .span(span)
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(last_value())
        .thresholds(thresholds(PLAIN))
        .mappings([nothing_there(nothing)])
        .no_value(nothing)
    )


def bars(title: str, description: str, span: int, height: int, nothing: str) -> bargauge.Panel:
    """Return one horizontal bar for each series. `nothing`: the text without a value."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(source())
        .height(height)
        .span(span)
        .orientation(common.VizOrientation.HORIZONTAL)
        .display_mode(common.BarGaugeDisplayMode.BASIC)
        .show_unfilled(True)
        # Otherwise a single bar has no name.
        .display_name("${__series.name}")
        .mappings([nothing_there(nothing)])
        .no_value(nothing)
        .text(common_builders.VizTextDisplayOptions().title_size(14).value_size(20))
        .reduce_options(last_value())
    )


def shares_of_limit(title: str, description: str, span: int, height: int) -> bargauge.Panel:
    """Return bars from zero to the limit."""
    return (
        bars(title, description, span, height, "No result with a known limit in the chosen time.")
        .unit(SHARE)
        .decimals(1)
        .min(0)
        .max(1)
        .thresholds(thresholds(OF_LIMIT))
    )


def _hosts() -> stat.Panel:
    text = f'SELECT count("n") FROM (SELECT last("n") AS "n" {results()} GROUP BY "host")'
    panel = tile("Hosts", "Hosts with a result in the chosen time.", 3)
    return panel.with_target(series(text, "hosts"))


def _cases() -> stat.Panel:
    panel = tile("Cases", "Different cases measured in the chosen time, counted for each host.", 3)
    return panel.with_target(series(over_latest('count("n")', '"verdict"', ()), "cases"))


def _verdicts() -> stat.Panel:
    panel = (
        tile(
            "Latest verdicts",
            "How many cases have which verdict in their last result. clean: to be trusted within "
            "its interval; noisy: the interval is wide; disturbed: other work took the CPU, and "
            "no undisturbed figure is left; invalid: above the limit, so figure or limit is "
            "wrong; failed and skipped: no figure; corrupt: a result was wrong.",
            12,
            "none yet",
        )
        .color_mode(common.BigValueColorMode.VALUE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .justify_mode(common.BigValueJustifyMode.CENTER)
        .wide_layout(False)
    )
    for ref, (verdict, shade) in zip("ABCDEFG", VERDICT_COLOURS.items(), strict=True):
        text = over_latest('count("n")', '"verdict"', (), equals("verdict", verdict))
        panel = panel.with_target(series(text, verdict.value, ref)).override_by_name(
            verdict.value, [colour(shade)]
        )
    return panel


def _control_plane() -> stat.Panel:
    text = (
        f'SELECT median("cpu_ratio") FROM "{SAMPLES}"."control_plane" '
        'WHERE $timeFilter AND "host" =~ /^${host:regex}$/ GROUP BY "component"'
    )
    return (
        tile(
            "hostbench's own use of the CPU",
            "The share of one core that the processes of hostbench used during a trial: the "
            "median of the trials in the chosen time. Below 1 % it disturbs no figure. Kept for "
            "30 days; runs without the stack have none.",
            6,
        )
        .unit(SHARE)
        .decimals(2)
        .thresholds(thresholds(CONTROL_PLANE))
        .color_mode(common.BigValueColorMode.VALUE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .with_target(series(text, "$tag_component"))
    )


def _by_subsystem() -> table.Panel:
    text = over_latest('min("efficiency")', '"efficiency"', ("host", "subsystem"))
    return _worst(
        "Lowest share of the limit",
        "By host and subsystem, over the latest results of all cases whose theoretical limit is "
        "known. Green from 90 %.",
        OF_LIMIT,
        text,
    )


def _delivered() -> table.Panel:
    text = over_latest('min("delivered_ratio")', '"delivered_ratio"', ("host", "subsystem"))
    return _worst(
        "Lowest share delivered",
        "By host and subsystem, over the latest results: all work over all time, as a share of "
        "what the hardware did undisturbed. The table says who took the rest. Green from 97 %.",
        DELIVERED,
        text,
    )


def _worst(title: str, description: str, steps: Steps, text: str) -> table.Panel:
    """Return the worst value of each subsystem, with a row for each host: a green cell holds for
    the whole subsystem."""
    return (
        crossed("host", "subsystem", "min", "host", 130)
        .title(title)
        .description(description)
        .span(6)
        .height(9)
        .unit(SHARE)
        .decimals(1)
        .thresholds(thresholds(steps))
        .cell_options(common.TableColorTextCellOptions())
        .with_target(Query(text, form=TABLE))
    )


def _by_workload() -> bargauge.Panel:
    text = over_latest('min("efficiency")', '"efficiency"', ("workload",))
    panel = shares_of_limit(
        "Lowest share of the limit, by workload",
        "The lowest of the latest results of all cases of a workload. If it is low, the host is "
        "busy, the limit is wrong, or the kernel does not reach it: the table below shows which.",
        12,
        9,
    )
    return panel.with_target(series(text, "$tag_workload"))


def _jobs() -> table.Panel:
    """Return the table of jobs: two queries, merged by job. One has the states of each job, of
    which the newest is shown; the other has its cases."""
    fields: dict[str, object] = {
        name: {"operation": "aggregate", "aggregations": [call]}
        for name, call in (*((name, "last") for name in JOB_STATE), *JOB_CASES.items())
    }
    fields["job"] = {"operation": "groupby", "aggregations": []}
    columns = {
        "submitted_ms (last)": "submitted",
        "state (last)": "state",
        "job": "job",
        "host (last)": "host",
        "n (count)": "cases",
        "efficiency (min)": "lowest of limit",
        "spread (max)": "widest spread",
        "reason (last)": "why",
        "began_ms (last)": "began",
        "until_ms (max)": "until_ms",
    }
    states = ", ".join(f'"{name}"' for name in ("job", "since_ms", *JOB_STATE))
    cases = ", ".join(f'"{name}"' for name in ("job", *JOB_CASES))
    panel = (
        plain_table()
        .title("Jobs")
        .description(
            "The jobs that were submitted in the chosen time, each with its last state. queued: it "
            "waits for its turn; waiting: it has its hosts, and waits until they are idle; lost: "
            "its orchestrator ended, and it can be resumed. Why: the reason of the state. Cases: "
            "those that are done, with the lowest share of a limit and the widest spread among "
            "them. A click on a job opens its page in the console, its samples or its report. "
            "Empty: no job was submitted in the chosen time."
        )
        .height(9)
        .with_target(Query(f"SELECT {states} {SUBMITTED}", "A", TABLE))
        .with_target(Query(f"SELECT {cases} {results()}", "B", TABLE))
        .with_transformation(transformation("sortBy", fields={}, sort=[{"field": "since_ms"}]))
        .with_transformation(transformation("groupBy", fields=fields))
        .with_transformation(transformation("merge"))
        .with_transformation(organised(columns))
        .override_by_name(
            "submitted", [prop("unit", MOMENT), prop("custom.align", "left"), width(150)]
        )
        .override_by_name("job", [prop("links", [CONSOLE_LINK, JOB_LINK, REPORT_LINK]), width(260)])
        .override_by_name("host", [*filtered(), *coloured_text(PLAIN), width(150)])
        .override_by_name("state", job_state_cell())
        .override_by_name("cases", [*number("none", 0, 70), *coloured_text(PLAIN)])
        .override_by_name("lowest of limit", [*number(SHARE, 1, 120), *coloured_text(OF_LIMIT)])
        .override_by_name("widest spread", half_interval(120))
        .override_by_name(
            "why",
            [*coloured_text(PLAIN), prop("custom.minWidth", 240), prop("custom.inspect", True)],
        )
        .override_by_name("began", [prop("custom.hidden", True)])
        .override_by_name("until_ms", [prop("custom.hidden", True)])
    )
    return sorted_by(panel, "submitted", descending=True)
