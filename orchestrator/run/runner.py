"""One job from its start to its end, on a thread of its own."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import structlog
from redis.exceptions import RedisError

from hostbench.base.errors import HostbenchError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.decisions.baseline import headline_workloads
from hostbench.host.idle import HostWatch
from hostbench.model.jobs import StackState
from hostbench.model.result import (
    JobState,
    ResultDocument,
    SessionRecord,
    Verdict,
)
from hostbench.model.trial import Transport
from hostbench.remote.client import RemoteService, RemoteWatch, ServiceLost
from hostbench.remote.far_host import BothWatch, FarHost
from hostbench.remote.far_session import FarTransport
from hostbench.remote.transport import HttpTransport, Usage
from hostbench.results.document import Progress, assemble, job_exit_code
from hostbench.results.journal import JournalWriter
from hostbench.results.store import needed_bytes
from hostbench.run.resume import resumption
from hostbench.run.session import Apparatus, Setup, begin_journal, measure
from hostbench.web.problem import Problem
from orchestrator.influx.outbox import NoOutbox, Outbox
from orchestrator.influx.points import decision_points
from orchestrator.influx.sink import PointSink
from orchestrator.queue.hosts import HostStore, Service
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.keeper import TERMINAL_STATE, HeldJob, JobStopped, Keeper, Stop
from orchestrator.queue.plans import Plans
from orchestrator.queue.record import JobTask, StartedJob
from orchestrator.results.archive import Archive
from orchestrator.results.deciding import Decider
from orchestrator.run.events import RETRY_S, EventSink, LivePublisher, retry_while_held
from orchestrator.run.links import Held, HostLinks, Links, Unreachable, connected_hosts

NOT_BEGUN = "its orchestrator was stopped before it began"

log = structlog.get_logger()


@dataclass(frozen=True)
class Outcome:
    """How a job ended. `exit_code`: the exit code that `hostbench run` would have had."""

    state: StackState
    reason: str | None = None
    exit_code: ExitCode | None = None


@dataclass(frozen=True)
class Surroundings:
    """What every job needs."""

    jobs: JobStore
    hosts: HostStore
    archive: Archive
    links: Links
    plans: Plans
    keeper: Keeper
    live: LivePublisher
    outbox: Outbox | None
    decider: Decider
    meter: Callable[[], Usage]


class Runner:
    """Runs jobs that hold their leases."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def start(self, job: StartedJob, requested_s: float) -> bool:
        """Start a job whose leases were requested at `requested_s` of `keeper.now_s`. Return False,
        with the job queued again, if there is no thread or descriptor left for it."""
        try:
            self._begin(job, requested_s)
        except (OSError, RuntimeError) as error:
            log.exception("job_not_started", job=job.id)
            # Without Redis, its leases end by themselves.
            with contextlib.suppress(RedisError):
                self._around.jobs.put_back(job, f"its orchestrator could not start it: {error}")
            return False
        return True

    def _begin(self, job: StartedJob, requested_s: float) -> None:
        held = HeldJob(job, requested_s)
        self._around.keeper.hold(held)
        thread = threading.Thread(target=self._run, args=(held,), name=job.id, daemon=True)
        with self._lock:
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._threads.discard(thread)
            self._around.keeper.let_go(held)
            held.close()
            raise

    def join(self, seconds: float) -> None:
        """Wait until the stopped jobs have ended, at most `seconds` for all together."""
        until_s = time.monotonic() + seconds
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _run(self, held: HeldJob) -> None:
        try:
            RunningJob(held, self._around).run()
        except Exception:
            log.exception("job_thread_failed", job=held.job.id)
        finally:
            self._around.keeper.let_go(held)
            held.close()
            with self._lock:
                self._threads.discard(threading.current_thread())


