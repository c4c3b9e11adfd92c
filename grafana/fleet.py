"""Fleet: the state of each host; headline cases by hosts: which changed, and which differ from
hosts of the same model."""

from collections.abc import Mapping
from enum import StrEnum
from string import ascii_uppercase

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

from grafana.charts import NAME, history
from grafana.influxql import (
    CHANGED,
    DECIDED,
    PRIMARY,
    SOUND,
    TABLE,
    Query,
    decided,
    equals,
    latest,
    series,
)
from grafana.looks import (
    AGE,
    BETTER_COLOUR,
    DAY,
    DELIVERED,
    MOMENT,
    OF_LIMIT,
    PLAIN,
    RATIO,
    SHARE,
    WORSE_COLOUR,
    api_variable,
    board,
    coloured_words,
    nothing_there,
    organised,
    prop,
    result_variables,
    sorted_legend,
    thresholds,
    transformation,
)
from grafana.overview import tile
from grafana.tables import (
    CONSOLE_LINK,
    REPORT_LINK,
    coloured_text,
    crossed,
    figure_text,
    filtered,
    number,
    plain_table,
    sorted_by,
    width,
)
from hostbench.model.baseline import HostWord
from hostbench.model.decision import Word
from hostbench.model.summary import Verdict

# The words with a known error rate; all others have no colour.
SURE: Mapping[StrEnum, str] = {
    Word.WORSE: WORSE_COLOUR,
    Word.BETTER: BETTER_COLOUR,
    HostWord.LOW: WORSE_COLOUR,
}
CHANGE_COLUMNS = {
    "Time": "from",
    "host": "host",
    "title": "case",
    "word": "word",
    "text": "by how much, and what else changed there",
    "job": "first job after it",
}
# The numbers that the text also contains.
CHANGE_NUMBERS = ("ratio", "low", "high")
FIGURE_COLUMNS = {
    "host": "host",
    "title": "case",
    "figure": "figure",
    "change": "change",
    "baseline": "beside others",
    "of_usual": "of usual",
    "expected_figure": "expected",
    "hosts": "hosts",
    "ratio": "after / before",
    "since_ms": "since",
    "least_effect": "would be seen",
    "jobs": "jobs",
    "job": "job",
}
# InfluxDB's names of the columns, and the names that people read.
HOST_COLUMNS = {
    "host": "host",
    "until_ms": "measured",
    "cases": "cases",
    "corrupt": "corrupt",
    "unusable": "invalid, failed",
    "disturbed": "disturbed",
    "efficiency": "lowest of limit",
    "delivered_ratio": "lowest delivered",
    "condition": "host was",
    "share": "taken",
    "culprit": "culprit",
    "held": "clock held",
}
FOUND = ((None, "text"), (1, "orange"))
# The host computed wrong: worse than all other findings.
FOUND_CORRUPT = ((None, "text"), (1, "red"))
FIGURES = ", ".join(f'"{name}"' for name in FIGURE_COLUMNS if name not in ("host", "jobs"))


def fleet() -> dashboard.Dashboard:
    """Return the board."""
    found = board(
        "hostbench-fleet",
        "hostbench: fleet",
        "Hosts of the stack and of campaigns: how good and how old their results are, whether "
        "headline cases changed, and whether the hosts perform like others of their model.",
        "now-90d",
    )
    for variable in result_variables():
        found = found.with_variable(variable)
    return (
        found.with_variable(api_variable())
        .with_panel(_hosts())
        .with_panel(_hosts_with("change", Word.WORSE, "is worse than before"))
        .with_panel(_hosts_with("change", Word.BETTER, "is better than before"))
        .with_panel(_hosts_with("baseline", HostWord.LOW, "is below those of other hosts"))
        .with_panel(_hosts_with("baseline", HostWord.SUSPECT, "should be measured again"))
        .with_panel(_lines())
        .with_panel(
            _matrix(
                "Did it change?",
                "Each host's newest job beside its jobs before it, 60 at most. worse, better: it "
                "changed; the answers on all cases of a job together are wrong in at most 5 of 100 "
                "jobs. same: no change was found. undecided: there are too few jobs yet.",
                "change",
            )
        )
        .with_panel(
            _matrix(
                "Does it do what hosts of its model do?",
                "Each host's newest job beside the baseline of its model. low: at most 1 of 100 "
                "sound hosts shows one such figure. suspect: up to 1 of 20 does, so measure again. "
                "no reference: the orchestrator has no baseline of five hosts.",
                "baseline",
            )
        )
        .with_panel(_changes())
        .with_panel(_figures())
        .with_panel(_of_usual())
    )


