"""The points for InfluxDB: made from the records of a job, and from nothing else.

A running job and `reindex` call the same functions, so both make the same points: the same series,
the same fixed time, the same values. Writing one twice changes nothing. docs/influxdb.md lists
measurements, tags and fields.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from hostbench.base.units import human
from hostbench.decisions.history_words import fact_change
from hostbench.decisions.words import relative
from hostbench.judge.peer import ours_beside
from hostbench.model.baseline import FigureCheck
from hostbench.model.decision import ChangePoint
from hostbench.model.events import Disturbance, SampleEvent
from hostbench.model.job_decision import FigureDecision, JobDecisions
from hostbench.model.jobs import JobView
from hostbench.model.registry import subsystems
from hostbench.model.result import (
    OWN_TOOL,
    CaseResult,
    Condition,
    ConditionState,
    FarHostRecord,
    PeerResult,
    ResultDocument,
    SessionRecord,
    Statistics,
    TrialRecord,
)
from hostbench.model.table import Metric
from hostbench.plan.workloads import FAR_HOST, TARGET
from hostbench.results.document import planned_label

# The retention policy of points that are of interest for some weeks only; the default policy has no
# name.
SAMPLES = "samples"
SAMPLES_RETENTION_DAYS = 30
# Secondary metrics that boards use as an axis.
NUMBERED_METRICS = ("load_bytes_per_second", "offered_bytes_per_second", "operations_per_byte")
# The metric of a peer's figure that is compared with none of ours.
CONTEXT_METRIC = "figure"
REASON_CHARACTERS = 300
DECISION = "decision"
JOB = "job"
# Also written where a change was found earlier and is no longer found: a point cannot be withdrawn.
NO_CHANGE = "none"
MILLISECONDS = 1000
# In names and tag values, a backslash escapes only the characters listed here.
_NAME = str.maketrans({",": r"\,", " ": r"\ ", "=": r"\="})
_MEASUREMENT = str.maketrans({",": r"\,", " ": r"\ "})
_STRING = str.maketrans({'"': r"\"", "\\": r"\\"})


@dataclass(frozen=True, slots=True)
class Point:
    """One point. `tags` have no empty values, `fields` are floats and strings, `retention` is a
    retention policy, or None for the default one."""

    measurement: str
    tags: Mapping[str, str]
    fields: Mapping[str, float | str]
    time_ms: int
    retention: str | None = None


@dataclass(frozen=True)
class JobContext:
    """What all points of a job have in common.

    `workloads`: the metrics by full workload name. `far_host`: the second host of network cases;
    empty if there is none.
    """

    job: str
    host: str
    suite: str
    workloads: Mapping[str, tuple[Metric, ...]]
    far_host: str = ""

    @classmethod
    def of_session(cls, session: SessionRecord) -> Self:
        """Return the context of a running job."""
        far_host = _far_name(session.far_host)
        host = session.host.hostname
        return cls(session.job, host, session.suite.name, session.workloads, far_host)

    @classmethod
    def of_document(cls, document: ResultDocument) -> Self:
        """Return the context of a finished job."""
        far_host = _far_name(document.far_host)
        host = document.host.hostname
        return cls(document.job.id, host, document.suite.name, document.workloads, far_host)

    @property
    def tags(self) -> dict[str, str]:
        """The tags of measurements with a point for each sample or trial.

        The job is a field of these points. As a tag, each job would make new series, and InfluxDB
        keeps an index of all series in memory.
        """
        return {"host": self.host, "suite": self.suite}


@dataclass(frozen=True)
class CaseTags:
    """How tags name a case. `label` is the planned one, as `best` may become something else in each
    job."""

    case: str
    workload: str
    label: str

    @property
    def tags(self) -> dict[str, str]:
        """The case as tags."""
        return _without_empty({"workload": self.workload, "case": self.case, "label": self.label})


def _far_name(far_host: FarHostRecord | None) -> str:
    return "" if far_host is None else far_host.inventory.hostname


def milliseconds(time_unix_s: float) -> int:
    """Return the time of a point in milliseconds since 1970."""
    return round(time_unix_s * MILLISECONDS)


def sample_points(
    job: JobContext, case: CaseTags, index: int, time_unix_s: float, sample: SampleEvent
) -> list[Point]:
    """Return a point for each metric of a sample of trial `index`, which began at `time_unix_s`."""
    time_ms = milliseconds(time_unix_s + sample.t_s)
    return [
        Point(
            "sample",
            {**job.tags, **case.tags, "metric": metric},
            {
                "value": float(value),
                "t_s": float(sample.t_s),
                "trial": float(index),
                "job": job.job,
            },
            time_ms,
            SAMPLES,
        )
        for metric, value in sample.metrics.items()
        if value is not None
    ]


def trial_points(job: JobContext, case: CaseTags, trial: TrialRecord) -> list[Point]:
    """Return points on what disturbed a finished trial, and on what hostbench itself used during
    it."""
    points = []
    time_ms = milliseconds(trial.time_unix_s)
    if trial.end is not None:
        fields: dict[str, float | str] = {
            "job": job.job,
            "trial": float(trial.index),
            "verdict": trial.verdict.value,
            "elapsed_s": trial.end.elapsed_s,
            "threads": float(len(trial.end.threads)),
            **_numbers(trial.end.disturbance),
        }
        points.append(Point("disturbance", {**job.tags, **case.tags}, fields, time_ms, SAMPLES))
    usage = trial.control_plane
    for process in usage.processes if usage else ():
        tags = {"host": job.host, "component": process.component}
        numbers = {
            "cpu_s": process.cpu_s,
            "elapsed_s": process.elapsed_s,
            "cpu_ratio": process.cpu_ratio,
            "written_bytes": process.written_bytes,
        }
        fields = {"job": job.job, **_known(numbers)}
        points.append(Point("control_plane", tags, fields, time_ms, SAMPLES))
    return points


def case_points(job: JobContext, case: CaseResult) -> list[Point]:
    """Return the results of a finished case: ours, one point for each metric, and the peers'."""
    if case.verdict is None or not case.trials:
        return []
    tags = _case_tags(job, case)
    time_ms = milliseconds(case.trials[0].time_unix_s)
    points = [
        Point(
            "result",
            {**tags, "tool": OWN_TOOL, "metric": metric, "role": _role(case, metric)},
            {
                **_metric_fields(case, metric),
                **_outcome(job, case, metric),
                **_abscissas(case),
            },
            time_ms,
        )
        # A case without a figure has a point for its primary metric.
        for metric in case.metrics or (case.primary,)
    ]
    return points + [_peer_point(job, tags, peer, time_ms) for peer in case.peers]


