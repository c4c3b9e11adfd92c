"""A job from its suite to its result document, on this host."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from hostbench.betweenhosts import first_between_hosts
from hostbench.document import assemble
from hostbench.errors import HostbenchError, UsageError
from hostbench.faroptions import OPTION, VARIABLE, FarOptions
from hostbench.host import inventory
from hostbench.idle import LocalWatch
from hostbench.index import JobIndex
from hostbench.interrupt import Interrupt
from hostbench.journal import JournalWriter
from hostbench.local import LocalTransport
from hostbench.lock import host_lock
from hostbench.measuring import Apparatus, Setup, begin_journal, measure
from hostbench.models.result import JobState, ResultDocument, SessionRecord
from hostbench.models.suite import Suite
from hostbench.models.table import Metric
from hostbench.notices import Notice, Timing
from hostbench.plan import Plan, make_plan, subsystems_of
from hostbench.program import Program, load_programs
from hostbench.results import JobDirectory, ResultsStore, needed_bytes
from hostbench.resume import resumption
from hostbench.scratch import Scratch
from hostbench.services import Subsystem
from hostbench.timing import timed, untimed
from hostbench.trial import Transport

if TYPE_CHECKING:
    from hostbench.farhost import FarHost


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


def set_up(suite: Suite, *, far_host: bool = False) -> tuple[Setup, dict[str, Program]]:
    """Finds the programs and makes the plan, with or without a second host. Raises UsageError or
    ResourceError."""
    programs = load_programs(subsystems_of(suite))
    host = inventory(gpu=Subsystem.GPU in programs)
    tables = {subsystem: program.table for subsystem, program in programs.items()}
    versions = tuple(program.version for program in programs.values())
    plan = make_plan(suite, tables, host, far_host=far_host)
    return Setup(plan, tables, versions, host), programs


class JobRunner:
    """Runs and resumes jobs; one at a time on this host."""

    def __init__(
        self,
        store: ResultsStore,
        interrupt: Interrupt,
        audience: Audience,
        wait_s: float,
        far: FarOptions | None = None,
    ) -> None:
        """`wait_s` is how long to wait for another run on this host to end, or on the far one."""
        self._store = store
        self._index = JobIndex(store)
        self._interrupt = interrupt
        self._audience = audience
        self._wait_s = wait_s
        self._far_options = far
        self._far: FarHost | None = None

    def run(self, suite: Suite) -> ResultDocument:
        """Measures a suite. Raises HostbenchError; what was measured until then is kept."""
        setup, programs = self._set_up(suite)
        self._audience.planned(setup.plan, setup.metrics, kept=())
        with host_lock(self._wait_s, self._interrupt) as lock:
            job = self._store.create(suite.name, needed_bytes(setup.plan))
            lock.name_holder(job.id)
            session = setup.session(job.id)
            with begin_journal(job, session) as journal:
                self._audience.say(f"job {job.id} in {job.path}")
                return self._measure(job, journal, setup, session, programs, lock.descriptor)

    def plan(self, suite: Suite) -> Plan:
        """The plan of a suite with the time of all its cases, for which those of a fixed work are
        run for a moment; nothing is kept. Raises HostbenchError."""
        setup, programs = self._set_up(suite)
        count = len(untimed(setup.plan, setup.tables))
        if not count:
            return setup.plan
        self._audience.take(Timing(count))
        scratch = Scratch()
        with host_lock(self._wait_s, self._interrupt) as lock, contextlib.closing(scratch):
            lock.name_holder("plan")

            def local(interrupt: Interrupt) -> Transport:
                return LocalTransport(programs, interrupt, lock.descriptor, scratch)

            apparatus = self._apparatus("plan", local)
            return timed(setup.plan, setup.tables, apparatus.transport)

    def _set_up(self, suite: Suite) -> tuple[Setup, dict[str, Program]]:
        """`set_up`, and the far host where cases may have their far ends there."""
        options = self._far_options
        setup, programs = set_up(suite, far_host=options is not None)
        between = first_between_hosts(setup.plan.cases)
        if options is None:
            if between is not None:
                raise UsageError(
                    f"{between} has its far end on a second host; name its net service with "
                    f"{OPTION} https://…:8004, or give the case target: loopback"
                )
            return setup, programs
        if between is None:
            if options.is_asked_for:
                raise UsageError(
                    f"{OPTION} is where network cases have their far ends, and no case of "
                    f"{suite.name} has one there; leave it out"
                )
            return setup, programs
        from hostbench.farrun import met

        self._far = met(options, self._interrupt)
        return dataclasses.replace(setup, far_host=self._far.record), programs

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
        setup, programs = self._set_up_again(job.id, before.session)
        found = resumption(before, setup.session(job.id))
        session = setup.session(job.id, found.kept)
        self._audience.say(found.sentence)
        self._audience.planned(setup.plan, setup.metrics, kept=found.kept)
        with host_lock(self._wait_s, self._interrupt) as lock:
            lock.name_holder(job.id)
            with JournalWriter(job.journal, create=False) as journal:
                job.unstore()
                journal.append(session)
                return self._measure(job, journal, setup, session, programs, lock.descriptor)

    def _set_up_again(self, job_id: str, before: SessionRecord) -> tuple[Setup, dict[str, Program]]:
        """`_set_up` of a job's next session. Raises UsageError where the job had a far host and is
        to have none, or the other way round: the cases would be others, and its figures lost."""
        far = before.far_host
        if far is not None and self._far_options is None:
            raise UsageError(
                f"job {job_id} has its far ends on {far.inventory.hostname} at {far.address}; name "
                f"the net service there again with {OPTION} https://…:8004"
            )
        setup, programs = self._set_up(before.suite)
        if far is None and setup.far_host is not None:
            raise UsageError(
                f"job {job_id} is measured on one host; leave out {OPTION}, and unset {VARIABLE} "
                "where that is set, or start a new job"
            )
        return setup, programs

    def _measure(
        self,
        job: JobDirectory,
        journal: JournalWriter,
        setup: Setup,
        session: SessionRecord,
        programs: Mapping[str, Program],
        lock_descriptor: int,
    ) -> ResultDocument:
        scratch = Scratch()

        def local(interrupt: Interrupt) -> Transport:
            return LocalTransport(programs, interrupt, lock_descriptor, scratch)

        apparatus = self._apparatus(job.id, local)
        sinks = (self._audience,)
        try:
            with contextlib.closing(scratch):
                document = measure(job, journal, setup, session, apparatus, sinks, self._index)
        except HostbenchError as error:
            error.add(f"go on with: hostbench run --resume {job.id}")
            raise
        self._audience.say(f"result: {job.document}")
        return document

    def _apparatus(self, job_id: str, local: Callable[[Interrupt], Transport]) -> Apparatus:
        if self._far is None:
            return Apparatus(local(self._interrupt), LocalWatch(), self._interrupt)
        from hostbench.farrun import apparatus_with

        say = self._audience.say
        return apparatus_with(self._far, local, job_id, self._interrupt, say, self._wait_s)