def _hosts() -> stat.Panel:
    text = f'SELECT count("jobs") FROM (SELECT last("jobs") AS "jobs" {DECIDED} GROUP BY "host")'
    panel = tile("Hosts", "Hosts with a decided job in the chosen time.", 4)
    return panel.with_target(series(text, "hosts"))


def _hosts_with(field: str, word: StrEnum, what: str) -> stat.Panel:
    newest = decided(f'"{field}"')
    of_host = f'SELECT count("jobs") AS "cases" FROM ({newest}) WHERE {equals(field, word)}'
    found = (
        tile(
            f"Hosts with a {word} figure",
            f"Hosts with a newest headline figure that {what}: the tables below name them.",
            5,
            "none",
        )
        .color_mode(common.BigValueColorMode.VALUE)
        .with_target(series(f'SELECT count("cases") FROM ({of_host} GROUP BY "host")', word))
    )
    return found.thresholds(thresholds(((None, SURE.get(word, "text")),)))


def _line_queries() -> tuple[str, ...]:
    """Return the queries whose answers, a row for each host, make up its line."""
    newest = latest(
        '"efficiency", "delivered_ratio", "taken_share", "taken", "taken_by", "clock_held", '
        '"verdict", "until_ms"',
        (),
        f"{PRIMARY} AND {SOUND}",
    )

    def counted(name: str, *verdicts: Verdict) -> str:
        where = " OR ".join(equals("verdict", one) for one in verdicts)
        return f'SELECT count("n") AS "{name}" FROM ({newest}) WHERE {where} GROUP BY "host"'

    return (
        'SELECT count("n") AS "cases", min("efficiency") AS "efficiency", '
        'min("delivered_ratio") AS "delivered_ratio", max("until_ms") AS "until_ms" '
        f'FROM ({newest}) GROUP BY "host"',
        'SELECT max("taken_share") AS "share", "taken" AS "condition", "taken_by" AS "culprit" '
        f'FROM ({newest}) GROUP BY "host"',
        counted("corrupt", Verdict.CORRUPT),
        counted("unusable", Verdict.INVALID, Verdict.FAILED),
        counted("disturbed", Verdict.DISTURBED),
        f'SELECT max("clock_held") AS "held" FROM ({newest}) GROUP BY "host"',
    )


def _lines() -> table.Panel:
    panel = (
        plain_table()
        .title("Each host in a line")
        .description(
            "The newest result of every case of a host: when the last one ended; how many cases "
            "there are, and how many of them are corrupt, invalid or failed, or disturbed; the "
            "lowest share of a limit and the lowest share delivered; what took most of the "
            "CPUs' time, with its share and the culprit; the largest share of a trial's time in "
            "which heat or power held a clock down. Nothing stands where there is none, or where "
            "it is unknown."
        )
        .height(9)
        # See the table of the board Overview.
        .with_transformation(transformation("filterFieldsByName", exclude={"names": ["Time"]}))
        .with_transformation(transformation("merge"))
        .with_transformation(organised(HOST_COLUMNS))
        .override_by_name("host", [*filtered(), prop("custom.minWidth", 150)])
        .override_by_name("measured", [prop("unit", AGE), *coloured_text(PLAIN), width(120)])
        .override_by_name("cases", number("none", 0, 60))
        .override_by_name("corrupt", [*number("none", 0, 70), *coloured_text(FOUND_CORRUPT)])
        .override_by_name("invalid, failed", [*number("none", 0, 105), *coloured_text(FOUND)])
        .override_by_name("disturbed", [*number("none", 0, 85), *coloured_text(FOUND)])
        .override_by_name("lowest of limit", [*number(SHARE, 1, 115), *coloured_text(OF_LIMIT)])
        .override_by_name("lowest delivered", [*number(SHARE, 1, 140), *coloured_text(DELIVERED)])
        .override_by_name("host was", [*coloured_text(PLAIN), width(90)])
        .override_by_name("taken", [*number(SHARE, 1, 75), *coloured_text(PLAIN)])
        .override_by_name("culprit", [*coloured_text(PLAIN), prop("custom.minWidth", 200)])
        .override_by_name("clock held", [*number(SHARE, 1, 95), *coloured_text(PLAIN)])
    )
    for letter, text in zip(ascii_uppercase, _line_queries(), strict=False):
        panel = panel.with_target(Query(text, letter, TABLE))
    return sorted_by(panel, "host")


def _words() -> list[models.ValueMapping]:
    """Return a colour for each certain word; all words stay."""
    return [coloured_words(SURE), nothing_there()]


