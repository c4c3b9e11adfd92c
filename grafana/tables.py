"""The table of latest results, which two boards show, and the links in its cells."""

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models import common, dashboard

from grafana.influxql import PRIMARY, TABLE, Query, latest, source
from grafana.looks import (
    DELIVERED,
    LIVE,
    MOMENT,
    OF_LIMIT,
    PEER_RATIO,
    PLAIN,
    SHARE,
    SPREAD,
    STATE_COLOURS,
    VERDICT_COLOURS,
    Steps,
    coloured_words,
    corner,
    matrix_of,
    nothing_there,
    organised,
    prop,
    threshold_property,
    wider_than_figure,
)

# InfluxDB's names of the columns, and the names that people read.
COLUMNS = {
    "host": "host",
    "workload": "workload",
    "label": "case",
    "figure": "figure",
    "spread": "± within",
    "efficiency": "of limit",
    "delivered_ratio": "delivered",
    "verdict": "verdict",
    "condition": "host was",
    "culprit": "culprit",
    "peer": "peer",
    "peer_ratio": "ours / peer",
    "limit": "limit",
    "best": "best",
    "n": "trials",
    "Time": "when",
    "job": "job",
    "reason": "why",
    "until_ms": "until_ms",
}
LEFT_OUT = ("case",)
FIELDS = (
    '"figure", "spread", "best", "limit", "efficiency", "delivered_ratio", "peer", '
    '"peer_ratio", "verdict", "condition", "culprit", "job", "reason", "until_ms"'
)
# With an SI prefix but no unit: it differs between rows, and the figure's text has it.
ANY_UNIT = "si: "

# The width of a cell with a word or a share.
CROSSED_PIXELS = 60

SAMPLES_LINK = {
    "title": "Samples of this case",
    "url": f"/d/{LIVE}?var-job=${{__data.fields.job}}&var-host=${{__data.fields.host}}"
    "&from=${__data.fields.when.numeric}&to=${__data.fields.until_ms.numeric}",
}
JOB_LINK = {
    "title": "Samples of this job",
    "url": f"/d/{LIVE}?var-job=${{__value.text}}&var-host=${{__data.fields.host}}"
    "&from=${__data.fields.began.numeric}&to=${__data.fields.until_ms.numeric}",
}
# The page of the console, from which one comes back by its link to the boards.
JOB_PAGE = "${api}/ui/jobs/${__value.text}"
CONSOLE_LINK = {"title": "This job in the console", "url": JOB_PAGE, "targetBlank": True}
REPORT_LINK = {"title": "Report of this job", "url": f"{JOB_PAGE}/report", "targetBlank": True}


def results_table(height: int, of: str = PRIMARY) -> table.Panel:
    """Return the latest result of every case: one row for each case. `of` selects the results."""
    panel = (
        plain_table()
        .title("Latest result of every case")
        .description(
            "Of the last job that measured the case: what the hardware did undisturbed; of disks "
            "and networks, all that was done. Within: half the interval that holds the true "
            "figure. Best: the figure of the best trial, which is no limit. Limit: what the "
            "hardware could do at most at the clock it had. Delivered: all work over all time, as "
            "a share of the figure; the culprit took the rest. Ours / peer: the median over pairs "
            "of neighbouring trials of ours and of a trusted tool. A click on a job opens its "
            "page in the console, its samples or its report."
        )
        .height(height)
        .with_target(Query(latest(FIELDS, ("workload", "label"), of), form=TABLE))
        .with_transformation(organised(COLUMNS, LEFT_OUT))
        .override_by_name("figure", figure_text())
        .override_by_name("best", number(ANY_UNIT, 2, 85))
        # Without a colour, Grafana shows an empty column as JSON.
        .override_by_name("limit", [*number(ANY_UNIT, 2, 85), *coloured_text(PLAIN)])
        .override_by_name("± within", half_interval(80))
        .override_by_name("delivered", [*number(SHARE, 1, 85), *coloured_text(DELIVERED)])
        .override_by_name("host was", [*coloured_text(PLAIN), width(85)])
        .override_by_name("culprit", [*coloured_text(PLAIN), width(150)])
        .override_by_name("of limit", [*number(SHARE, 1), *gauge(OF_LIMIT)])
        .override_by_name("ours / peer", [*number("none", 3), *coloured_text(PEER_RATIO)])
        .override_by_name("verdict", verdict_cell())
        .override_by_name("trials", number("none", 0, 60))
        .override_by_name("when", [prop("unit", MOMENT), width(140)])
        .override_by_name("workload", [*filtered(), width(150)])
        .override_by_name("host", [*filtered(), width(130)])
        .override_by_name("case", [*filtered(), prop("custom.minWidth", 260)])
        .override_by_name("peer", [*coloured_text(PLAIN), width(115)])
        .override_by_name(
            "job", [prop("links", [CONSOLE_LINK, SAMPLES_LINK, REPORT_LINK]), width(240)]
        )
        .override_by_name("why", [prop("custom.minWidth", 240), prop("custom.inspect", True)])
        .override_by_name("until_ms", [prop("custom.hidden", True)])
    )
    return sorted_by(panel, "workload", "case")


