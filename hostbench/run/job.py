"""A job from its suite to its result document, on this host."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.base.units import plural
from hostbench.host.idle import LocalWatch
from hostbench.host.inventory import inventory
from hostbench.host.lock import HostLock, host_lock
from hostbench.host.scratch import Scratch
from hostbench.model.job_events import Sink
from hostbench.model.registry import find_subsystem
from hostbench.model.result import CampaignMember, JobState, ResultDocument, SessionRecord
from hostbench.model.suite import Suite
from hostbench.model.trial import Transport
from hostbench.plan.estimate import Plan
from hostbench.plan.grid import make_plan
from hostbench.plan.workloads import first_between_hosts, subsystems_of
from hostbench.programs.program import Program, load_programs
from hostbench.remote.far_options import OPTION, VARIABLE, FarOptions
from hostbench.results.document import assemble
from hostbench.results.index import JobIndex
from hostbench.results.journal import JournalWriter
from hostbench.results.store import JobDirectory, ResultsStore, needed_bytes
from hostbench.run.local import LocalTransport
from hostbench.run.resume import resumption
from hostbench.run.session import Apparatus, Setup, begin_journal, measure
from hostbench.run.timing import timed

if TYPE_CHECKING:
    from hostbench.remote.far_host import FarHost

NODE_DIGITS = 10


class Audience(Sink, Protocol):
    """A sink for people who watch the job."""

    def say(self, text: str) -> None:
        """Show one line to people."""
        ...


def set_up(suite: Suite, *, far_host: bool = False) -> tuple[Setup, dict[str, Program]]:
    """Find the programs and make the plan, with or without a second host. Raise UsageError or
    ResourceError."""
    programs = load_programs(subsystems_of(suite))
    host = inventory(gpu=any(find_subsystem(name).has_devices for name in programs))
    tables = {subsystem: program.table for subsystem, program in programs.items()}
    versions = tuple(program.version for program in programs.values())
    plan = make_plan(suite, tables, host, far_host=far_host)
    return Setup(plan, tables, versions, host), programs


def _name_in_id(suite: Suite, member: CampaignMember | None) -> str:
    """Return what stands in the id of a job after its time. A thousand nodes of a campaign may
    begin in the same second, and one results directory may have all their documents."""
    if member is None:
        return suite.name
    return f"{suite.name}-{hashlib.sha256(member.unit.encode()).hexdigest()[:NODE_DIGITS]}"


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
        """`wait_s` is how long to wait until another run on this host, or on the far host, ends."""
        self._store = store
        self._index = JobIndex(store.root)
        self._interrupt = interrupt
        self._audience = audience
        self._wait_s = wait_s
        self._far_options = far
        self._far: FarHost | None = None

    def run(
        self,
        suite: Suite,
        member: CampaignMember | None = None,
        held: HostLock | None = None,
    ) -> ResultDocument:
        """Measure a suite, as part of a campaign or by itself. `held`: the host's lock if the
        caller has taken it. Raise HostbenchError; what was measured until then is kept."""
        setup, programs = self._set_up(suite)
        setup = dataclasses.replace(setup, member=member)
        self._audience.take(setup.plan_event())
        locked = host_lock(self._wait_s, self._interrupt) if held is None else nullcontext(held)
        with locked as lock:
            job = self._store.create(_name_in_id(suite, member), needed_bytes(setup.plan))
            lock.name_holder(job.id)
            session = setup.session(job.id)
            with begin_journal(job, session) as journal:
                self._audience.say(f"job {job.id} in {job.path}")
                return self._measure(job, journal, setup, session, programs, lock.descriptor)

    def plan(self, suite: Suite) -> Plan:
        """Return the plan of a suite with the time of all its cases.

        Cases of a fixed work run for a moment to find their time; nothing of that is kept. Raise
        HostbenchError.
        """
        setup, programs = self._set_up(suite)
        if not self._say_timing(setup):
            return setup.plan
        scratch = Scratch()
        with host_lock(self._wait_s, self._interrupt) as lock, contextlib.closing(scratch):
            lock.name_holder("plan")

            def local(interrupt: Interrupt) -> Transport:
                return LocalTransport(programs, interrupt, lock.descriptor, scratch)

            apparatus = self._apparatus("plan", local)
            return timed(setup.plan, setup.tables, apparatus.transport)

    def _say_timing(self, setup: Setup, kept: Sequence[str] = ()) -> int:
        """Report how many cases first run for a moment; return their number."""
        count = len(setup.untimed(kept))
        if count:
            self._audience.say(
                f"{plural(count, 'case')} with a fixed amount of work: hostbench runs each for "
                "a moment to estimate its time"
            )
        return count

    def _set_up(self, suite: Suite) -> tuple[Setup, dict[str, Program]]:
        """Call `set_up`, and connect to the far host where cases may have their far ends there."""
        options = self._far_options
        setup, programs = set_up(suite, far_host=options is not None)
        between = first_between_hosts(setup.plan.cases)
        if options is None:
            if between is not None:
                raise UsageError(
                    f"{between.title} has its far end on a second host; name its "
                    f"{between.subsystem} service with {OPTION} https://…:8004, or give the case "
                    "target: loopback"
                )
            return setup, programs
        if between is None:
            if options.required:
                raise UsageError(
                    f"{OPTION} is for network cases with a far end on a second host, and suite "
                    f"{suite.name} has none; leave it out"
                )
            return setup, programs
        from hostbench.run.far import connect_far_host

        self._far = connect_far_host(options, self._interrupt)
        return dataclasses.replace(setup, far_host=self._far.record), programs

    def resume(self, job_id: str) -> ResultDocument:
        """Continue a job where it stopped; for a job that succeeded, only write its document again.

        Raise HostbenchError.
        """
        job = self._store.job(job_id)
        before = job.progress()
        if before.ended is not None and before.ended.state is JobState.SUCCEEDED:
            document = job.store(assemble(before))
            self._audience.say(
                f"job {job.id} is complete: nothing is left to measure, and hostbench wrote its "
                "document again"
            )
            return document
        setup, programs = self._set_up_again(job.id, before.session)
        found = resumption(before, setup.session(job.id))
        session = setup.session(job.id, found.kept, found.continued)
        if before.cut is not None:
            self._audience.say(before.cut)
        self._audience.say(found.sentence)
        self._audience.take(setup.plan_event(found.kept))
        with host_lock(self._wait_s, self._interrupt) as lock:
            lock.name_holder(job.id)
            with JournalWriter(job.journal, create=False) as journal:
                job.unstore()
                journal.append(session)
                return self._measure(job, journal, setup, session, programs, lock.descriptor)

    def _set_up_again(self, job_id: str, before: SessionRecord) -> tuple[Setup, dict[str, Program]]:
        """Call `_set_up` for a job's next session.

        Raise UsageError if the job had a far host and now has none, or the other way round: its
        cases would change and its figures would be lost.
        """
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
        return dataclasses.replace(setup, member=before.member), programs

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
        self._say_timing(setup, session.kept)
        try:
            with contextlib.closing(scratch):
                document = measure(job, journal, setup, session, apparatus, sinks, self._index)
        except HostbenchError as error:
            if setup.member is None:  # A campaign measures the node again.
                error.add(f"continue with: hostbench run --resume {job.id}")
            raise
        self._audience.say(f"result: {job.document}")
        return document

    def _apparatus(self, job_id: str, local: Callable[[Interrupt], Transport]) -> Apparatus:
        if self._far is None:
            return Apparatus(local(self._interrupt), LocalWatch(), self._interrupt)
        from hostbench.run.far import apparatus_with

        say = self._audience.say
        return apparatus_with(self._far, local, job_id, self._interrupt, say, self._wait_s)
