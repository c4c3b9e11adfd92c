"""What monitoring shows of a job: the line of its overview for each subsystem, and how its headline
figures compare with other hosts of the model."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from hostbench.decisions.baseline import measured_job
from hostbench.decisions.baseline_files import files, found_for
from hostbench.decisions.hostcheck import check_host
from hostbench.judge.overview import SubsystemLine, overview
from hostbench.model.baseline import Baseline, FigureCheck, HostCheck, HostKey, HostWord
from hostbench.model.decision import SubsystemStatus
from hostbench.model.result import ResultDocument


def job_statuses(
    document: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[SubsystemStatus, ...]:
    """Return the statuses of a result document, given as the JSON of a ResultDocument. Raise
    ValidationError."""
    cases = list(_slim_cases(document))
    slim = ResultDocument.model_validate({**document, "cases": cases}, strict=False)
    job = measured_job(slim)
    stamps = tuple((str(path), path.stat().st_mtime_ns) for path in files(environment))
    baseline = _baseline(job.key, stamps, tuple(sorted(environment.items())))
    return statuses_of(slim, check_host([job], baseline))


def statuses_of(document: ResultDocument, check: HostCheck) -> tuple[SubsystemStatus, ...]:
    """Return a status for each subsystem that ran a case. `check`: of the document's host."""
    return tuple(
        _status(document, line, [one for one in check.headlines if one.p is not None])
        for line in overview(document.cases)
        if line.measured
    )


def _status(
    document: ResultDocument, line: SubsystemLine, checked: list[FigureCheck]
) -> SubsystemStatus:
    case = line.headline
    metric = case.metrics[case.primary] if case is not None else None
    own = [one for one in checked if one.workload.partition(".")[0] == line.subsystem]
    words = {one.word for one in own}
    condition = line.condition
    return SubsystemStatus(
        # In a container of a cluster, the name of the host is that of the pod.
        host=document.member.node if document.member else document.host.hostname,
        subsystem=line.subsystem,
        job=document.job.id,
        suite=document.job.suite,
        ended_unix_s=document.job.finished_unix_s,
        workload=case and case.workload,
        label=case and case.label,
        unit=metric and metric.unit,
        figure=metric and metric.statistics.median,
        share_of_limit=metric and metric.efficiency,
        delivered_ratio=line.delivered_ratio,
        verdict=line.worst,
        condition=condition and condition.state,
        condition_ratio=condition and condition.share,
        word=next((word for word in HostWord if word in words), None),
        lost_ratio=max((one.lost_ratio or 0.0 for one in own), default=None),
    )


def _slim_cases(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cases without trials, whose models would take most of the time. One start event
    stays: it has the protocol, which is part of a host's model."""
    start: list[dict[str, Any]] = []
    for case in document["cases"]:
        trials: list[dict[str, Any]] = []
        for trial in () if start else case["trials"]:
            start = [one for one in trial["events"] if one.get("event") == "start"][:1]
            if start:
                trials = [{**trial, "events": start}]
                break
        yield {**case, "trials": trials, "peers": []}


@functools.lru_cache(maxsize=1)
def _baseline(
    key: HostKey, _stamps: tuple[tuple[str, int], ...], environment: tuple[tuple[str, str], ...]
) -> Baseline | None:
    """Return the baseline of a model; the files are read again when one of them has changed."""
    return found_for(key, dict(environment))[1]