def document_points(document: ResultDocument) -> Iterator[Point]:
    """Yield every point of a job: exactly those that a running job writes."""
    job = JobContext.of_document(document)
    for case in document.cases:
        tags = CaseTags(case.case, case.workload, planned_label(case))
        for trial in case.trials:
            for sample in trial.samples:
                yield from sample_points(job, tags, trial.index, trial.time_unix_s, sample)
            yield from trial_points(job, tags, trial)
        for peer in case.peers:
            for trial in peer.trials:
                yield from trial_points(job, tags, trial)
        yield from case_points(job, case)


def job_point(view: JobView) -> Point:
    """Return the present state of a job as a point.

    Job and state identify the point, by time and tag. So a point that is written late, for example
    after an outage, replaces no other state, and `since_ms` shows which one is the last. The job is
    no tag: see `JobContext.tags`.
    """
    began_or_ended = view.ended_unix_s or view.started_unix_s or view.submitted_unix_s
    times = {
        "submitted_ms": view.submitted_unix_s,
        "began_ms": view.started_unix_s,
        "since_ms": view.since_unix_s or began_or_ended,
    }
    return Point(
        JOB,
        {"host": view.hosts[0], "suite": view.suite, "state": view.state.value},
        {
            "job": view.id,
            # Also without a reason: otherwise the field would keep that of an earlier point.
            "reason": (view.reason or "")[:REASON_CHARACTERS],
            **_known({name: at and milliseconds(at) for name, at in times.items()}),
        },
        milliseconds(view.submitted_unix_s),
    )


def decision_points(document: ResultDocument, decided: JobDecisions) -> Iterator[Point]:
    """Yield the decisions about a stored job.

    There is one point for each headline figure. For each job that the figure was compared with,
    another point says whether a change begins there, as known now.
    """
    job = JobContext.of_document(document)
    cases = {case.case: case for case in document.cases}
    for figure in decided.figures:
        case = cases[figure.check.case]
        tags = {
            "host": job.host,
            "subsystem": case.workload.partition(".")[0],
            **CaseTags(case.case, case.workload, planned_label(case)).tags,
        }
        title = f"{case.workload} {planned_label(case)}".strip()
        fields = {"job": job.job, "title": title, **_decided(figure)}
        began_ms = milliseconds(document.job.created_unix_s)
        yield Point(DECISION, {**tags, "suite": job.suite}, fields, began_ms)
        changes = {change.job: change for change in figure.history.changes}
        for point in figure.history.points:
            change = changes.get(point.job)
            known = {"word": NO_CHANGE} if change is None else _change_fields(change, title)
            yield Point("change", tags, known, milliseconds(point.created_unix_s))


