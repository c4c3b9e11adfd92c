"""Assembles the result document from the records of a journal.

Everything in the document derives from these records, so it can be built again at any time.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hostbench.base.exitcode import ExitCode
from hostbench.judge.case import BEST, finished_case, unfinished_figures
from hostbench.judge.clock import with_clocks
from hostbench.judge.figure import Measured, MeasuredCases
from hostbench.judge.trial import primary_metric
from hostbench.model.events import ParamValue, StartEvent
from hostbench.model.host import Boot
from hostbench.model.registry import subsystems
from hostbench.model.result import (
    OWN_TOOL,
    CaseRecord,
    CaseResult,
    IdleRecord,
    JobState,
    JobSummary,
    PeerFigures,
    PeerResult,
    PlannedCase,
    Record,
    ResultDocument,
    SessionRecord,
    StateRecord,
    TrialRecord,
    TwoFigures,
    Verdict,
)
from hostbench.model.subsystem import GuestSpread
from hostbench.model.table import ParamMeaning
from hostbench.plan.label import param_word
from hostbench.programs.subsystem import HasPeers

# If the C library moves the bytes, this choice of the program means nothing: the library chooses
# itself.
STORE, LIBC = "store", "libc"
LEFT_TO_LIBC = frozenset({"isa", "streams"})


@dataclass
class Progress:
    """What a journal holds so far. Dictionaries are by case hash; `created_unix_s` and `boot`
    belong to the first session. `cut`: the message about a journal whose last record was
    incomplete."""

    session: SessionRecord
    created_unix_s: float
    boot: Boot | None = None
    trials: dict[str, list[TrialRecord]] = field(default_factory=dict)
    peer_trials: dict[str, list[TrialRecord]] = field(default_factory=dict)
    idle: dict[str, IdleRecord] = field(default_factory=dict)
    done: dict[str, CaseRecord] = field(default_factory=dict)
    ended: StateRecord | None = None
    cut: str | None = None

    def take(self, record: TrialRecord | IdleRecord | CaseRecord) -> None:
        """Take over a record of the running session."""
        if isinstance(record, TrialRecord):
            own = record.tool == OWN_TOOL
            trials = self.trials if own else self.peer_trials
            trials.setdefault(record.case, []).append(record)
        elif isinstance(record, IdleRecord):
            self.idle.update(dict.fromkeys(record.cases, record))
        else:
            self.done[record.case] = record


def replay(records: Iterable[Record]) -> Progress:
    """Return the progress of the job. The first record must be a session."""
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
    """Return the progress at the start of a session. A resumption drops every case that it neither
    keeps nor continues."""
    if before is None:
        return Progress(session, session.time_unix_s, session.boot)
    known = (*session.kept, *session.continued)
    return Progress(
        session=session,
        created_unix_s=before.created_unix_s,
        boot=before.boot,
        trials={case: before.trials[case] for case in known},
        peer_trials={case: before.peer_trials.get(case, []) for case in known},
        idle={case: before.idle[case] for case in known if case in before.idle},
        done={case: before.done[case] for case in session.kept},
    )


def measured_cases(progress: Progress) -> MeasuredCases:
    """Return every case of the job with its trials so far."""
    session, known = progress.session, subsystems()
    is_guest = session.host.virtualisation.is_guest
    usual = {name: one.guest_spread for name, one in known.items() if is_guest}
    return MeasuredCases(
        Measured(
            case,
            session.workloads[case.workload],
            progress.trials.get(case.case, [])[:],
            usual.get(case.subsystem, GuestSpread()),
        )
        for case in session.cases
    )


def _reason_unended(progress: Progress, unended: JobState) -> str | None:
    # The last record of a journal that is being written may be incomplete.
    return None if unended is JobState.RUNNING else progress.cut


def assemble(progress: Progress, unended: JobState = JobState.INTERRUPTED) -> ResultDocument:
    """Return the result document. `unended` is the state of a job whose journal does not record its
    end."""
    session = progress.session
    ended = progress.ended
    everyone = measured_cases(progress)
    return ResultDocument(
        job=ended.summary if ended else summarise(progress, unended, None),
        reason=ended.reason if ended else _reason_unended(progress, unended),
        hostbench=session.hostbench,
        programs=session.programs,
        host=session.host,
        suite=session.suite,
        workloads=session.workloads,
        params=session.params,
        cases=with_clocks(
            (case_result(progress, case, everyone) for case in session.cases), session.host
        ),
        far_host=session.far_host,
        boot=progress.boot,
        member=session.member,
    )


def summarise(
    progress: Progress,
    state: JobState,
    finished_unix_s: float | None,
    took_s: float | None = None,
) -> JobSummary:
    """Return the job in one line. `finished_unix_s` is None while it has not ended."""
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
        took_s=took_s,
    )


def case_result(
    progress: Progress, case: PlannedCase, everyone: MeasuredCases | None = None
) -> CaseResult:
    """Return what is known about one case; its verdict is None until it is done. `everyone`: the
    result of `measured_cases`, if the caller has it."""
    trials = progress.trials.get(case.case, [])
    peers = progress.peer_trials.get(case.case, [])
    metrics = progress.session.workloads[case.workload]
    idle = progress.idle.get(case.case)
    done = progress.done.get(case.case)
    if done is not None and done.figures is not None:
        figures = done.figures
    else:
        everyone = everyone or measured_cases(progress)
        measured = everyone[case.case]
        others = everyone.others_of(measured)
        figures = unfinished_figures(measured, peers, others)
        if done is not None:
            done = finished_case(measured, peers, idle, done.stopped, others)
            figures = done.figures or figures
    meaning = functools.partial(progress.session.meaning, case.workload)
    return CaseResult(
        case=case.case,
        workload=case.workload,
        label=full_label(case, _first_start(trials), meaning),
        params=case.params,
        given=case.given,
        repeats=case.repeats,
        verdict=done.verdict if done else None,
        reasons=figures.reasons,
        stopped=done.stopped if done else None,
        primary=primary_metric(metrics).name,
        metrics=figures.metrics,
        **{name: getattr(figures, name) for name in TwoFigures.model_fields},
        counted=figures.counted,
        idle=idle,
        trials=tuple(trials),
        peers=tuple(_peer_result(figure, peers) for figure in figures.peers),
        equivalent_command=None if case.naive else _equivalent(case, _first_start(trials)),
        naive=case.naive,
    ).with_meanings(progress.session.params.get(case.workload, ()))


def _peer_result(figures: PeerFigures, trials: Iterable[TrialRecord]) -> PeerResult:
    own = tuple(trial for trial in trials if trial.tool == figures.tool)
    return PeerResult(**dict(figures), trials=own)


def _equivalent(case: PlannedCase, start: StartEvent | None) -> str | None:
    """Return the equivalent command for the resolved parameters, or None if the case did not begin,
    or if the subsystem has no peers or is not installed here."""
    known = subsystems().get(case.subsystem)
    if start is None or known is None or not isinstance(known, HasPeers):
        return None
    resolved = {
        name: value for name, value in start.params.items() if isinstance(value, int | float | str)
    }
    workload = case.workload.partition(".")[2]
    return known.equivalent_command(workload, resolved)


def full_label(
    case: PlannedCase, start: StartEvent | None, meaning: Callable[[str], ParamMeaning]
) -> str:
    """Return the case's label with what the program chose, according to the first trial that
    started."""
    return f"{case.label} {_chosen(case.params, start, meaning)}".strip()


def planned_label(case: CaseResult) -> str:
    """Return the case's label without what the program chose, which may differ in each job."""
    chosen = _chosen(case.params, _first_start(case.trials), case.meaning)
    # Old documents end in "1 streams".
    old = f"{chosen}s" if chosen else ""
    return case.label.removesuffix(chosen).removesuffix(old).strip()


