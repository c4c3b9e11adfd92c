"""The result as CSV: one row for each metric, or one for each sample. Base units, full
precision."""

import csv
import io
from collections.abc import Iterable, Sequence

from hostbench.model.result import (
    OWN_TOOL,
    CaseResult,
    Figure,
    PeerResult,
    Reason,
    ResultDocument,
    Statistics,
)

CASE_COLUMNS = (
    "job",
    "hostname",
    "case",
    "workload",
    "label",
    "params",
    "tool",
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
    "peer_version",
    "peer_title",
    "ours_over_peer",
    "ours_over_peer_low",
    "ours_over_peer_high",
    "ours_beside_peer",
    "peer_differs",
    "undisturbed",
    "undisturbed_low",
    "undisturbed_high",
    "delivered",
    "delivered_low",
    "delivered_high",
    "delivered_ratio",
    "least_difference_ratio",
    "condition",
    "condition_share",
    "culprit",
    "clock_ratio",
    "efficiency_at_expected_clock",
    "best",
)
# From n to half_width_ratio.
FIGURES = CASE_COLUMNS.index("limit") - CASE_COLUMNS.index("n")
TWO_FIGURES = CASE_COLUMNS.index("undisturbed")
SAMPLE_COLUMNS = ("job", "case", "workload", "label", "trial", "time_unix_s", "t_s", "dt_s")


def case_table(document: ResultDocument) -> str:
    """Return one row for every metric of every case, the primary metric first, then one for each
    peer."""
    rows = []
    for case in document.cases:
        rows += _case_rows(document, case)
        rows += [_peer_row(document, case, peer) for peer in case.peers]
    return _csv(CASE_COLUMNS, [row + [None] * (len(CASE_COLUMNS) - len(row)) for row in rows])


def _head(document: ResultDocument, case: CaseResult) -> list[object]:
    return [
        document.job.id,
        document.host.hostname,
        case.case,
        case.workload,
        case.label,
        " ".join(f"{name}={value}" for name, value in case.params.items()),
    ]


def _codes(reasons: Iterable[Reason]) -> str:
    return " ".join(reason.code for reason in reasons)


def _case_rows(document: ResultDocument, case: CaseResult) -> list[list[object]]:
    head = [*_head(document, case), OWN_TOOL, case.verdict, _codes(case.reasons)]
    if not case.metrics:
        return [head]
    names = sorted(case.metrics, key=lambda name: name != case.primary)
    rows = [head + _metric_cells(case, name) for name in names]
    if case.primary in case.metrics:
        rows[0] += [None] * (TWO_FIGURES - len(rows[0])) + _two_figures(case)
    return rows


def _two_figures(case: CaseResult) -> list[object]:
    """Return the cells from TWO_FIGURES on, which only the row of the primary metric has."""
    figure, condition = case.figure, case.condition
    return [
        *_figure(case.undisturbed),
        *_figure(case.delivered),
        case.delivered_ratio,
        figure.least_difference_ratio if figure else None,
        *((condition.state, condition.share, condition.culprit) if condition else (None,) * 3),
        *((case.clock.ratio, case.clock.efficiency) if case.clock else (None, None)),
        case.best,
    ]


def _figure(figure: Figure | None) -> list[object]:
    if figure is None:
        return [None] * 3
    interval = figure.interval
    return [figure.value, *((interval.low, interval.high) if interval else (None, None))]


def _metric_cells(case: CaseResult, name: str) -> list[object]:
    metric = case.metrics[name]
    return [
        name,
        metric.unit,
        metric.direction,
        *_figures(metric.statistics),
        metric.limit.value if metric.limit else None,
        metric.efficiency,
    ]


def _peer_row(document: ResultDocument, case: CaseResult, peer: PeerResult) -> list[object]:
    """Return the row of a peer. A peer whose figure belongs to no metric of ours leaves that cell
    empty."""
    ratio = peer.ratio
    return [
        *_head(document, case),
        peer.tool,
        peer.verdict,
        _codes(peer.reasons),
        peer.metric,
        peer.unit,
        _direction(case, peer),
        *(_figures(peer.statistics) if peer.statistics else [None] * FIGURES),
        None,
        None,
        peer.version,
        peer.title,
        *((ratio.median, ratio.interval.low, ratio.interval.high) if ratio else (None,) * 3),
        peer.ours.median if peer.ours else None,
        peer.difference or None,
    ]


def _direction(case: CaseResult, peer: PeerResult) -> str:
    """Return the direction of the metric of ours that the peer is compared with; a context figure
    that is a time is better low."""
    ours = case.metrics.get(peer.metric) if peer.metric else None
    if ours is not None:
        return ours.direction
    return "lower" if peer.unit == "s" else "higher"


def _figures(figures: Statistics) -> list[object]:
    return [
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
    ]


def sample_table(document: ResultDocument) -> str:
    """Return one row for every sample of every trial, with a column for every metric of a
    sample."""
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
