"""What a database holds, and what it should hold, as counted texts that can be compared."""

from collections import Counter
from collections.abc import Iterable

from hostbench.model.result import ResultDocument
from orchestrator.influx.client import InfluxClient
from orchestrator.influx.points import document_points

MEASUREMENTS = ("result", "sample", "disturbance", "control_plane")
# Of several jobs together: no document has them alone.
DECISIONS = ("decision", "change")
# The states of jobs, which the documents of those that ended give, too.
STATES = ("job",)


def stored(influx: InfluxClient, measurements: Iterable[str] = MEASUREMENTS) -> Counter[str]:
    """Every point of the database that a document alone gives, or those of other measurements."""
    found: Counter[str] = Counter()
    for retention in (None, "samples"):
        for name in measurements:
            for series in influx.query(f'SELECT * FROM "{name}" GROUP BY *', retention):
                tags = dict(sorted((k, v) for k, v in series.tags.items() if v))
                for row in series.rows():
                    found[repr((retention, name, tags, sorted(row.items())))] += 1
    return found


def meant(document: ResultDocument) -> Counter[str]:
    """Every point of a job."""
    return Counter(
        repr(
            (
                point.retention,
                point.measurement,
                # Line protocol cannot end a tag with a backslash.
                {name: value.replace("\\", "_") for name, value in sorted(point.tags.items())},
                sorted({**point.fields, "time": float(point.time_ms)}.items()),
            )
        )
        for point in document_points(document)
    )
