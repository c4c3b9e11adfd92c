"""What boards ask InfluxDB: one InfluxQL statement a query, written here and not in a query editor.

Grafana's SDK has no builder for InfluxDB, so `Query` is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef

from orchestrator.influx.points import JOB, NO_CHANGE, SAMPLES

SOURCE_UID = "hostbench-influxdb"
# A sample a second is the most there is.
LEAST_INTERVAL = "1s"

TABLE, TIME_SERIES = "table", "time_series"


def source() -> DataSourceRef:
    """The data source that is provisioned with the boards."""
    return DataSourceRef(type_val="influxdb", uid=SOURCE_UID)


@dataclass(frozen=True)
class Query(Dataquery, Builder[Dataquery]):
    """One query of a panel. `alias` names its series, `$tag_NAME` standing for a tag."""

    text: str
    ref: str = "A"
    form: str = TABLE
    alias: str | None = None

    def build(self) -> Dataquery:
        """See Builder."""
        return self

    def to_json(self) -> dict[str, object]:
        """As Grafana stores it."""
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
    """One query of marks on all charts of a board: its field `text` is what they say, and the other
    one stands above that, since Grafana takes what no option names for the title."""

    text: str
    name: str

    def build(self) -> Dataquery:
        """See Builder."""
        return self

    def to_json(self) -> dict[str, object]:
        """As Grafana stores it: nothing but the names of columns stands where it reads them."""
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
    """A query whose answer is drawn as series or bars."""
    return Query(text, ref, TIME_SERIES, alias)


def one_of(name: str, tag: str = "") -> str:
    """A condition: the tag is one of those chosen in a variable, which has its name unless another
    tag is given."""
    return f'"{tag or name}" =~ /^${{{name}:regex}}$/'


def equals(name: str, value: str) -> str:
    """A condition: a tag, or a field of text, is this."""
    return f"\"{name}\" = '{value}'"


def matches(tag: str, expression: str) -> str:
    """A condition: a tag matches a regular expression."""
    return f'"{tag}" =~ /{expression}/'


def differs(name: str, value: str) -> str:
    """A condition: a tag has another value, or there is no such tag."""
    return f"\"{name}\" != '{value}'"


def present(tag: str) -> str:
    """A condition: there is such a tag."""
    return f"\"{tag}\" != ''"


PRIMARY = equals("role", "primary")
# Without the workloads that mislead on purpose, which are called so (tests/contract): they stand in
# tables, and nowhere among the best figures.
SOUND = '"workload" !~ /[.]naive_/'
CHOSEN = " AND ".join(one_of(name) for name in ("host", "suite", "workload"))
# What is decided of headline figures, and where they changed, as it is known now: those are of all
# suites of a host.
DECIDED = f'FROM "decision" WHERE $timeFilter AND {CHOSEN}'
MARKED = f'FROM "change" WHERE $timeFilter AND {one_of("host")} AND {one_of("workload")}'
CHANGED = f"{MARKED} AND {differs('word', NO_CHANGE)}"
# The states of jobs. They are of no workload, and there before the first result is.
SUBMITTED = f'FROM "{JOB}" WHERE $timeFilter AND {one_of("host")} AND {one_of("suite")}'
CHOSEN_JOB = f"{CHOSEN} AND {one_of('job')}"


def results(condition: str = PRIMARY) -> str:
    """Where the results of our own cases, or others, are found."""
    return f'FROM "result" WHERE $timeFilter AND {CHOSEN} AND {condition}'


def latest(fields: str, tags: Sequence[str] = (), condition: str = PRIMARY) -> str:
    """The last result of every case of a host, with these fields and grouped by these tags too.
    Each point has `n`, also that of a case without a figure."""
    grouped = ", ".join(f'"{tag}"' for tag in ("host", *tags, "case"))
    return f'SELECT last("n") AS "n", {fields} {results(condition)} GROUP BY {grouped}'


def decided(fields: str) -> str:
    """The newest decision about every headline case of a host, with these fields; each has
    `jobs`."""
    return f'SELECT last("jobs") AS "jobs", {fields} {DECIDED} GROUP BY "host", "case"'


def over_latest(
    call: str, fields: str, tags: Sequence[str], condition: str = "", of: str = PRIMARY
) -> str:
    """A statistic over the last result of every case, by these tags; `condition` chooses among
    them by a field, `of` by tags."""
    where = f" WHERE {condition}" if condition else ""
    grouped = " GROUP BY " + ", ".join(f'"{tag}"' for tag in tags) if tags else ""
    inner = latest(fields, [tag for tag in tags if tag != "host"], of)
    return f"SELECT {call} FROM ({inner}){where}{grouped}"


def samples(metric: str, tags: Sequence[str], chosen: str = CHOSEN_JOB) -> str:
    """The samples of a metric, one a second, or their mean where the range is too long for so
    many; null in between, so that no line is drawn from one trial to the next. `chosen`: of what,
    on a board without a choice of jobs."""
    grouped = ", ".join(f'"{tag}"' for tag in tags)
    return (
        f'SELECT mean("value") FROM "{SAMPLES}"."sample" '
        f"WHERE $timeFilter AND {chosen} AND {equals('metric', metric)} "
        f"GROUP BY time($__interval), {grouped} fill(null)"
    )


def highest(expression: str, measurement: str, condition: str, tags: Sequence[str] = ()) -> str:
    """The highest value of each interval, of measurements that have a point a trial: a range of
    weeks has too many of them to be drawn one by one."""
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
    """The trials that ended last, the newest first, with these tags and fields."""
    named = ", ".join(f'"{column}"' for column in columns)
    return (
        f'SELECT {named} FROM "{SAMPLES}"."disturbance" '
        f"WHERE $timeFilter AND {CHOSEN_JOB} ORDER BY time DESC LIMIT {most}"
    )
