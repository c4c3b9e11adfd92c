"""What all boards have in common: units, colours, thresholds, links, variables."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common, dashboard

from grafana.influxql import MARKED, PRIMARY, Annotations, equals, one_of, source
from hostbench.model.decision import Word
from hostbench.model.jobs import StackState
from hostbench.model.result import Verdict
from orchestrator.influx.points import SAMPLES

TAG = "hostbench"
OVERVIEW, LIVE = "hostbench-overview", "hostbench-live"
ALL = ".*"
# The hidden variable that "All" jobs means on a board of samples.
NEWEST = "newest"

# `si:` uses SI prefixes; Grafana's own unit for a rate counts in K, M, B and T. Bytes per second
# have SI prefixes, sizes those of powers of two.
RATE, BANDWIDTH, BYTES = "si:op/s", "Bps", "bytes"
CLOCK, RATIO, SHARE, SECONDS, NUMBER = "hertz", "none", "percentunit", "s", "none"
POWER, TEMPERATURE, A_CYCLE = "watt", "celsius", "si:op/cycle"
MOMENT, DAY = "time:YYYY-MM-DD HH:mm", "time:YYYY-MM-DD"
AGE = "dateTimeFromNow"

OURS_COLOUR, LIMIT_COLOUR = "blue", "#8e8e8e"
OURS_BESIDE_PEER_COLOUR, PEER_COLOUR = "light-blue", "orange"
BETTER_COLOUR, WORSE_COLOUR = "green", "orange"
VERDICT_COLOURS: Mapping[StrEnum, str] = {
    Verdict.CLEAN: "green",
    Verdict.NOISY: "yellow",
    Verdict.DISTURBED: "orange",
    Verdict.INVALID: "red",
    Verdict.FAILED: "dark-red",
    Verdict.SKIPPED: "#8e8e8e",
    Verdict.CORRUPT: "purple",
}

# A job that has succeeded has no colour: its cases show what it is worth.
STATE_COLOURS: Mapping[StrEnum, str] = {
    StackState.RUNNING: "blue",
    StackState.FAILED: "red",
    StackState.LOST: "orange",
    StackState.CANCELLED: "#8e8e8e",
}

# In order: below the least useful share, fair, good, and above the limit, where no figure can be
# right.
OF_LIMIT = ((None, "orange"), (0.7, "yellow"), (0.9, "green"), (1.02, "red"))
# The target of the repeats is 2 %; pyperf calls a result unstable from 10 %.
SPREAD = ((None, "green"), (0.02, "yellow"), (0.1, "orange"))
# A figure below the trusted tool's is a finding; one far above it, too.
PEER_RATIO = ((None, "orange"), (0.97, "green"), (1.1, "yellow"))
CLEAN_SHARE = ((None, "orange"), (0.8, "green"))
# Below 97 %, a report names who took the rest.
DELIVERED = ((None, "orange"), (0.9, "yellow"), (0.97, "green"))
# The share of one core that the control plane may use during a trial.
CONTROL_PLANE = ((None, "text"), (0.01, "orange"))
PLAIN = ((None, "text"),)

Steps = Sequence[tuple[float | None, str]]


def thresholds(steps: Steps) -> builders.ThresholdsConfig:
    """Return colours by value; the first step has no lower end."""
    return (
        builders.ThresholdsConfig()
        .mode(dashboard.ThresholdsMode.ABSOLUTE)
        .steps([dashboard.Threshold(value, colour) for value, colour in steps])
    )


def threshold_property(steps: Steps) -> dashboard.DynamicConfigValue:
    """Return the same for one column."""
    return prop("thresholds", thresholds(steps).build())


def nothing_there(text: str = "–") -> dashboard.SpecialValueMap:
    """Return what is shown for a missing value: in the colour of text, as it is neither good nor
    bad."""
    return dashboard.SpecialValueMap(
        dashboard.DashboardSpecialValueMapOptions(
            match=dashboard.SpecialValueMatch.NULL,
            result=dashboard.ValueMappingResult(text=text, color="text"),
        )
    )


def wider_than_figure() -> dashboard.RangeMap:
    """Return what is shown for half an interval that is wider than its figure, as reports do
    (`plus_minus`): the number would say nothing."""
    return dashboard.RangeMap(
        dashboard.DashboardRangeMapOptions(
            from_val=1, result=dashboard.ValueMappingResult(text="> 100 %", color=SPREAD[-1][1])
        )
    )


def coloured_words(colours: Mapping[StrEnum, str]) -> dashboard.ValueMap:
    """Return a colour for each of these words; the word stays."""
    return dashboard.ValueMap(
        {
            word.value: dashboard.ValueMappingResult(text=word.value, color=shade, index=index)
            for index, (word, shade) in enumerate(colours.items())
        }
    )


def prop(name: str, value: object) -> dashboard.DynamicConfigValue:
    """Return one property of a column or a series."""
    return dashboard.DynamicConfigValue(name, value)


def colour(name: str) -> dashboard.DynamicConfigValue:
    """Return a fixed colour for a column or a series."""
    return prop("color", {"mode": "fixed", "fixedColor": name})


def transformation(name: str, **options: object) -> dashboard.DataTransformerConfig:
    """Return a transformation that Grafana applies to the answers before it shows them."""
    return dashboard.DataTransformerConfig(id_val=name, options=options)


def corner(row: str, column: str) -> str:
    """Return Grafana's name for the column that names the rows of a matrix."""
    return f"{row}\\{column}"