def crossed(row: str, column: str, value: str, rows: str, pixels: int) -> table.Panel:
    """Return a table of values with a row and a column for each value of two other columns. `rows`
    is the heading of the column that names the rows, and `pixels` its least width."""
    panel = plain_table().align(common.FieldTextAlignment.CENTER).min_width(CROSSED_PIXELS)
    for step in matrix_of(row, column, value):
        panel = panel.with_transformation(step)
    return panel.override_by_name(
        corner(row, column),
        [
            prop("displayName", rows),
            *filtered(),
            *coloured_text(PLAIN),
            prop("custom.align", "left"),
            prop("custom.minWidth", pixels),
        ],
    )


def plain_table() -> table.Panel:
    """Return a table as wide as the board."""
    return (
        table.Panel()
        .datasource(source())
        .span(24)
        .show_header(True)
        .cell_height(common.TableCellHeight.SM)
        .mappings([nothing_there()])
    )


def filtered() -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column with a filter."""
    return [prop("custom.filterable", True)]


def sorted_by(panel: table.Panel, *columns: str, descending: bool = False) -> table.Panel:
    """Return the panel with its rows in this order."""
    return panel.sort_by(
        [
            common_builders.TableSortByFieldState().display_name(column).desc(descending)
            for column in columns
        ]
    )


def width(pixels: int) -> dashboard.DynamicConfigValue:
    """Return the width of a column."""
    return prop("custom.width", pixels)


def figure_text(pixels: int = 115) -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column of figures with their units, such as `59.07 Gop/s`."""
    return [*coloured_text(PLAIN), width(pixels), prop("custom.align", "right")]


def number(unit: str, decimals: int, pixels: int = 95) -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column of numbers."""
    return [
        prop("unit", unit),
        prop("decimals", decimals),
        prop("custom.align", "right"),
        width(pixels),
    ]


def half_interval(pixels: int) -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column of half intervals as shares of their figures."""
    return [
        *number(SHARE, 2, pixels),
        *coloured_text(SPREAD),
        prop("mappings", [wider_than_figure(), nothing_there()]),
    ]


def coloured_text(steps: Steps) -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column whose text has a colour by its value."""
    return [
        threshold_property(steps),
        prop("custom.cellOptions", common.TableColorTextCellOptions()),
    ]


def gauge(steps: Steps) -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column of bars from 0 to 1."""
    return [
        threshold_property(steps),
        prop("min", 0),
        prop("max", 1),
        prop(
            "custom.cellOptions",
            common.TableBarGaugeCellOptions(
                common.BarGaugeDisplayMode.BASIC, common.BarGaugeValueMode.COLOR
            ),
        ),
        width(130),
    ]


def verdict_cell() -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column of verdicts."""
    return [
        *filtered(),
        prop("mappings", [coloured_words(VERDICT_COLOURS)]),
        prop(
            "custom.cellOptions",
            common.TableColoredBackgroundCellOptions(common.TableCellBackgroundDisplayMode.BASIC),
        ),
        prop("custom.align", "center"),
        width(100),
    ]


def job_state_cell() -> list[dashboard.DynamicConfigValue]:
    """Return the options of a column of job states."""
    return [
        *filtered(),
        *coloured_text(PLAIN),
        prop("mappings", [coloured_words(STATE_COLOURS), nothing_there()]),
        width(95),
    ]
