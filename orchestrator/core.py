"""The parts of an orchestrator, put together; docs/architecture.md explains each part."""

import asyncio
import secrets
from collections.abc import Mapping

import structlog
from redis.exceptions import OutOfMemoryError

from hostbench.base.interrupt import Interrupt
from hostbench.model.jobs import TERMINAL, PartHealth, StackState
from hostbench.model.registry import load_subsystems
from hostbench.results.store import ResultsStore
from hostbench.web.keys import HostKeys
from orchestrator.influx.outbox import Outbox, OutboxStatus
from orchestrator.influx.points import job_point
from orchestrator.influx.writer import BLOCK_S, OutboxWriter
from orchestrator.observe import (
    Check,
    Metrics,
    control_plane_meter,
    redis_check,
    results_check,
    thread_check,
)
from orchestrator.queue.acceptance import Acceptance
from orchestrator.queue.connection import connect, connect_async
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.keeper import Keeper, Stop
from orchestrator.queue.plans import Plans
from orchestrator.queue.record import StartedJob
from orchestrator.queue.scheduler import Listener, Scheduler
from orchestrator.results.apart import OneAtATime
from orchestrator.results.archive import Archive
from orchestrator.results.catalogue import Catalogue
from orchestrator.results.deciding import Decider
from orchestrator.results.monitored import MonitoredHosts
from orchestrator.results.reporting import Reporter
from orchestrator.results.retention import Retention
from orchestrator.run.events import LivePublisher
from orchestrator.run.links import Links, Registrar
from orchestrator.run.posted import PostedDocuments
from orchestrator.run.runner import Runner, Surroundings
from orchestrator.sessions import Sessions
from orchestrator.settings import Settings

# For calls that should fail fast and be retried soon: limits of each round trip, and a new
# connection has several.
QUICK_CONNECT_S = 0.5
QUICK_ANSWER_S = 1.0
# A trial's program has some seconds to end after its stop.
STOP_S = 8.0

log = structlog.get_logger()


