"""The result as CSV: one row a case, or one row a sample. Base units, full precision."""

import csv
import io
from collections.abc import Iterable, Sequence

from hostbench.models.result import CaseResult, ResultDocument

CASE_COLUMNS = (
    "job",
    "hostname",
    "case",
    "workload",
    "label",
    "params",
    "verdict",
    "reasons",
    "metric",
    "unit",
    "direction",
    "n",
    "median",
    "mean",
    "standard_deviation",
    "median_absolute_deviation",
    "minimum",
    "maximum",
    "interval_low",
    "interval_high",
    "interval_confidence",
    "half_width_ratio",
    "limit",
    "efficiency",
)
SAMPLE_COLUMNS = ("job", "case", "workload", "label", "trial", "time_unix_s", "t_s", "dt_s")


def case_table(document: ResultDocument) -> str:
    """One row for every metric of every case; the primary metric comes first."""
    rows = [row for case in document.cases for row in _case_rows(document, case)]
    return _csv(CASE_COLUMNS, rows)


def _case_rows(document: ResultDocument, case: CaseResult) -> list[list[object]]:
    head: list[object] = [
        document.job.id,
        document.host.hostname,
        case.case,
        case.workload,
        case.label,
        " ".join(f"{name}={value}" for name, value in case.params.items()),
        case.verdict,
        " ".join(reason.code for reason in case.reasons),
    ]
    if not case.metrics:
        return [head + [None] * (len(CASE_COLUMNS) - len(head))]
    names = sorted(case.metrics, key=lambda name: name != case.primary)
    return [head + _figures(case, name) for name in names]


def _figures(case: CaseResult, name: str) -> list[object]:
    metric = case.metrics[name]
    figures = metric.statistics
    return [
        name,
        metric.unit,
        metric.direction,
        figures.n,
        figures.median,
        figures.mean,
        figures.standard_deviation,
        figures.median_absolute_deviation,
        figures.minimum,
        figures.maximum,
        figures.interval.low,
        figures.interval.high,
        figures.interval.confidence,
        figures.half_width_ratio,
        metric.limit.value if metric.limit else None,
        metric.efficiency,
    ]


def sample_table(document: ResultDocument) -> str:
    """One row for every sample of every trial, one column for every metric a sample has."""
    names = dict.fromkeys(
        name
        for case in document.cases
        for trial in case.trials
        for sample in trial.samples
        for name in sample.metrics
    )
    rows = [
        [
            document.job.id,
            case.case,
            case.workload,
            case.label,
            trial.index,
            trial.start.time_unix_s + sample.t_s if trial.start else None,
            sample.t_s,
            sample.dt_s,
            *(sample.metrics.get(name) for name in names),
        ]
        for case in document.cases
        for trial in case.trials
        for sample in trial.samples
    ]
    return _csv((*SAMPLE_COLUMNS, *names), rows)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