def matrix_of(row: str, column: str, value: str) -> list[dashboard.DataTransformerConfig]:
    """Return the steps to a matrix of values by two columns, sorted both ways: Grafana takes the
    columns in the order of the answer."""
    return [
        transformation("sortBy", fields={}, sort=[{"field": column}]),
        transformation("groupingToMatrix", rowField=row, columnField=column, valueField=value),
        transformation("sortBy", fields={}, sort=[{"field": corner(row, column)}]),
    ]


def organised(
    columns: Mapping[str, str], left_out: Sequence[str] = ()
) -> dashboard.DataTransformerConfig:
    """Return a step that shows columns in this order under these names, without those in
    `left_out`."""
    return transformation(
        "organize",
        excludeByName=dict.fromkeys(left_out, True),
        indexByName={name: index for index, name in enumerate(columns)},
        renameByName={name: shown for name, shown in columns.items() if name != shown},
    )


def bottom_legend(*calcs: str) -> common_builders.VizLegendOptions:
    """Return a legend below the chart, so that charts above one another have the same width."""
    legend = (
        common_builders.VizLegendOptions()
        .show_legend(True)
        .placement(common.LegendPlacement.BOTTOM)
        .display_mode(common.LegendDisplayMode.TABLE if calcs else common.LegendDisplayMode.LIST)
    )
    return legend.calcs(list(calcs)) if calcs else legend


def sorted_legend() -> common_builders.VizLegendOptions:
    """Return a legend for many series, the lowest last value first. Beside a chart, it would leave
    no room for the chart on a narrow screen."""
    return bottom_legend("lastNotNull", "min").sort_by("Last *").sort_desc(False)


def no_legend() -> common_builders.VizLegendOptions:
    """Return no legend, for many series that a neighbour's legend names."""
    return common_builders.VizLegendOptions().show_legend(False)


