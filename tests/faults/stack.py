"""A stack whose parts can be killed, stopped and started: Redis, InfluxDB, orchestrators,
services."""

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostbench.model.jobs import TERMINAL
from hostbench.model.result import SessionRecord, TrialRecord
from hostbench.results.journal import read_journal
from hostbench.results.store import JOURNAL
from orchestrator.queue.connection import key
from tests.client.canned_server import Certificate
from tests.faults.command import PROGRAMS, scripted_programs
from tests.stack.influx_server import InfluxServer, newest_influx
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess

# As short as they get; no limit is known of it, so that no verdict depends on the machine.
SHORT: dict[str, Any] = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 0.05, "warmup_s": 0},
    "trials": 1,
    "idle_policy": "force",
}
# A short case, then one that goes on until somebody ends it.
SHORT_THEN_LONG: dict[str, Any] = {
    "suite": {
        "name": "short-then-long",
        "idle": {"policy": "force"},
        "repeats": {"min_trials": 1, "max_trials": 1},
        "cases": [
            {"workload": "cpu.clock", "params": {"threads": 1, "duration_s": seconds}}
            for seconds in (0.05, 600)
        ],
    }
}


class StackParts:
    """One Redis, an InfluxDB where a test wants it, any number of orchestrators and hosts; all are
    ended with it."""

    def __init__(self, root: Path, **environment: str) -> None:
        """`environment` adds to that of Redis."""
        self.root = root
        self.results = root / "results"
        self._stack = contextlib.ExitStack()
        self._services: dict[str, ServiceProcess] = {}
        self.redis = self._stack.enter_context(RedisServer(root / "redis", **environment))

    def __enter__(self) -> "StackParts":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def influx(self) -> InfluxServer:
        """A running InfluxDB with its users and database; its `settings` are an orchestrator's."""
        server = self._stack.enter_context(newest_influx(self.root / "influx"))
        server.set_up()
        return server

    def orchestrator(self, name: str = "orchestrator", **environment: str) -> OrchestratorProcess:
        """A running orchestrator, with these settings beside its own."""
        one = OrchestratorProcess(self.root / name, self.redis.url, self.results, **environment)
        return self._stack.enter_context(one)

    def host(
        self,
        orchestrator: OrchestratorProcess,
        name: str = "bench-1",
        script: str | None = None,
        subsystem: str = "cpu",
        certificate: Certificate | None = None,
        **environment: str,
    ) -> ServiceProcess:
        """A host with a service that is registered; `script`: of the scripted program, in place of
        the real one; with a `certificate` it speaks TLS. Called again for another subsystem, it
        adds a service to the host."""
        root = self.root / name / subsystem
        root.mkdir(parents=True)
        service = ServiceProcess(
            root,
            host=name,
            subsystem=subsystem,
            lock=self.root / name / "hostbench.lock",
            programs=PROGRAMS if script is None else scripted_programs(root),
            certificate=certificate,
            HOSTBENCH_ORCHESTRATOR_URL=orchestrator.url,
            SCRIPT=script or "",
        )
        service.environment |= environment
        self._stack.enter_context(service)
        self._services[name] = service
        orchestrator.wait_for_host(name, subsystem=subsystem)
        return service

    def service(self, name: str) -> ServiceProcess:
        """The service of a host that was added last."""
        return self._services[name]

    # ---- what is left behind ----

    def sessions(self, job: str) -> list[SessionRecord]:
        """How often a job began to measure, by its journal."""
        records = read_journal(self.results / job / JOURNAL)
        return [record for record in records if isinstance(record, SessionRecord)]

    def trials(self, job: str) -> list[TrialRecord]:
        """The trials its journal holds."""
        if not (self.results / job / JOURNAL).exists():
            return []
        records = read_journal(self.results / job / JOURNAL)
        return [record for record in records if isinstance(record, TrialRecord)]

    def states(self, job: str) -> list[str]:
        """The states it went through in its present session, by its events."""
        with self.redis.client() as client:
            entries: Any = client.xrange(key("events", job))
        events = [json.loads(fields["event"]) for _, fields in entries]
        return [event["state"] for event in events if event["event"] == "state"]


def end_all_jobs(orchestrator: OrchestratorProcess) -> None:
    """Cancel what a test left behind."""
    jobs = [
        job["id"]
        for job in orchestrator.client.get("/jobs").json()["jobs"]
        if job["state"] not in TERMINAL
    ]
    for job in jobs:
        orchestrator.client.delete(f"/jobs/{job}")
    for job in jobs:
        orchestrator.wait_for(job)


def pause(service: ServiceProcess) -> None:
    """It does nothing until `go_on`."""
    assert service.process is not None
    service.process.send_signal(signal.SIGSTOP)


def go_on(service: ServiceProcess) -> None:
    """It goes on where it was paused."""
    assert service.process is not None
    service.process.send_signal(signal.SIGCONT)


def trials_begun(service: ServiceProcess, job: str = "") -> Iterator[dict[str, Any]]:
    """What a service says of the trials it began; `job`: of those of one job."""
    for line in service.log.splitlines():
        event = json.loads(line) if line.startswith("{") else {"event": ""}
        if event["event"] == "trial_begins" and event["trial"].startswith(job):
            yield event