def _decided(figure: FigureDecision) -> dict[str, float | str]:
    check, history = figure.check, figure.history
    numbers: dict[str, float | int | None] = {
        "value": check.value,
        "jobs": len(history.points),
        "least_effect": history.least_effect_ratio,
        "hosts": check.hosts,
        "expected": check.expected,
        "usual": check.usual,
        "of_usual": _of_usual(check),
    }
    if history.changes:
        newest = history.changes[-1]
        numbers.update(
            ratio=newest.ratio,
            low=newest.low,
            high=newest.high,
            since_ms=milliseconds(newest.created_unix_s),
        )
    texts = {"figure": check.value, "expected_figure": check.expected}
    return {
        "change": history.word.value,
        "baseline": check.word.value,
        "unit": check.unit,
        **{name: human(value, check.unit) for name, value in texts.items() if value is not None},
        **_known(numbers),
    }


def _of_usual(check: FigureCheck) -> float | None:
    """Return the share of the usual speed: the figure over the usual one, inverted for times."""
    if check.usual is None:
        return None
    return check.value / check.usual if check.direction == "higher" else check.usual / check.value


def _change_fields(change: ChangePoint, title: str) -> dict[str, float | str]:
    low, high = relative(change.low).removesuffix(" %"), relative(change.high)
    parts = [f"{change.word} {relative(change.ratio)} ({low} to {high})"]
    parts += [fact_change(fact) for fact in change.facts]
    return {
        "word": change.word.value,
        "title": title,
        "job": change.job,
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "text": "; ".join(parts)[:REASON_CHARACTERS],
    }


def _case_tags(job: JobContext, case: CaseResult) -> dict[str, str]:
    resolved = {
        name: _resolved(case, name) for name in case.params if "tag" in case.meaning(name).roles
    }
    device = {"device": _device(case)}
    network = {"far_host": _far_host(job, case), "paced": _paced(case)}
    return {
        "host": job.host,
        "suite": job.suite,
        "subsystem": case.workload.partition(".")[0],
        **CaseTags(case.case, case.workload, planned_label(case)).tags,
        **_without_empty({**resolved, **device, **network}),
    }


def _far_host(job: JobContext, case: CaseResult) -> str:
    """Return the far host of a case: another far host is another path."""
    return job.far_host if case.params.get(TARGET) == FAR_HOST else ""


def _paced(case: CaseResult) -> str:
    """Return whether a network case has a set rate, which then determines its throughput; empty for
    other cases."""
    subsystem = subsystems().get(case.workload.partition(".")[0])
    if subsystem is None or not subsystem.has_far_ends:
        return ""
    return "yes" if case.params.get("rate") else "no"


def _resolved(case: CaseResult, name: str) -> str:
    """Return a parameter as the program resolved it, such as the instruction set that `best`
    became."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    resolved = start.params.get(name) if start is not None else None
    return str(case.params.get(name, "") if resolved is None else resolved)


def _device(case: CaseResult) -> str:
    """Return the GPU of a case by number and name, such as `0: NVIDIA L4`: a host may have two of
    the same name."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    name = start.facts.get("device_name") if start is not None else None
    return f"{_resolved(case, 'device')}: {name}" if name else ""


def _abscissas(case: CaseResult) -> dict[str, float | str]:
    """Return what charts may draw the figures of a case over.

    These are parameters that are an axis and no tag, as numbers where possible, and metrics. A word
    that was never resolved is no number and is left out.
    """
    found: dict[str, float | str] = {}
    for name in case.params:
        param, resolved = case.meaning(name), _resolved(case, name)
        if "axis" not in param.roles or "tag" in param.roles:
            continue
        if not param.is_number:
            found[name] = resolved
            continue
        with contextlib.suppress(ValueError):
            found[name] = float(resolved)
    for name in NUMBERED_METRICS:
        if name in case.metrics:
            found[name] = float(case.metrics[name].statistics.median)
    return found


def _without_empty(tags: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if value}


def _role(case: CaseResult, metric: str) -> str:
    return "primary" if metric == case.primary else "secondary"


def _metric_fields(case: CaseResult, name: str) -> dict[str, float | str]:
    metric = case.metrics.get(name)
    if metric is None:
        return {"n": 0.0}
    limit = metric.limit.value if metric.limit else None
    return {
        **_statistics(metric.statistics),
        **_known({"limit": limit, "efficiency": metric.efficiency}),
        **(_two_figures(case) if name == case.primary else {}),
    }


def _two_figures(case: CaseResult) -> dict[str, float | str]:
    """Return what was delivered beside the figure, what took the rest, and the best trial's."""
    delivered, condition = case.delivered, case.condition
    numbers = _known(
        {
            "delivered": delivered.value if delivered else None,
            "delivered_ratio": case.delivered_ratio,
            "best": case.best,
        }
    )
    return {**numbers, **({} if condition is None else _condition_fields(condition))}


