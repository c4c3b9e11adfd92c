"""One session of a job, wherever its trials run: from its first record to its document."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import hostbench
from hostbench.base.errors import HostbenchError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.decisions.earlier import earlier_figures
from hostbench.host.idle import HostWatch
from hostbench.host.inventory import boot
from hostbench.model.host import Boot, HostInventory
from hostbench.model.job_events import EstimateEvent, PlanEvent, Sink
from hostbench.model.registry import find_subsystem
from hostbench.model.result import (
    CampaignMember,
    FarHostRecord,
    JobState,
    PlannedCase,
    ProgramVersion,
    ResultDocument,
    SessionRecord,
    StateRecord,
)
from hostbench.model.subsystem import Sensitivity
from hostbench.model.table import Metric, Table
from hostbench.model.trial import Transport
from hostbench.plan.estimate import Plan
from hostbench.plan.workloads import meanings_of, metrics_of
from hostbench.results.document import Progress, assemble, job_exit_code, summarise
from hostbench.results.index import JobIndex
from hostbench.results.journal import JournalWriter
from hostbench.results.store import JobDirectory
from hostbench.run.execute import Execution, HostLimits
from hostbench.run.timing import timed, untimed


@dataclass(frozen=True)
class Setup:
    """What a session measures and what it measures with; tables by subsystem. `member`: the part of
    a campaign over many hosts that it is."""

    plan: Plan
    tables: Mapping[str, Table]
    programs: tuple[ProgramVersion, ...]
    host: HostInventory
    far_host: FarHostRecord | None = None
    member: CampaignMember | None = None

    @property
    def metrics(self) -> dict[str, tuple[Metric, ...]]:
        """The metrics of every workload in the plan."""
        return metrics_of(self.plan.cases, self.tables)

    def plan_event(self, kept: Sequence[str] = ()) -> PlanEvent:
        """Return the event with the plan of what is measured next."""
        return PlanEvent(
            cases=list(self.plan.cases),
            metrics=self.metrics,
            kept=list(kept),
            suite=self.plan.suite,
        )

    @property
    def sensitivities(self) -> dict[str, Sensitivity]:
        """What on a busy host changes the figures of a workload, by full name. A team's threads
        share memory, so all of a team's workloads depend on the whole host."""
        return {
            f"{name}.{workload.name}": Sensitivity.HOST
            if workload.kind == "team"
            else find_subsystem(name).sensitivity
            for name, table in self.tables.items()
            for workload in table.workloads
        }

    def untimed(self, kept: Sequence[str] = ()) -> list[PlannedCase]:
        """Return the cases that run for a moment first, so that the time of all cases is known."""
        return untimed(self.plan.without(kept), self.tables)

    def session(
        self, job: str, kept: tuple[str, ...] = (), continued: tuple[str, ...] = ()
    ) -> SessionRecord:
        """Return the journal's record of this session."""
        return SessionRecord(
            job=job,
            time_unix_s=time.time(),
            boot=boot(),
            hostbench=hostbench.__version__,
            programs=self.programs,
            host=self.host,
            suite=self.plan.suite,
            workloads=self.metrics,
            cases=self.plan.cases,
            kept=kept,
            continued=continued,
            far_host=self.far_host,
            params=meanings_of(self.plan.cases, self.tables),
            member=self.member,
        )


@dataclass(frozen=True)
class Apparatus:
    """Where trials run, what watches the host, and what ends the session early."""

    transport: Transport
    watch: HostWatch
    interrupt: Interrupt


def begin_journal(job: JobDirectory, session: SessionRecord) -> JournalWriter:
    """Return the journal with its first record. If that cannot be written, remove the job's
    directory and raise HostbenchError."""
    try:
        journal = JournalWriter(job.journal, create=True)
    except HostbenchError:
        job.discard()
        raise
    try:
        journal.append(session)
        job.sync()
    except HostbenchError:
        # Removed while it is locked, so no other process can have started it.
        with contextlib.suppress(OSError):
            job.journal.unlink()
        journal.close()
        job.discard()
        raise
    return journal