class Orchestrator:
    """One orchestrator. Redis and InfluxDB may be unreachable when it starts, and at any time
    later."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        url, password = settings.redis_url, settings.redis_password
        client = connect(url, password)
        quick = connect(url, password, QUICK_ANSWER_S, QUICK_CONNECT_S)
        self.redis_async = connect_async(url, password)
        self.sessions = Sessions(self.redis_async)
        self.jobs, self.hosts = JobStore(client), HostStore(client)
        self.archive = Archive(ResultsStore(settings.results))
        self.catalogue = Catalogue(self.jobs, self.archive)
        plans = Plans()
        self.acceptance = Acceptance(self.hosts, plans)
        self.host_keys = HostKeys(settings.service_key.get_secret_value(), settings.host_keys_file)
        links = Links(self.host_keys, settings.ca_file)
        self._ending = Interrupt()
        self.registrar = Registrar(self.hosts, links, self._ending)
        apart = OneAtATime()
        self.reporter = Reporter(apart)
        self.decider = Decider(settings.results, apart)
        self.points = Points(settings) if settings.influxdb_url else None
        outbox = self.points.outbox if self.points else None
        self._retention = Retention(
            settings.limits,
            self.archive,
            self.jobs,
            outbox.forget_dead_letters_before if outbox else None,
        )
        self._quick_jobs = JobStore(quick)
        self._keeper = Keeper(self._quick_jobs.renew)
        self._live = LivePublisher(self._quick_jobs.publish)
        self.monitored = MonitoredHosts(
            settings.results, self.decider.refresh_index, self._runs_jobs, self._ending
        )
        self.posted = PostedDocuments(
            self.archive, self.jobs, outbox, self.decider, self._runs_jobs, self._ending
        )
        self.metrics = Metrics(
            self.jobs, lambda: self._keeper.count, self._outbox_figures, self.monitored.text
        )
        surroundings = Surroundings(
            jobs=self.jobs,
            hosts=self.hosts,
            archive=self.archive,
            links=links,
            plans=plans,
            keeper=self._keeper,
            live=self._live,
            outbox=outbox,
            decider=self.decider,
            meter=control_plane_meter(quick),
        )
        self._runner = Runner(surroundings)
        self._scheduler = Scheduler(
            self.jobs,
            secrets.token_hex(8),
            lambda: self._keeper.count,
            self._start_job,
            self._keep_reaped,
            self._note_changed,
            lambda: self.archive.refusal() is None,
        )
        self._listener = Listener(
            connect(url, password),
            self._scheduler.wake,
            lambda job_id: self._keeper.stop(job_id, Stop.CANCELLED),
        )

    def start(self) -> None:
        """Start to run jobs."""
        load_subsystems()
        self._keeper.start()
        self._live.start()
        if self.points is not None:
            self.points.writer.start()
        self.posted.start()
        self._retention.start()
        self._listener.start()
        self._scheduler.start()

    def stop(self) -> None:
        """Tell all jobs and threads to end, and return at once. It takes locks, so do not call it
        in a signal handler."""
        self._ending.trip()
        self._scheduler.end()
        self._keeper.stop_all(Stop.SHUTDOWN)

    def close(self) -> None:
        """End the jobs that run here, release their hosts, and end all threads."""
        self.stop()
        self._scheduler.close()
        # Also a job that the scheduler started meanwhile.
        self._keeper.stop_all(Stop.SHUTDOWN)
        self._runner.join(STOP_S)
        self._retention.close()
        self.posted.close()
        self.monitored.close()
        self._listener.close()
        self._live.close()
        if self.points is not None:
            self.points.writer.stop()
        self._keeper.close()

    def _runs_jobs(self) -> bool:
        return self._keeper.count > 0

    def _start_job(self, job: StartedJob, requested_s: float) -> bool:
        self.metrics.dispatch_seconds.observe(job.dispatch_s)
        return self._runner.start(job, requested_s)

    def _keep_reaped(self, job_id: str, state: StackState) -> None:
        """Record the end of a job whose orchestrator is dead."""
        if state in TERMINAL and (view := self.jobs.view(job_id)) is not None:
            self.archive.keep(view)

    def _note_changed(self, changed: Mapping[str, str]) -> None:
        """Hand over points of the present states of these jobs."""
        if self.points is not None:
            try:
                self.points.outbox.put(map(job_point, self.jobs.views(list(changed))))
            except OutOfMemoryError:
                return  # they remain among the changed jobs until there is room
        self.jobs.noted(changed)

    def checks(self) -> dict[str, Check]:
        """Return the checks of /healthz, by part."""
        return {
            "redis": redis_check(self.redis_async, self._quick_jobs),
            "scheduler": thread_check(lambda: self._scheduler.alive),
            "keeper": thread_check(lambda: self._keeper.alive),
            "listener": thread_check(lambda: self._listener.alive),
            "results": results_check(self.archive, self.settings.limits),
            "influxdb": self._influx_check,
        }

    async def _influx_check(self) -> PartHealth:
        if self.points is None:
            return PartHealth(status="off", detail="HOSTBENCH_INFLUXDB_URL is not set")
        return await self.points.check()

    def _outbox_figures(self) -> dict[str, float]:
        return {} if self.points is None else self.points.figures()


class Points:
    """The outbox of points for InfluxDB, and the writer that empties it."""

    def __init__(self, settings: Settings) -> None:
        url, password = settings.redis_url, settings.redis_password
        self.outbox = Outbox(connect(url, password))
        # This client waits in Redis until there is something to write.
        patient = connect(url, password, answer_timeout_s=2 * BLOCK_S)
        self.writer = OutboxWriter(patient, settings.influx_client(settings.ca_file))

    async def check(self) -> PartHealth:
        """Return whether the points arrive. Raise nothing: without Redis it is unknown."""
        from redis.exceptions import RedisError

        try:
            status = await asyncio.to_thread(self.outbox.status, self.writer.error)
        except RedisError:
            return PartHealth(status="degraded", detail="the outbox is in Redis, which is away")
        return PartHealth(
            status="ok" if status.healthy else "degraded", detail=_outbox_text(status)
        )

    def figures(self) -> dict[str, float]:
        """Return the figures for /metrics. Raise RedisError."""
        status = self.outbox.status()
        return {
            "entries": status.entries,
            "oldest_seconds": status.oldest_s or 0.0,
            "dead_letters": status.dead_letters,
            "left_out": status.left_out,
        }


def _outbox_text(status: OutboxStatus) -> str:
    parts = [f"{status.entries} entries wait in the outbox"]
    if status.oldest_s is not None:
        parts.append(f"the oldest for {status.oldest_s:.0f} s")
    if status.dead_letters:
        parts.append(f"{status.dead_letters} points were rejected: see GET /points/rejected")
    if status.left_out:
        parts.append(
            f"{status.left_out} points were left out: run python -m orchestrator.influx.reindex"
        )
    if status.error:
        parts.append(status.error)
    return ", ".join(parts)
