"""The queries of the boards: one InfluxQL statement each, written here and not in a query editor.

Grafana's SDK has no builder for InfluxDB, so `Query` is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef

from orchestrator.influx.points import JOB, NO_CHANGE, SAMPLES

SOURCE_UID = "hostbench-influxdb"
# There is at most one sample a second.
LEAST_INTERVAL = "1s"

TABLE, TIME_SERIES = "table", "time_series"


def source() -> DataSourceRef:
    """Return the data source that is provisioned with the boards."""
    return DataSourceRef(type_val="influxdb", uid=SOURCE_UID)


@dataclass(frozen=True)
class Query(Dataquery, Builder[Dataquery]):
    """One query of a panel. `alias` names its series; `$tag_NAME` in it stands for a tag."""

    text: str
    ref: str = "A"
    form: str = TABLE
    alias: str | None = None

    def build(self) -> Dataquery:
        """See Builder."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the query as Grafana stores it."""
        target: dict[str, object] = {
            "datasource": {"type": "influxdb", "uid": SOURCE_UID},
            "query": self.text,
            "rawQuery": True,
            "refId": self.ref,
            "resultFormat": self.form,
        }
        return target if self.alias is None else {**target, "alias": self.alias}


@dataclass(frozen=True)
class Annotations(Dataquery, Builder[Dataquery]):
    """One query of marks on all charts of a board.

    The field `text` is the text of a mark. Its other field becomes the title: Grafana uses the
    field that no option names.
    """

    text: str
    name: str

    def build(self) -> Dataquery:
        """See Builder."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the query as Grafana stores it: at these places Grafana reads only names of
        columns."""
        return {
            "datasource": {"type": "influxdb", "uid": SOURCE_UID},
            "fromAnnotations": True,
            "name": self.name,
            "query": self.text,
            "queryType": "tags",
            "refId": "Anno",
            "tagsColumn": "",
            "textColumn": "text",
            "timeEndColumn": "",
            "titleColumn": "",
        }


def series(text: str, alias: str, ref: str = "A") -> Query:
    """Return a query whose answer is drawn as series or bars."""
    return Query(text, ref, TIME_SERIES, alias)


def one_of(name: str, tag: str = "") -> str:
    """Return a condition: the tag is one of the values chosen in the variable `name`. Without
    `tag`, the tag has the variable's name."""
    return f'"{tag or name}" =~ /^${{{name}:regex}}$/'


def equals(name: str, value: str) -> str:
    """Return a condition: a tag, or a field of text, has this value."""
    return f"\"{name}\" = '{value}'"


def matches(tag: str, expression: str) -> str:
    """Return a condition: a tag matches a regular expression."""
    return f'"{tag}" =~ /{expression}/'


def differs(name: str, value: str) -> str:
    """Return a condition: a tag has another value, or is missing."""
    return f"\"{name}\" != '{value}'"


def present(tag: str) -> str:
    """Return a condition: the tag exists."""
    return f"\"{tag}\" != ''"


PRIMARY = equals("role", "primary")
# Excludes the workloads that mislead on purpose, which have this prefix (tests/contract): they
# appear in tables, but never among the best figures.
SOUND = '"workload" !~ /[.]naive_/'
CHOSEN = " AND ".join(one_of(name) for name in ("host", "suite", "workload"))
# The decisions about headline figures, and where these changed, as known now. Marks of changes
# belong to all suites of a host.
DECIDED = f'FROM "decision" WHERE $timeFilter AND {CHOSEN}'
MARKED = f'FROM "change" WHERE $timeFilter AND {one_of("host")} AND {one_of("workload")}'
CHANGED = f"{MARKED} AND {differs('word', NO_CHANGE)}"
# The states of jobs. They belong to no workload, and exist before the first result.
SUBMITTED = f'FROM "{JOB}" WHERE $timeFilter AND {one_of("host")} AND {one_of("suite")}'
CHOSEN_JOB = f"{CHOSEN} AND {one_of('job')}"


def results(condition: str = PRIMARY) -> str:
    """Return the source of results: by default those of our own cases."""
    return f'FROM "result" WHERE $timeFilter AND {CHOSEN} AND {condition}'


def latest(fields: str, tags: Sequence[str] = (), condition: str = PRIMARY) -> str:
    """Return a query of the last result of every case of a host, with these fields, and also
    grouped by these tags. Each point has `n`, even for a case without a figure."""
    grouped = ", ".join(f'"{tag}"' for tag in ("host", *tags, "case"))
    return f'SELECT last("n") AS "n", {fields} {results(condition)} GROUP BY {grouped}'


def decided(fields: str) -> str:
    """Return a query of the newest decision about every headline case of a host, with these fields.
    Each point has `jobs`."""
    return f'SELECT last("jobs") AS "jobs", {fields} {DECIDED} GROUP BY "host", "case"'


def over_latest(
    call: str, fields: str, tags: Sequence[str], condition: str = "", of: str = PRIMARY
) -> str:
    """Return a query of a statistic over the last result of every case, by these tags. `condition`
    selects among these by a field, `of` by tags."""
    where = f" WHERE {condition}" if condition else ""
    grouped = " GROUP BY " + ", ".join(f'"{tag}"' for tag in tags) if tags else ""
    inner = latest(fields, [tag for tag in tags if tag != "host"], of)
    return f"SELECT {call} FROM ({inner}){where}{grouped}"


def samples(metric: str, tags: Sequence[str], chosen: str = CHOSEN_JOB) -> str:
    """Return a query of the samples of a metric, one a second, or of their means for a longer
    range.

    Gaps are null, so that no line connects two trials. `chosen` selects the samples, for a board
    without a choice of jobs.
    """
    grouped = ", ".join(f'"{tag}"' for tag in tags)
    return (
        f'SELECT mean("value") FROM "{SAMPLES}"."sample" '
        f"WHERE $timeFilter AND {chosen} AND {equals('metric', metric)} "
        f"GROUP BY time($__interval), {grouped} fill(null)"
    )


def highest(expression: str, measurement: str, condition: str, tags: Sequence[str] = ()) -> str:
    """Return a query of the highest value of each interval, for measurements with a point for each
    trial: a range of weeks has too many points to draw."""
    grouped = "".join(f', "{tag}"' for tag in tags)
    inner = (
        f'SELECT {expression} AS "value" FROM "{SAMPLES}"."{measurement}" '
        f"WHERE $timeFilter AND {condition}"
    )
    inner += f" GROUP BY {grouped.removeprefix(', ')}" if tags else ""
    return (
        f'SELECT max("value") FROM ({inner}) WHERE $timeFilter '
        f"GROUP BY time($__interval){grouped} fill(none)"
    )


def last_trials(columns: Sequence[str], most: int) -> str:
    """Return a query of the trials that ended last, newest first, with these tags and fields."""
    named = ", ".join(f'"{column}"' for column in columns)
    return (
        f'SELECT {named} FROM "{SAMPLES}"."disturbance" '
        f"WHERE $timeFilter AND {CHOSEN_JOB} ORDER BY time DESC LIMIT {most}"
    )