class RunningJob:
    """One job that runs here."""

    def __init__(self, held: HeldJob, around: Surroundings) -> None:
        self._held = held
        self._around = around
        self._job = held.job
        self._log = log.bind(job=held.job.id)

    def run(self) -> None:
        """Run the job and record its outcome, unless its leases were lost."""
        try:
            outcome = self._outcome()
        except Unreachable as unreachable:
            self._give_up_host(unreachable)
        except Held as held:
            self._wait_in_queue(held)
        else:
            self._end(outcome)

    def _outcome(self) -> Outcome | None:
        """Return how the job ended, or None if another orchestrator decides that."""
        try:
            found = retry_while_held(self._held, lambda: self._around.jobs.task(self._job.id))
            if found is None:
                return None  # Redis was wiped
            document = self._measured(*found)
        except JobStopped as stopped:
            return _stopped(stopped)
        except HostbenchError as error:
            return Outcome(StackState.FAILED, error.message, error.exit_code)
        except (Unreachable, Held):
            raise
        except Exception as error:  # noqa: BLE001
            self._log.exception("job_failed_by_a_programming_error")
            reason = f"a programming error, {type(error).__name__}: the log has its traceback"
            return Outcome(StackState.FAILED, reason, ExitCode.CASE_FAILED)
        succeeded = document.job.state is JobState.SUCCEEDED
        state = StackState.SUCCEEDED if succeeded else StackState.FAILED
        return Outcome(state, document.reason, job_exit_code(document))

    # ---- the ends ----

    def _end(self, outcome: Outcome | None) -> None:
        if outcome is None:
            self._log.warning("job_left", reason=self._held.why and self._held.why.value)
            return
        code = outcome.exit_code
        fields = {} if code is None else {"exit_code": str(code.value)}
        jobs = self._around.jobs
        if outcome.state is StackState.LOST and self._put_back(NOT_BEGUN):
            return
        ended = self._until_lease_ends(
            lambda: jobs.finish(self._job, outcome.state, outcome.reason, fields)
        )
        if not ended:
            self._log.warning("job_ended_without_lease", state=outcome.state)
            return
        self._log.info("job_ended", state=outcome.state, reason=outcome.reason)
        with contextlib.suppress(RedisError):
            if (view := jobs.view(self._job.id)) is not None:
                self._around.archive.keep(view)

    def _until_lease_ends(self, call: Callable[[], bool]) -> bool:
        """Return what `call` returns. While Redis is unreachable, retry as long as the leases are
        held, even if the job must stop. Return False if the leases are lost."""
        while not self._held.lost:
            try:
                return call()
            except RedisError:
                time.sleep(RETRY_S)
        return False

    def _give_up_host(self, unreachable: Unreachable) -> None:
        """Queue the job again: its service is gone, and the job waits until the service is back."""
        self._log.warning("host_unreachable", reason=unreachable.reason)
        self._put_back(unreachable.reason, unreachable.service)

    def _wait_in_queue(self, held: Held) -> None:
        """Queue the job again; dispatch skips it until the host is free."""
        self._log.info("host_is_held", host=held.host, held_by=held.held_by)
        jobs, where = self._around.jobs, (held.host, held.held_by)
        self._until_lease_ends(lambda: jobs.put_back(self._job, str(held), *where) != "gone")

    def _put_back(self, reason: str, unreached: Service | None = None) -> bool:
        """Queue the job again. Return False if it has measured something, or no longer belongs to
        this orchestrator."""

        def put_back() -> bool:
            if unreached is not None:
                self._around.hosts.unregister(unreached)
            return self._around.jobs.put_back(self._job, reason) != "gone"

        return self._until_lease_ends(put_back)

    # ---- measuring ----

    def _measured(self, task: JobTask, sessions: int) -> ResultDocument:
        with self._hosts(task) as hosts:
            setup, far = hosts.setup(task.suite, self._held, self._around.plans)
            hosts.check_held(self._held)
            directory = self._around.archive.directory(self._job.id)
            before = directory.progress() if directory.has_begun else None
            if before is not None and _is_complete(before):
                document = directory.store(assemble(before))
                with self._points(before.session) as points:
                    points.repeat(document)
                    self._decide(document, points)
                return document
            found = resumption(before, setup.session(self._job.id)) if before else None
            kept, continued = (found.kept, found.continued) if found else ((), ())
            sink = EventSink(self._held, self._around.jobs, self._around.live)
            sink.begin(setup, _verdicts(before, kept), sessions + 1)
            session = setup.session(self._job.id, kept, continued)
            with (
                self._journal(setup, session, resumed=before is not None) as journal,
                self._points(session) as points,
            ):
                if kept:
                    points.repeat(assemble(directory.progress()))
                self._note_begun()
                apparatus = self._apparatus(hosts.services, setup, far, sink)
                index = self._around.archive.index
                sinks = (sink, points)
                document = measure(directory, journal, setup, session, apparatus, sinks, index)
                self._decide(document, points)
                return document

    def _decide(self, document: ResultDocument, points: PointSink) -> None:
        """Hand over the decisions about the job while it still holds its host, so that this takes
        time from no trial. If it fails, nothing is lost: reindex makes the decisions, too."""
        headlines = set(headline_workloads())
        if self._around.outbox is None or headlines.isdisjoint(
            case.workload for case in document.cases
        ):
            return
        try:
            decided = self._around.decider.of_job(self._job.id, self._held)
        except (HostbenchError, Problem, asyncio.CancelledError) as error:
            self._log.warning("job_not_decided", reason=str(error) or "the job was stopped")
            return
        points.add(decision_points(document, decided))

    @contextlib.contextmanager
    def _points(self, session: SessionRecord) -> Iterator[PointSink]:
        """Yield the sink that hands points to the outbox, if there is one."""
        sink = PointSink(session, self._around.outbox or NoOutbox())
        try:
            yield sink
        finally:
            sink.close(lambda: not self._held.lost)

    @contextlib.contextmanager
    def _hosts(self, task: JobTask) -> Iterator[HostLinks]:
        """Yield connections to the services that the job needs. Raise Unreachable."""
        states = retry_while_held(
            self._held, lambda: self._around.hosts.states_of(list(task.hosts))
        )
        with connected_hosts(self._around.links, states, task.suite) as hosts:
            try:
                yield hosts
            except ServiceLost:
                hosts.unregister_lost(self._around.hosts, self._held)
                raise

    def _journal(self, setup: Setup, session: SessionRecord, *, resumed: bool) -> JournalWriter:
        """Return the journal, with this session as its last record."""
        directory = self._around.archive.directory(self._job.id)
        if resumed:
            journal = JournalWriter(directory.journal, create=False)
            if journal.cut_bytes:
                self._log.warning("journal_cut", bytes=journal.cut_bytes)
            try:
                # If this process was suspended until now, it could damage what another orchestrator
                # measured.
                self._held.check()
                directory.unstore()
                journal.append(session)
            except HostbenchError:
                journal.close()
                raise
            return journal
        self._held.check()
        results = self._around.archive.results
        made = results.create(setup.plan.suite.name, needed_bytes(setup.plan), self._job.id)
        return begin_journal(made, session)

    def _note_begun(self) -> None:
        view = retry_while_held(self._held, lambda: self._around.jobs.view(self._job.id))
        if view is not None:
            self._around.archive.keep(view)

    def _apparatus(
        self,
        services: Mapping[str, RemoteService],
        setup: Setup,
        far: FarHost | None,
        sink: EventSink,
    ) -> Apparatus:
        fence, job = self._job.fence, self._job.id

        def near(interrupt: Interrupt) -> Transport:
            return HttpTransport(
                services,
                {program.subsystem: program.sha256 for program in setup.programs},
                setup.tables,
                fence,
                job,
                interrupt,
                on_waiting=sink.set_waiting,
                meter=self._around.meter,
            )

        watch: HostWatch = RemoteWatch(next(iter(services.values())))
        if far is None:
            return Apparatus(near(self._held), watch, self._held)
        transport = FarTransport(near, far, fence, job, self._held, on_waiting=sink.set_waiting)
        both = BothWatch(watch, RemoteWatch(far.service), far.name)
        return Apparatus(transport, both, self._held)


def _stopped(stopped: JobStopped) -> Outcome | None:
    """Return the end of a job that was stopped; None: its leases are gone, and the reaper decides
    its end."""
    if stopped.stop is Stop.LEASE_LOST:
        return None
    return Outcome(TERMINAL_STATE[stopped.stop], stopped.message)


def _is_complete(before: Progress) -> bool:
    return before.ended is not None and before.ended.state is JobState.SUCCEEDED


def _verdicts(before: Progress | None, kept: Sequence[str]) -> dict[str, Verdict]:
    return {case: before.done[case].verdict for case in kept} if before else {}