def _word_cell(pixels: int = 130) -> list[models.DynamicConfigValue]:
    return [
        *filtered(),
        prop("mappings", _words()),
        prop("thresholds", thresholds(((None, "transparent"),)).build()),
        prop(
            "custom.cellOptions",
            common.TableColoredBackgroundCellOptions(common.TableCellBackgroundDisplayMode.BASIC),
        ),
        prop("custom.align", "center"),
        width(pixels),
    ]


def _matrix(title: str, description: str, field: str) -> table.Panel:
    """Return a table with a row for each case, as cases have long names, and a column for each
    host."""
    return (
        crossed("title", "host", field, "case", 235)
        .title(title)
        .description(description)
        .height(11)
        .min_width(120)
        .mappings(_words())
        .thresholds(thresholds(((None, "transparent"),)))
        .cell_options(
            common.TableColoredBackgroundCellOptions(common.TableCellBackgroundDisplayMode.BASIC)
        )
        .with_target(Query(decided(f'"title", "{field}"'), form=TABLE))
    )


def _changes() -> table.Panel:
    shown = [name for name in CHANGE_COLUMNS if name not in ("Time", "host")]
    fields = ", ".join(f'"{name}"' for name in (*shown, *CHANGE_NUMBERS))
    panel = (
        plain_table()
        .title("Changes")
        .description(
            "Where figures of a host changed, according to its jobs so far: the first job after "
            "each change (a job more or less), the size of the change with its interval, and the "
            "facts of the host and of hostbench that changed at that job. Empty: no change was "
            "found."
        )
        .height(9)
        .with_target(Query(f'SELECT {fields} {CHANGED} GROUP BY "host"', form=TABLE))
        .with_transformation(organised(CHANGE_COLUMNS, CHANGE_NUMBERS))
        .override_by_name("from", [prop("unit", MOMENT), width(150)])
        .override_by_name("host", [*filtered(), width(150)])
        .override_by_name("case", [*filtered(), prop("custom.minWidth", 270)])
        .override_by_name("word", _word_cell())
        .override_by_name(
            "first job after it", [prop("links", [CONSOLE_LINK, REPORT_LINK]), width(240)]
        )
        .override_by_name(
            CHANGE_COLUMNS["text"], [prop("custom.minWidth", 360), prop("custom.inspect", True)]
        )
    )
    return sorted_by(panel, "from", descending=True)


def _figures() -> table.Panel:
    panel = (
        plain_table()
        .title("Newest headline figures")
        .description(
            "What the two tables of words rest on. After / before: at the newest change. Would be "
            "seen: the least change that so many jobs would have shown. Of usual: the figure over "
            "the median of the hosts of its model, of times the other way round; expected: the "
            "least of a sound one of these hosts, of times the most."
        )
        .height(12)
        .with_target(Query(decided(FIGURES), form=TABLE))
        .with_transformation(organised(FIGURE_COLUMNS, ("case", "Time")))
        # Together no wider than a screen of 1440 pixels.
        .override_by_name("host", [*filtered(), width(105)])
        .override_by_name("case", [*filtered(), prop("custom.minWidth", 235)])
        .override_by_name("figure", figure_text(100))
        .override_by_name("change", _word_cell(100))
        # Without a colour, Grafana shows an empty column as JSON.
        .override_by_name("after / before", [*number(RATIO, 3, 105), *coloured_text(PLAIN)])
        .override_by_name("since", [prop("unit", DAY), width(95), *coloured_text(PLAIN)])
        .override_by_name("would be seen", [*number(SHARE, 1, 116), *coloured_text(PLAIN)])
        .override_by_name("jobs", number("none", 0, 50))
        .override_by_name("beside others", _word_cell())
        .override_by_name("expected", figure_text(100))
        .override_by_name("of usual", [*number(SHARE, 1, 75), *coloured_text(PLAIN)])
        .override_by_name("hosts", [*number("none", 0, 55), *coloured_text(PLAIN)])
        .override_by_name("job", [prop("links", [CONSOLE_LINK, REPORT_LINK]), width(122)])
    )
    return sorted_by(panel, "host", "case")


def _of_usual() -> timeseries.Panel:
    return (
        history(
            "Headline figures beside what is usual",
            "Every headline figure over the median of the hosts of its model, of times the other "
            "way round: below 100 % is slower. Empty: the orchestrator has no baseline.",
            SHARE,
            f'SELECT "of_usual" {DECIDED} GROUP BY "host", "workload", "label", "case"',
            NAME,
        )
        .span(24)
        .height(14)
        .legend(sorted_legend())
    )