def _chosen(
    params: Mapping[str, ParamValue],
    start: StartEvent | None,
    meaning: Callable[[str], ParamMeaning],
) -> str:
    """Return what `best` became, in words; empty if the program had no choice."""
    if start is None:
        return ""
    left_out = LEFT_TO_LIBC if start.params.get(STORE) == LIBC else frozenset()
    return " ".join(
        param_word(meaning(name), start.params[name])
        for name, value in params.items()
        if value == BEST and name in start.params and name not in left_out
    )


def _first_start(trials: Iterable[TrialRecord]) -> StartEvent | None:
    return next((trial.start for trial in trials if trial.start), None)


def job_exit_code(document: ResultDocument) -> ExitCode:
    """Return the command's exit code for a finished job."""
    verdicts = {case.verdict for case in document.cases}
    failures = {
        trial.failure.exit_code
        for case in document.cases
        for trial in case.trials
        if trial.failure is not None
    }
    if ExitCode.CORRUPT in failures:
        return ExitCode.CORRUPT
    # Earlier versions had this code for a wrong result, too.
    if Verdict.INVALID in verdicts or ExitCode.INVALID in failures:
        return ExitCode.INVALID
    if Verdict.FAILED in verdicts:
        # If nothing else happened, the single cause says more than "a case failed".
        alone = verdicts == {Verdict.FAILED} and len(failures) == 1
        return ExitCode(failures.pop()) if alone else ExitCode.CASE_FAILED
    if verdicts == {Verdict.SKIPPED}:
        return ExitCode.NOTHING_RAN
    return ExitCode.OK