def _condition_fields(condition: Condition) -> dict[str, float | str]:
    """Return what the host was like, and apart what was taken of its CPU time and how long a clock
    was held down: one of these may be the largest share, and hide the other."""
    taken = condition.of_cpu_time
    known: dict[str, float | str | None] = {
        "condition": condition.state.value,
        "condition_share": condition.share,
        "culprit": condition.culprit,
        "clock_held": condition.share_of(ConditionState.THROTTLED),
    }
    if taken is not None and taken.share is not None:
        known |= {"taken": taken.state.value, "taken_share": taken.share, "taken_by": taken.culprit}
    return {name: value for name, value in known.items() if value is not None}


def _statistics(found: Statistics) -> dict[str, float | str]:
    return _known(
        {
            "value": found.median,
            "n": found.n,
            "low": found.interval.low,
            "high": found.interval.high,
            "spread": found.half_width_ratio,
        }
    )


def _outcome(job: JobContext, case: CaseResult, metric: str) -> dict[str, float | str]:
    """Return verdict, job and unit; for the primary metric also the figures of its peer, because
    InfluxQL cannot join."""
    assert case.verdict is not None
    fields: dict[str, float | str] = {
        "verdict": case.verdict.value,
        "job": job.job,
        "unit": _unit(job.workloads[case.workload], metric),
    }
    if metric != case.primary:
        return fields
    fields["until_ms"] = float(_end_ms(case))
    if metric in case.metrics:
        fields["figure"] = human(case.metrics[metric].statistics.median, str(fields["unit"]))
    if case.reasons:
        text = "; ".join(reason.text for reason in case.reasons)
        fields["reason"] = text[:REASON_CHARACTERS]
    compared = next((peer for peer in case.peers if peer.ratio is not None), None)
    if compared is not None and compared.ratio is not None:
        fields["peer"] = compared.tool
        fields["peer_ratio"] = float(compared.ratio.median)
        if compared.statistics is not None:
            fields["peer_value"] = float(compared.statistics.median)
        ours = ours_beside(case, compared)
        if ours is not None:
            fields["peer_ours"] = float(ours.median)
    return fields


def _end_ms(case: CaseResult) -> int:
    """Return when the last trial ended, peers' included: a board looks from the point's time to
    this time."""
    trials = [*case.trials, *(trial for peer in case.peers for trial in peer.trials)]
    return max(milliseconds(trial.time_unix_s + trial.wall_s) for trial in trials)


def _unit(metrics: Sequence[Metric], name: str) -> str:
    return next(metric.unit for metric in metrics if metric.name == name)


def _peer_point(job: JobContext, tags: Mapping[str, str], peer: PeerResult, time_ms: int) -> Point:
    fields: dict[str, float | str] = {
        **(_statistics(peer.statistics) if peer.statistics else {"n": 0.0}),
        "verdict": peer.verdict.value,
        "job": job.job,
        "unit": peer.unit,
        "title": " ".join(part for part in (peer.tool, peer.version, peer.title) if part),
    }
    if peer.ratio is not None:
        fields["ratio"] = float(peer.ratio.median)
    if peer.differs:
        fields["differs"] = peer.difference
    metric = peer.metric or CONTEXT_METRIC
    own = {"tool": peer.tool, "metric": metric, "role": "peer"}
    return Point("result", {**tags, **own}, fields, time_ms)


def _numbers(disturbance: Disturbance) -> dict[str, float | str]:
    return _known(disturbance.model_dump())


def _known(numbers: Mapping[str, float | int | None]) -> dict[str, float | str]:
    """Return the known numbers as floats, since a field cannot change its type."""
    return {name: float(value) for name, value in numbers.items() if value is not None}


def line(point: Point) -> str:
    """Return the point as one line, without the line feed. Equal points give equal lines."""
    assert point.fields, "a point has at least one field"
    tags = "".join(
        f",{stored_text(name).translate(_NAME)}={stored_text(value).translate(_NAME)}"
        for name, value in sorted(point.tags.items())
    )
    fields = ",".join(
        f"{stored_text(name).translate(_NAME)}={_field(value)}"
        for name, value in sorted(point.fields.items())
    )
    return (
        f"{stored_text(point.measurement).translate(_MEASUREMENT)}{tags} {fields} {point.time_ms}"
    )


def stored_text(text: str) -> str:
    """Return a name or a tag value without the characters that it cannot hold: a line feed ends the
    line, and a final backslash would escape the comma after it and cannot itself be escaped."""
    return _printable(text, "_").replace("\\", "_")


def _printable(text: str, instead: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else instead for character in text)


def _field(value: float | str) -> str:
    if isinstance(value, str):
        return f'"{_printable(value, " ").translate(_STRING)}"'
    assert math.isfinite(value), "models refuse what is not finite"
    return repr(float(value))
