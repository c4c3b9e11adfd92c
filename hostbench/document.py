"""Assembles the result document from the records of a journal.

The document holds nothing that is not derived from them, so it can be built again at any time.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hostbench.choices import BEST, trials_telling
from hostbench.exitcode import ExitCode
from hostbench.judge import primary_metric
from hostbench.models.events import ParamValue, StartEvent
from hostbench.models.limit import Limit
from hostbench.models.result import (
    OWN_TOOL,
    CaseRecord,
    CaseResult,
    IdleRecord,
    JobState,
    JobSummary,
    MetricResult,
    PlannedCase,
    Reason,
    Record,
    ResultDocument,
    SessionRecord,
    StateRecord,
    TrialRecord,
    Verdict,
)
from hostbench.models.table import Metric
from hostbench.peerjudge import peer_results
from hostbench.peers import equivalent_command
from hostbench.plan import param_word
from hostbench.repeats import counted_trials
from hostbench.statistics import describe
from hostbench.verdict import case_verdict, efficiency

# What it finds says nothing where the C library moves the bytes: that chooses for itself.
STORE, LIBC = "store", "libc"
LEFT_TO_LIBC = frozenset({"isa", "streams"})


@dataclass
class Progress:
    """What a journal says so far. Dictionaries are by case hash; `created_unix_s` is that of the
    first session."""

    session: SessionRecord
    created_unix_s: float
    trials: dict[str, list[TrialRecord]] = field(default_factory=dict)
    peer_trials: dict[str, list[TrialRecord]] = field(default_factory=dict)
    idle: dict[str, IdleRecord] = field(default_factory=dict)
    done: dict[str, CaseRecord] = field(default_factory=dict)
    ended: StateRecord | None = None

    def take(self, record: TrialRecord | IdleRecord | CaseRecord) -> None:
        """Notes what a record of the running session says."""
        if isinstance(record, TrialRecord):
            own = record.tool == OWN_TOOL
            trials = self.trials if own else self.peer_trials
            trials.setdefault(record.case, []).append(record)
        elif isinstance(record, IdleRecord):
            self.idle.update(dict.fromkeys(record.cases, record))
        else:
            self.done[record.case] = record


def replay(records: Iterable[Record]) -> Progress:
    """Where the job stands. The first record must be a session."""
    progress: Progress | None = None
    for record in records:
        if isinstance(record, SessionRecord):
            progress = _next_session(progress, record)
            continue
        assert progress is not None, "a journal begins with a session"
        if isinstance(record, StateRecord):
            progress.ended = record
        else:
            progress.take(record)
    assert progress is not None, "a journal begins with a session"
    return progress


def _next_session(before: Progress | None, session: SessionRecord) -> Progress:
    """A resumption forgets every case that it does not keep."""
    if before is None:
        return Progress(session, session.time_unix_s)
    kept = session.kept
    return Progress(
        session=session,
        created_unix_s=before.created_unix_s,
        trials={case: before.trials[case] for case in kept},
        peer_trials={case: before.peer_trials.get(case, []) for case in kept},
        idle={case: before.idle[case] for case in kept if case in before.idle},
        done={case: before.done[case] for case in kept},
    )


def assemble(progress: Progress, unended: JobState = JobState.INTERRUPTED) -> ResultDocument:
    """The result document. `unended` is the state of a job that did not say how it ended."""
    session = progress.session
    ended = progress.ended
    return ResultDocument(
        job=ended.summary if ended else summarise(progress, unended, None),
        reason=ended.reason if ended else None,
        hostbench=session.hostbench,
        programs=session.programs,
        host=session.host,
        suite=session.suite,
        workloads=session.workloads,
        cases=tuple(case_result(progress, case) for case in session.cases),
        far_host=session.far_host,
    )


def summarise(progress: Progress, state: JobState, finished_unix_s: float | None) -> JobSummary:
    """The job in one line. `finished_unix_s` is None while it has not ended."""
    verdicts = [
        progress.done[case.case].verdict
        for case in progress.session.cases
        if case.case in progress.done
    ]
    return JobSummary(
        id=progress.session.job,
        suite=progress.session.suite.name,
        state=state,
        hostname=progress.session.host.hostname,
        created_unix_s=progress.created_unix_s,
        finished_unix_s=finished_unix_s,
        cases=len(progress.session.cases),
        verdicts={verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts},
    )


def case_result(progress: Progress, case: PlannedCase) -> CaseResult:
    """What is known of one case; its verdict is None while it is not done."""
    trials = progress.trials.get(case.case, [])
    done = progress.done.get(case.case)
    counted = counted_trials(case, trials)
    metrics = progress.session.workloads[case.workload]
    primary = primary_metric(metrics).name
    results = _metric_results(metrics, case, trials, counted)
    idle = progress.idle.get(case.case)
    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    if done is not None:
        statistics_of_primary = results[primary].statistics if primary in results else None
        verdict, reasons = case_verdict(case, trials, counted, statistics_of_primary, idle)
    failed = verdict in (Verdict.FAILED, Verdict.SKIPPED)
    return CaseResult(
        case=case.case,
        workload=case.workload,
        label=full_label(case, _first_start(trials)),
        params=case.params,
        given=case.given,
        repeats=case.repeats,
        verdict=verdict,
        reasons=reasons,
        stopped=done.stopped if done else None,
        primary=primary,
        # A case that failed in one trial has no figure from the others.
        metrics={} if failed else results,
        counted=() if failed else tuple(trial.index for trial in counted),
        idle=idle,
        trials=tuple(trials),
        peers=peer_results(case, trials, progress.peer_trials.get(case.case, [])),
        equivalent_command=None if case.naive else _equivalent(case, _first_start(trials)),
        naive=case.naive,
    )


def _equivalent(case: PlannedCase, start: StartEvent | None) -> str | None:
    """Of what the program resolved; None of a case that did not begin."""
    if start is None:
        return None
    told = {
        name: value for name, value in start.params.items() if isinstance(value, int | float | str)
    }
    workload = case.workload.partition(".")[2]
    return equivalent_command(case.subsystem, workload, told)


def full_label(case: PlannedCase, start: StartEvent | None) -> str:
    """The case's label, with what the program chose where it was left the choice, as the first
    trial that started says."""
    return f"{case.label} {_chosen(case.params, start)}".strip()


def planned_label(case: CaseResult) -> str:
    """The case's label without what the program chose, which may be another in each job."""
    return case.label.removesuffix(_chosen(case.params, _first_start(case.trials))).strip()


