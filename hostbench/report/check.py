"""Whether a document's figures are those of its trials.

A document is derived from its trials alone, so everything derived can be computed again. One that
was edited by hand, or damaged in a way that left it readable, is refused: a report lends figures
weight.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import hostbench
from hostbench.choices import trials_telling
from hostbench.errors import UsageError, shown
from hostbench.models.limit import Limit
from hostbench.models.result import (
    WITH_FIGURE,
    CaseResult,
    MetricResult,
    PeerResult,
    ResultDocument,
    Statistics,
    TrialRecord,
    Verdict,
)
from hostbench.models.table import Metric
from hostbench.results import JobDirectory
from hostbench.statistics import describe
from hostbench.verdict import efficiency

# The same sum in another order, by another version of Python, may differ in the last digits.
TOLERANCE = 1e-9


class Contradiction(NamedTuple):
    """A field and the value it would have if the rest were right."""

    field: str
    stored: object
    expected: object


def load_checked(job: JobDirectory) -> ResultDocument:
    """The document of a job. Raises UsageError that names the first field that cannot be right, or
    the first trial that another version measured."""
    document = job.load()
    foreign = next(foreign_trials(document), None)
    if foreign is not None:
        raise UsageError(
            f"{job.document} mixes versions: {foreign}; figures of several versions are no one "
            f"result: measure those cases again with: hostbench run --resume {job.id}, or in a "
            "new job"
        )
    found = next(contradictions(document), None)
    if found is not None:
        raise UsageError(
            f"{job.document} contradicts itself: {found.field} is {shown(found.stored)}, and its "
            f"own trials make it {shown(found.expected)}; it was edited or damaged: build it again "
            f"from its journal with: hostbench run --resume {job.id}"
        )
    return document


def foreign_trials(document: ResultDocument) -> Iterator[str]:
    """The trials that another program measured than the document names, each in a sentence."""
    named = {program.subsystem: program for program in document.programs}
    for position, case in enumerate(document.cases):
        program = named.get(case.workload.partition(".")[0])
        for number, trial in enumerate(case.trials):
            if trial.start is None:
                continue
            measured = f"{trial.start.program} {trial.start.version}"
            stated = "no program of its subsystem"
            if program is not None:
                stated = f"{program.name} {program.version}"
            if measured != stated:
                at = f"cases.{position}.trials.{number}"
                yield f"{at} is of {measured}, and the document names {stated}"


def contradictions(document: ResultDocument) -> Iterator[Contradiction]:
    """What cannot be right in a document, field by field."""
    job = document.job
    yield from _compared("job.cases", job.cases, len(document.cases))
    found = [case.verdict for case in document.cases]
    verdicts = {verdict: found.count(verdict) for verdict in Verdict if verdict in found}
    # The summary keeps what was said while measuring; a later version may see it otherwise.
    if document.hostbench == hostbench.__version__:
        yield from _compared("job.verdicts", dict(job.verdicts), verdicts)
    for position, case in enumerate(document.cases):
        yield from _of_case(f"cases.{position}", case, document)


def _compared(field: str, stored: object, expected: object) -> Iterator[Contradiction]:
    if not _same(stored, expected):
        yield Contradiction(field, stored, expected)


def _same(stored: object, expected: object) -> bool:
    if isinstance(stored, float | int) and isinstance(expected, float | int):
        return math.isclose(stored, expected, rel_tol=TOLERANCE)
    return stored == expected


def _of_case(at: str, case: CaseResult, document: ResultDocument) -> Iterator[Contradiction]:
    metrics = document.workloads.get(case.workload)
    if metrics is None:
        yield Contradiction(f"{at}.workload", case.workload, sorted(document.workloads))
        return
    names = {metric.name: metric.unit for metric in metrics}
    primary = next(metric for metric in metrics if metric.primary)
    yield from _compared(f"{at}.primary", case.primary, primary.name)
    for position, trial in enumerate(case.trials):
        yield from _of_trial(f"{at}.trials.{position}", trial, primary)
    by_index = {trial.index: trial for trial in case.trials}
    if len(by_index) != len(case.trials):
        yield Contradiction(f"{at}.trials", len(case.trials), len(by_index))
    measured = [trial.index for trial in case.trials if trial.verdict in WITH_FIGURE]
    if not set(case.counted) <= set(measured):
        yield Contradiction(f"{at}.counted", case.counted, tuple(measured))
        return
    counted = [by_index[index] for index in case.counted]
    for name, metric in case.metrics.items():
        where = f"{at}.metrics.{name}"
        yield from _compared(f"{where}.unit", metric.unit, names.get(name))
        telling = trials_telling(name, case.params, case.trials, counted)
        yield from _of_metric(where, name, metric, telling)
    for position, peer in enumerate(case.peers):
        yield from _of_peer(f"{at}.peers.{position}", peer)


def _of_trial(at: str, trial: TrialRecord, primary: Metric) -> Iterator[Contradiction]:
    for name, limit in trial.limits.items():
        yield from _of_limit(f"{at}.limits.{name}", limit)
    if trial.verdict not in WITH_FIGURE:
        yield from _compared(f"{at}.value", trial.value, None)
        return
    measured = trial.end.metrics.get(primary.name) if trial.end else None
    yield from _compared(f"{at}.value", trial.value, measured)
    expected = efficiency(measured, trial.limits.get(primary.name), primary.direction)
    yield from _compared(f"{at}.efficiency", trial.efficiency, expected)


def _of_limit(at: str, limit: Limit) -> Iterator[Contradiction]:
    if limit.value is not None and limit.factors:
        product = math.prod(factor.value for factor in limit.factors)
        yield from _compared(f"{at}.value", limit.value, product)


def _of_metric(
    at: str, name: str, metric: MetricResult, telling: Sequence[TrialRecord]
) -> Iterator[Contradiction]:
    figures = [trial.end.metrics.get(name) if trial.end else None for trial in telling]
    values = [value for value in figures if value is not None]
    if not values:
        yield Contradiction(f"{at}.statistics.n", metric.statistics.n, len(values))
        return
    yield from _of_statistics(f"{at}.statistics", metric.statistics, values)
    limits = [trial.limits.get(name) for trial in telling]
    if metric.limit is not None and metric.limit not in limits:
        known = [limit.value for limit in limits if limit is not None]
        yield Contradiction(f"{at}.limit.value", metric.limit.value, known)
    ratios = [
        efficiency(v, limit, metric.direction) for v, limit in zip(values, limits, strict=True)
    ]
    expected = statistics.median(r for r in ratios if r is not None) if all(ratios) else None
    yield from _compared(f"{at}.efficiency", metric.efficiency, expected)


def _of_statistics(at: str, stored: Statistics, values: Sequence[float]) -> Iterator[Contradiction]:
    expected = describe(values)
    yield from _of_fields(
        at,
        stored,
        expected,
        (
            "n",
            "median",
            "mean",
            "standard_deviation",
            "median_absolute_deviation",
            "minimum",
            "maximum",
            "half_width_ratio",
            "outliers",
        ),
    )
    interval = ("low", "high", "confidence")
    yield from _of_fields(f"{at}.interval", stored.interval, expected.interval, interval)


def _of_fields(
    at: str, stored: object, expected: object, names: Iterable[str]
) -> Iterator[Contradiction]:
    for name in names:
        yield from _compared(f"{at}.{name}", getattr(stored, name), getattr(expected, name))


def _of_peer(at: str, peer: PeerResult) -> Iterator[Contradiction]:
    """A peer's figures are those of its trials, when all of them count."""
    values = [trial.value for trial in peer.trials if trial.value is not None]
    if peer.statistics is not None and peer.statistics.n == len(values):
        yield from _of_statistics(f"{at}.statistics", peer.statistics, values)
    elif peer.statistics is not None and peer.statistics.n > len(values):
        yield Contradiction(f"{at}.statistics.n", peer.statistics.n, len(values))
