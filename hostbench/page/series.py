"""The figures of hosts as series for Prometheus, in its text format: a file that node_exporter's
textfile collector reads, and a part of the orchestrator's GET /metrics.

SERIES is the only list of their names; docs/operations.md, "Prometheus", explains them.
"""

import functools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hostbench.base.errors import ResourceError, UsageError
from hostbench.decisions.baseline_files import checked_host
from hostbench.decisions.status import statuses_of
from hostbench.judge.overview import WORST_FIRST
from hostbench.model.baseline import HostWord
from hostbench.model.decision import SubsystemStatus
from hostbench.model.result import ConditionState, ResultDocument
from hostbench.model.verification import Verification
from hostbench.results.store import write_whole

# Of one host: what it costs to store them for a thousand hosts stays known.
SERIES_MOST = 50
# The longest name of a node in Kubernetes: two nodes must not become one.
LABEL_CHARACTERS_MOST = 253
# node_exporter reads the files that end so, and runs as another user.
SUFFIX, MODE = ".prom", 0o644
EXAMPLE = "/var/lib/prometheus/node-exporter/hostbench.prom"

# A state is the place in its tuple; the greater, the worse. A state set of OpenMetrics would take a
# series for each state, 15 instead of 3 a subsystem.
VERDICTS: tuple[StrEnum, ...] = WORST_FIRST[::-1]
CHECKS: tuple[StrEnum, ...] = (HostWord.AS_EXPECTED, HostWord.SUSPECT, HostWord.LOW)
# None is worse than another: the place in ConditionState.
CONDITIONS: tuple[StrEnum, ...] = tuple(ConditionState)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_OTHER = re.compile(r"[^a-z0-9]+")
_SECOND = {"s": "second", "hz": "hertz"}
_UNIT_CHARACTERS_MOST = 40


def _number(states: Sequence[StrEnum], state: StrEnum | None) -> float | None:
    return states.index(state) if state in states else None


def _words(states: Sequence[StrEnum]) -> str:
    return ", ".join(f"{number} {state}" for number, state in enumerate(states))


@dataclass(frozen=True)
class Series:
    """A row of the table: one series for each subsystem of a host.

    In `name` and `text`, `{unit}` and `{words}` stand for the unit of the headline figure. `value`
    None: no series. `labels`: those beside host and subsystem.
    """

    name: str
    text: str
    value: Callable[[SubsystemStatus], float | None]
    labels: Mapping[str, Callable[[SubsystemStatus], str | None]]


def _series(
    name: str,
    text: str,
    value: Callable[[SubsystemStatus], float | None],
    **labels: Callable[[SubsystemStatus], str | None],
) -> Series:
    return Series(name, text, value, labels)


# The most important first: with many subsystems, the last rows are left out.
SERIES = (
    _series(
        "hostbench_job_end_time_seconds",
        "When the job that measured the subsystem last ended, in seconds since 1970",
        lambda one: one.ended_unix_s,
    ),
    _series(
        "hostbench_verdict",
        f"The worst verdict of the subsystem's cases: {_words(VERDICTS)}",
        lambda one: _number(VERDICTS, one.verdict),
    ),
    _series(
        "hostbench_headline_{unit}",
        "The figure that describes the subsystem best, in {words}; hostbench_job_info has its case",
        lambda one: one.figure,
        workload=lambda one: one.workload,
    ),
    _series(
        "hostbench_headline_limit_ratio",
        "The share of its theoretical limit that the headline figure reached",
        lambda one: one.share_of_limit,
    ),
    _series(
        "hostbench_baseline_check",
        "The subsystem's headline figures beside other hosts of the model, by the worst of them: "
        f"{_words(CHECKS)}",
        lambda one: _number(CHECKS, one.word),
    ),
    _series(
        "hostbench_baseline_lost_ratio",
        "The share by which the worst headline figure is below the usual one of the model",
        lambda one: one.lost_ratio,
    ),
    _series(
        "hostbench_delivered_ratio",
        "The lowest share of its undisturbed figure that a case of the subsystem delivered",
        lambda one: one.delivered_ratio,
    ),
    _series(
        "hostbench_condition",
        "What took most from the subsystem's trials: " + _words(CONDITIONS),
        lambda one: _number(CONDITIONS, one.condition),
    ),
    _series(
        "hostbench_condition_ratio",
        "The share of the CPUs' time (when throttled: of the trials' time) that it took",
        lambda one: one.condition_ratio,
    ),
    _series(
        "hostbench_job_info",
        "The job that measured the subsystem last, and the case of its headline figure",
        lambda _: 1,
        job=lambda one: one.job,
        suite=lambda one: one.suite,
        workload=lambda one: one.workload,
        case=lambda one: one.label,
    ),
)


@functools.lru_cache(maxsize=64)  # of thousands of statuses
def unit_words(unit: str) -> str:
    """Return a unit as Prometheus writes it, in the plural: `bytes per second` for `byte/s`."""
    if unit == "1":
        return "ratio"
    over, *under = (_OTHER.sub(" ", part.lower()).strip() for part in unit.split("/"))
    counted = _SECOND.get(over, over)
    plural = counted if counted in ("1", "hertz") else f"{counted}s"
    parts = [plural if over != "1" else "", *(f"per {_SECOND.get(one, one)}" for one in under)]
    return " ".join(filter(None, parts))[:_UNIT_CHARACTERS_MOST]