def _chosen(params: Mapping[str, ParamValue], start: StartEvent | None) -> str:
    """What `best` became, in words; empty where nothing was left to the program."""
    if start is None:
        return ""
    left_out = LEFT_TO_LIBC if start.params.get(STORE) == LIBC else frozenset()
    return " ".join(
        param_word(name, start.params[name])
        for name, value in params.items()
        if value == BEST and name in start.params and name not in left_out
    )


def _first_start(trials: Iterable[TrialRecord]) -> StartEvent | None:
    return next((trial.start for trial in trials if trial.start), None)


def _metric_results(
    metrics: Sequence[Metric],
    case: PlannedCase,
    trials: Sequence[TrialRecord],
    counted: Sequence[TrialRecord],
) -> dict[str, MetricResult]:
    """The metrics that there are figures for."""
    results = {}
    for metric in metrics:
        telling = trials_telling(metric.name, case.params, trials, counted)
        ends = [trial.end for trial in telling if trial.end]
        values = [value for end in ends if (value := end.metrics[metric.name]) is not None]
        if values:
            results[metric.name] = _metric_result(metric, values, telling)
    return results


def _metric_result(
    metric: Metric, values: Sequence[float], counted: Sequence[TrialRecord]
) -> MetricResult:
    limits = [trial.limits[metric.name] for trial in counted if metric.name in trial.limits]
    ratios = [
        ratio
        for value, trial in zip(values, counted, strict=True)
        if (ratio := efficiency(value, trial.limits.get(metric.name), metric.direction)) is not None
    ]
    return MetricResult(
        unit=metric.unit,
        direction=metric.direction,
        statistics=describe(values),
        limit=_middle_limit(limits),
        efficiency=statistics.median(ratios) if len(ratios) == len(values) else None,
    )


def _middle_limit(limits: Sequence[Limit]) -> Limit | None:
    """The limit of the trial in the middle: a real one, whose factors multiply to its value."""
    known = [limit for limit in limits if limit.value is not None]
    if not known:
        return limits[0] if limits else None
    middle = statistics.median_low([limit.value for limit in known if limit.value is not None])
    return next(limit for limit in known if limit.value == middle)


def job_exit_code(document: ResultDocument) -> ExitCode:
    """What a finished job makes of the command's exit code."""
    verdicts = {case.verdict for case in document.cases}
    failures = {
        trial.failure.exit_code
        for case in document.cases
        for trial in case.trials
        if trial.failure is not None
    }
    if Verdict.INVALID in verdicts or ExitCode.INVALID in failures:
        return ExitCode.INVALID
    if Verdict.FAILED in verdicts:
        # When nothing else happened, the one cause says more than "a case failed".
        alone = verdicts == {Verdict.FAILED} and len(failures) == 1
        return ExitCode(failures.pop()) if alone else ExitCode.CASE_FAILED
    if verdicts == {Verdict.SKIPPED}:
        return ExitCode.NOTHING_RAN
    return ExitCode.OK
