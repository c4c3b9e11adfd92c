"""A job from its suite to its result document, on this host."""

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import hostbench
from hostbench.document import Progress, assemble, job_exit_code, summarise
from hostbench.errors import HostbenchError
from hostbench.execute import Execution
from hostbench.exitcode import ExitCode
from hostbench.host import inventory
from hostbench.index import JobIndex
from hostbench.interrupt import Interrupt, Interrupted
from hostbench.journal import JournalWriter
from hostbench.limits import HostLimits
from hostbench.local import LocalTransport
from hostbench.lock import host_lock
from hostbench.models.host import HostInventory
from hostbench.models.result import (
    JobState,
    ResultDocument,
    SessionRecord,
    StateRecord,
)
from hostbench.models.suite import Suite
from hostbench.models.table import Metric
from hostbench.notices import Notice
from hostbench.plan import Plan, make_plan, metrics_of, subsystems_of
from hostbench.program import Program, load_programs
from hostbench.results import JobDirectory, ResultsStore, needed_bytes
from hostbench.resume import resumption


class Audience(Protocol):
    """Who watches the job: a sink that also hears how the job as a whole goes."""

    def take(self, notice: Notice) -> None:
        """See Sink.take."""
        ...

    def planned(
        self, plan: Plan, metrics: Mapping[str, Sequence[Metric]], kept: Collection[str]
    ) -> None:
        """The plan stands; the cases in `kept` need not be measured. `metrics` by workload."""
        ...

    def say(self, text: str) -> None:
        """One line for people."""
        ...


@dataclass(frozen=True)
class Setup:
    """What is measured with what, before anything is."""

    plan: Plan
    programs: dict[str, Program]
    host: HostInventory

    @property
    def metrics(self) -> dict[str, tuple[Metric, ...]]:
        """The metrics of every workload that occurs."""
        tables = {subsystem: program.table for subsystem, program in self.programs.items()}
        return metrics_of(self.plan.cases, tables)

    def session(self, job: str, kept: tuple[str, ...] = ()) -> SessionRecord:
        """The journal's record of it."""
        return SessionRecord(
            job=job,
            time_unix_s=time.time(),
            hostbench=hostbench.__version__,
            programs=tuple(program.version for program in self.programs.values()),
            host=self.host,
            suite=self.plan.suite,
            workloads=self.metrics,
            cases=self.plan.cases,
            kept=kept,
        )


def set_up(suite: Suite) -> Setup:
    """Finds the programs and makes the plan. Raises UsageError or ResourceError."""
    programs = load_programs(subsystems_of(suite))
    host = inventory()
    tables = {subsystem: program.table for subsystem, program in programs.items()}
    return Setup(plan=make_plan(suite, tables, host), programs=programs, host=host)


class JobRunner:
    """Runs and resumes jobs; one at a time on this host."""

    def __init__(
        self, store: ResultsStore, interrupt: Interrupt, audience: Audience, wait_s: float
    ) -> None:
        """`wait_s` is how long to wait for another run on this host to end."""
        self._store = store
        self._index = JobIndex(store)
        self._interrupt = interrupt
        self._audience = audience
        self._wait_s = wait_s

    def run(self, suite: Suite) -> ResultDocument:
        """Measures a suite. Raises HostbenchError; what was measured until then is kept."""
        setup = set_up(suite)
        self._audience.planned(setup.plan, setup.metrics, kept=())
        with host_lock(self._wait_s, self._interrupt) as lock:
            job = self._store.create(suite.name, needed_bytes(setup.plan))
            lock.name_holder(job.id)
            session = setup.session(job.id)
            with self._begin(job, session) as journal:
                self._audience.say(f"job {job.id} in {job.path}")
                return self._measure(job, journal, setup, session, lock.descriptor)

    def _begin(self, job: JobDirectory, session: SessionRecord) -> JournalWriter:
        """The journal with its first record; a job that cannot have one leaves no directory."""
        try:
            journal = JournalWriter(job.journal, create=True)
            journal.append(session)
        except HostbenchError:
            job.discard()
            raise
        return journal

    def resume(self, job_id: str) -> ResultDocument:
        """Takes up a job where it stopped; one that has ended well is only assembled again.

        Raises HostbenchError.
        """
        job = self._store.job(job_id)
        before = job.progress()
        if before.ended is not None and before.ended.state is JobState.SUCCEEDED:
            document = assemble(before)
            job.store(document)
            self._audience.say(
                f"job {job.id} is complete: nothing left to measure, its document was written anew"
            )
            return document
        setup = set_up(before.session.suite)
        found = resumption(before, setup.session(job.id))
        session = setup.session(job.id, found.kept)
        self._audience.say(found.sentence)
        self._audience.planned(setup.plan, setup.metrics, kept=found.kept)
        with host_lock(self._wait_s, self._interrupt) as lock:
            lock.name_holder(job.id)
            with JournalWriter(job.journal, create=False) as journal:
                job.unstore()
                journal.append(session)
                return self._measure(job, journal, setup, session, lock.descriptor)

    def _measure(
        self,
        job: JobDirectory,
        journal: JournalWriter,
        setup: Setup,
        session: SessionRecord,
        lock_descriptor: int,
    ) -> ResultDocument:
        self._index.note(summarise(job.progress(), JobState.RUNNING, None))
        execution = Execution(
            plan=setup.plan,
            metrics=session.workloads,
            transport=LocalTransport(setup.programs, self._interrupt, lock_descriptor),
            limits=HostLimits(setup.host, setup.programs),
            sinks=(journal, self._audience),
            interrupt=self._interrupt,
        )
        try:
            execution.run(session.kept)
            return self._complete(job, journal)
        except HostbenchError as error:
            self._give_up(job, journal, error)
            raise

    def _complete(self, job: JobDirectory, journal: JournalWriter) -> ResultDocument:
        """The document first, the job's state second."""
        progress = job.progress()
        exit_code = job_exit_code(assemble(progress))
        succeeded = exit_code in (ExitCode.OK, ExitCode.NOTHING_RAN)
        state = JobState.SUCCEEDED if succeeded else JobState.FAILED
        progress.ended = _ended(progress, state, None if succeeded else exit_code.meaning)
        document = assemble(progress)
        job.store(document)
        journal.append(progress.ended)
        self._index.note(document.job)
        self._audience.say(f"result: {job.document}")
        return document

    def _give_up(self, job: JobDirectory, journal: JournalWriter, error: HostbenchError) -> None:
        """Notes how the job ended, as far as that can still be written, and says how to go on."""
        progress = job.progress()
        state = JobState.INTERRUPTED if isinstance(error, Interrupted) else JobState.FAILED
        ended = _ended(progress, state, error.message)
        with contextlib.suppress(HostbenchError):
            journal.append(ended)
        self._index.note(ended.summary)
        done, cases = len(progress.done), len(progress.session.cases)
        error.add(
            f"{done} of {cases} cases are measured and kept; "
            f"go on with: hostbench run --resume {job.id}"
        )


def _ended(progress: Progress, state: JobState, reason: str | None) -> StateRecord:
    now_unix_s = time.time()
    return StateRecord(
        time_unix_s=now_unix_s,
        state=state,
        reason=reason,
        summary=summarise(progress, state, now_unix_s),
    )