def measure(
    job: JobDirectory,
    journal: JournalWriter,
    setup: Setup,
    session: SessionRecord,
    apparatus: Apparatus,
    sinks: Sequence[Sink],
    index: JobIndex,
) -> ResultDocument:
    """Run the cases that `session` does not keep.

    Cases of a fixed work first run for a moment, to find how long the whole job takes. `sinks` get
    the events after the journal. Raise HostbenchError; what was measured until then is kept, and
    the journal has the reason.
    """
    index.note(summarise(job.progress(), JobState.RUNNING, None))
    execution = Execution(
        plan=setup.plan,
        metrics=session.workloads,
        params=session.params,
        transport=apparatus.transport,
        watch=apparatus.watch,
        limits=HostLimits(setup.host, setup.tables),
        sinks=(journal, *sinks),
        interrupt=apparatus.interrupt,
        sensitivities=setup.sensitivities,
        earlier=earlier_figures(job.path.parent, session),
    )
    try:
        _report_times(setup, session, apparatus.transport, sinks)
        # There may be thousands of cases. Keep one copy: those of the session, not those read from
        # the journal.
        execution.run(dataclasses.replace(job.progress(), session=session))
        return _complete(job, journal, index)
    except HostbenchError as error:
        _give_up(job, journal, index, error)
        raise


def _report_times(
    setup: Setup, session: SessionRecord, transport: Transport, sinks: Sequence[Sink]
) -> None:
    if not setup.untimed(session.kept):
        return
    left = setup.plan.without(session.kept)
    event = EstimateEvent(estimate=timed(left, setup.tables, transport).estimate())
    for sink in sinks:
        sink.take(event)


def _complete(job: JobDirectory, journal: JournalWriter, index: JobIndex) -> ResultDocument:
    """Write the document first and the job's state second."""
    progress = job.progress()
    document = assemble(progress)
    exit_code = job_exit_code(document)
    succeeded = exit_code in (ExitCode.OK, ExitCode.NOTHING_RAN)
    state = JobState.SUCCEEDED if succeeded else JobState.FAILED
    ended = _ended(progress, state, None if succeeded else exit_code.meaning)
    document = document.model_copy(update={"job": ended.summary, "reason": ended.reason})
    document = job.store(document)
    journal.append(ended)
    index.note(document.job)
    return document


def _give_up(
    job: JobDirectory, journal: JournalWriter, index: JobIndex, error: HostbenchError
) -> None:
    """Record how the job ended, as far as that can still be written. Add to `error` what is
    kept."""
    progress = job.progress()
    state = JobState.INTERRUPTED if isinstance(error, Interrupted) else JobState.FAILED
    ended = _ended(progress, state, error.message)
    with contextlib.suppress(HostbenchError):
        journal.append(ended)
    index.note(ended.summary)
    done, cases = len(progress.done), len(progress.session.cases)
    begun = sum(
        bool(trials) for case, trials in progress.trials.items() if case not in progress.done
    )
    also = f", and the trials of {begun} more" if begun else ""
    error.add(f"{done} of {cases} cases are measured and kept{also}")


def _ended(progress: Progress, state: JobState, reason: str | None) -> StateRecord:
    now_unix_s = time.time()
    return StateRecord(
        time_unix_s=now_unix_s,
        state=state,
        reason=reason,
        summary=summarise(progress, state, now_unix_s, _took_s(progress.boot)),
    )


def _took_s(began: Boot | None) -> float | None:
    """Return the seconds since a job began, whatever happened to the wall clock; None if the host
    was booted since, or if the kernel does not report its boot."""
    now = boot()
    if began is None or now is None or began.id != now.id:
        return None
    return now.since_s - began.since_s