def exposition(statuses: Iterable[SubsystemStatus]) -> bytes:
    """Return the series of hosts in Prometheus' text format, at most SERIES_MOST of each. The
    statuses are in the order of their hosts."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Statuses(statuses))
    return generate_latest(registry)


class _Statuses(Collector):
    def __init__(self, statuses: Iterable[SubsystemStatus]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[Metric]:
        families: dict[tuple[int, str], GaugeMetricFamily] = {}
        for _, group in groupby(self._statuses, key=lambda one: one.host):
            of_host = list(group)[:SERIES_MOST]
            rows = SERIES[: SERIES_MOST // len(of_host)]
            for status in of_host:
                _add(families, rows, status)
        # In the order of the table, whatever the first host has.
        for place in sorted(families):
            yield families[place]


def _add(
    families: dict[tuple[int, str], GaugeMetricFamily],
    rows: Sequence[Series],
    status: SubsystemStatus,
) -> None:
    words = unit_words(status.unit or "1")
    unit = words.replace(" ", "_")
    common = [_label(status.host), _label(status.subsystem)]
    for at, row in enumerate(rows):
        value = row.value(status)
        if value is None:
            continue
        name = row.name.format(unit=unit)
        if (family := families.get((at, name))) is None:
            labels = ["host", "subsystem", *row.labels]
            family = GaugeMetricFamily(name, row.text.format(words=words), labels=labels)
            families[at, name] = family
        own = (_label(of(status) or "") for of in row.labels.values())
        family.add_metric([*common, *own], value)


def _label(text: str) -> str:
    """Return a label's value: one line of bounded length that UTF-8 can hold."""
    clean = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode()
    if len(clean) <= LABEL_CHARACTERS_MOST:
        return clean
    return f"{clean[: LABEL_CHARACTERS_MOST - 1]}…"


# ---- the file for node_exporter ----


def job_series(document: ResultDocument) -> str:
    """Return the series of one job's host."""
    return exposition(statuses_of(document, checked_host(document, os.environ))).decode()


def verification_series(found: Verification) -> str:
    """Return the series of a verification: they stand beside those of jobs, in a file of their
    own."""
    host = [_label(found.hostname)]
    ended = GaugeMetricFamily(
        "hostbench_verify_end_time_seconds",
        "When the verification last ended, in seconds since 1970",
        labels=["host"],
    )
    ended.add_metric(host, time.time())
    errors = GaugeMetricFamily(
        "hostbench_verify_errors",
        "Trials of the verification that found a wrong result",
        labels=["host", "subsystem"],
    )
    checks = GaugeMetricFamily(
        "hostbench_verify_checks",
        "Operations, or bytes, whose results the verification compared",
        labels=["host", "subsystem", "unit"],
    )
    wrong = Counter[str]()
    for one in found.exposures:
        wrong[one.subsystem] += one.errors
        checks.add_metric([*host, one.subsystem, one.unit], one.checks)
    for subsystem, count in wrong.items():
        errors.add_metric([*host, subsystem], count)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families((ended, errors, checks)))
    return generate_latest(registry).decode()


class _Families(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def check_textfile(target: Path) -> None:
    """Refuse a file that node_exporter would not read, or that cannot be written, before anything
    is measured. Raise UsageError or ResourceError."""
    if target.suffix != SUFFIX or target.is_dir():
        raise UsageError(
            f"--openmetrics {target} is not the name of a file that ends in {SUFFIX}, and "
            f"node_exporter reads no others; give one such as {EXAMPLE}"
        )
    if not target.parent.is_dir():
        raise ResourceError(
            f"--openmetrics {target}: there is no directory {target.parent}; make it, and start "
            f"node_exporter with --collector.textfile.directory={target.parent}"
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise ResourceError(
            f"--openmetrics {target}: this user may not write in {target.parent}; let it, or name "
            "a file in another directory that node_exporter reads"
        )


def write_textfile(document: ResultDocument, target: Path) -> None:
    """Write the series of a job as a whole or not at all, readable for everybody. Raise
    ResourceError."""
    try:
        _write_text(job_series(document), target)
    except OSError as error:
        raise ResourceError(
            f"cannot write the series {target}: {error.strerror}; the result of the job is kept, "
            f"write them with: hostbench report {document.job.id} --format openmetrics "
            f"--output {target}"
        ) from None


def write_verification(found: Verification, target: Path) -> None:
    """Write the series of a verification, likewise. Raise ResourceError."""
    try:
        _write_text(verification_series(found), target)
    except OSError as error:
        raise ResourceError(
            f"cannot write the series {target}: {error.strerror}; the verification is kept"
        ) from None


def _write_text(text: str, target: Path) -> None:
    write_whole(Path(os.path.realpath(target)), text.encode(), mode=MODE)