def board(uid: str, title: str, description: str, since: str) -> builders.Dashboard:
    """Return an empty board with links to the others."""
    return (
        builders.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .readonly()
        .time(since, "now")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(
            builders.DashboardLink("hostbench")
            .type(dashboard.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
    )


def change_marks(condition: str) -> list[Builder[dashboard.AnnotationQuery]]:
    """Return marks where figures of the chosen hosts and workloads changed; `condition` selects
    those of a board. Of two marks at the same time, the last one is visible: the worse one."""
    shades = {Word.BETTER: BETTER_COLOUR, Word.WORSE: WORSE_COLOUR}
    return [
        builders.AnnotationQuery()
        .name(f"changes: {word}")
        .datasource(source())
        .enable(True)
        .icon_color(shade)
        .target(
            Annotations(
                f'SELECT "text", "title" {MARKED} AND {condition} AND {equals("word", word)}',
                f"changes: {word}",
            )
        )
        for word, shade in shades.items()
    ]


def variable(
    name: str,
    question: str,
    description: str,
    sort: dashboard.VariableSort = dashboard.VariableSort.ALPHABETICAL_ASC,
) -> builders.QueryVariable:
    """Return a variable with several values, all of them selected at first."""
    return (
        builders.QueryVariable(name)
        .label(name)
        .description(description)
        .datasource(source())
        .query(question)
        .definition(question)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(sort)
        .multi(True)
        .include_all(True)
        .all_value(ALL)
        .current(dashboard.VariableOption(selected=True, text="All", value="$__all"))
    )


def result_variables(
    condition: str = PRIMARY, all_workloads: str = ALL
) -> list[builders.QueryVariable]:
    """Return host, suite and workload as variables from the results. `all_workloads` is the regular
    expression for all workloads."""

    def values(tag: str, *conditions: str) -> str:
        where = " AND ".join([condition, *conditions])
        return f'SHOW TAG VALUES FROM "result" WITH KEY = "{tag}" WHERE {where}'

    return [
        variable("host", values("host"), "Hosts that have results."),
        variable("suite", values("suite", one_of("host")), "Suites that ran there."),
        variable(
            "workload",
            values("workload", one_of("host"), one_of("suite")),
            "What they measured.",
        ).all_value(all_workloads),
    ]


def row_variable(
    name: str, condition: str, all_workloads: str, description: str
) -> builders.QueryVariable:
    """Return the variable that rows are repeated for: the chosen workloads that meet a condition.
    It is hidden, since users do not choose from it."""
    question = (
        f'SHOW TAG VALUES FROM "result" WITH KEY = "workload" WHERE {condition} '
        f"AND {one_of('host')} AND {one_of('suite')} AND {one_of('workload')}"
    )
    return (
        variable(name, question, description)
        .all_value(all_workloads)
        .hide(dashboard.VariableHide.HIDE_VARIABLE)
    )


def sample_variables() -> list[builders.QueryVariable]:
    """Return host, suite, workload and job as variables from the samples, which have a job from its
    first second on.

    SHOW TAG VALUES of InfluxDB 2.x only reads the default retention policy.
    """
    names = ("host", "suite", "workload")
    descriptions = (
        "Hosts with samples in the chosen time.",
        "Suites that ran there.",
        "What they measured.",
    )
    found = []
    for position, (name, description) in enumerate(zip(names, descriptions, strict=True)):
        where = " AND ".join(["$timeFilter", *(one_of(before) for before in names[:position])])
        question = (
            f'SELECT "{name}", "v" FROM (SELECT last("value") AS "v" FROM "{SAMPLES}"."sample" '
            f'WHERE {where} GROUP BY "{name}")'
        )
        found.append(variable(name, question, description))
    where = " AND ".join(["$timeFilter", *map(one_of, names)])
    jobs = f'FROM "{SAMPLES}"."sample" WHERE {where}'
    job = variable(
        "job",
        f'SELECT distinct("job") AS "job" {jobs}',
        "Jobs in the chosen time, the newest first.",
        # A job's id begins with its time, so the newest is first.
        dashboard.VariableSort.ALPHABETICAL_DESC,
    )
    newest = f'SELECT last("job") AS "job" {jobs}'
    follows = (
        variable(NEWEST, newest, "The job with the last sample; it changes when another begins.")
        .multi(False)
        .include_all(False)
        .hide(dashboard.VariableHide.HIDE_VARIABLE)
    )
    # Without a chosen job, the board follows the running one.
    return [*found, follows, job.label("job (All: the newest)").all_value(f"${{{NEWEST}:regex}}")]


def api_variable() -> builders.ConstantVariable:
    """Return the address at which a browser reaches the orchestrator, for links to reports."""
    return (
        builders.ConstantVariable("api")
        .label("api")
        .description("Where the browser reaches the orchestrator's API.")
        .value("http://127.0.0.1:8000")
    )
