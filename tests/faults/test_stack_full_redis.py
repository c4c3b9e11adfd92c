"""Redis has no memory left in the middle of a job: everything that was accepted goes on and ends,
and the caller learns why nothing new is accepted."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.results.store import ResultsStore
from orchestrator.influx.reindex import run as reindex
from orchestrator.queue.hosts import RENEW_S
from tests.faults.command import Command
from tests.faults.stack import StackParts
from tests.patience import wait_until
from tests.stack.influx_server import InfluxServer
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.stored_points import meant, stored

TRIAL = {"workload": "cpu.clock", "trials": 1, "idle_policy": "force"}
SHORT = {**TRIAL, "params": {"threads": 1, "duration_s": 0.2, "warmup_s": 0}}
# Long enough for what is asserted beside it.
SOME_SECONDS = {**TRIAL, "params": {"threads": 1, "duration_s": 6, "warmup_s": 0}}
# Less than an empty Redis uses.
FULL = "500kb"


@dataclass(frozen=True)
class FullStack:
    """A stack whose Redis can be filled, with an InfluxDB that can be stopped."""

    parts: StackParts
    influx: InfluxServer
    orchestrator: OrchestratorProcess

    def limit_redis(self, maxmemory: str) -> None:
        """Set what Redis may use; 0: everything."""
        with self.parts.redis.client() as client:
            client.config_set("maxmemory", maxmemory)

    def health(self, part: str) -> dict[str, str]:
        """Return what /healthz says of a part."""
        answer = self.orchestrator.client.get("/healthz")
        assert answer.status_code == 200, "jobs run"
        found: dict[str, str] = answer.json()["parts"][part]
        return found

    def renewed_unix_s(self) -> float:
        """Return when the host's service last renewed its registration."""
        (host,) = self.orchestrator.client.get("/hosts").json()["hosts"]
        assert host["state"] != "gone", host
        renewed: float = host["services"][0]["renewed_unix_s"]
        return renewed

    def outbox_is_empty(self) -> bool:
        """Whether every point that was handed over is in InfluxDB."""
        return self.health("influxdb")["detail"].startswith("0 entries")


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[FullStack]:
    with StackParts(tmp_path) as parts:
        influx = parts.influx()
        orchestrator = parts.orchestrator(**influx.settings)
        parts.host(orchestrator)
        yield FullStack(parts, influx, orchestrator)


def test_a_full_redis_locks_nothing(stack: FullStack, tmp_path: Path) -> None:
    orchestrator, client = stack.orchestrator, stack.orchestrator.client
    stack.influx.stop()
    before = orchestrator.submit(**SHORT)
    orchestrator.wait_for(before)
    wait_until(lambda: not stack.outbox_is_empty())
    running = orchestrator.submit(**SOME_SECONDS)
    queued, unwanted = orchestrator.submit(**SHORT), orchestrator.submit(**SHORT)
    stack.parts.service("bench-1").wait_for_program()
    stack.limit_redis(FULL)
    full_unix_s = time.time()

    # Nothing new is accepted, and the caller learns what to do.
    refused = client.post("/jobs", json=SHORT)
    assert (refused.status_code, refused.json()["code"]) == (507, "redis_full"), refused.text
    health = stack.health("redis")
    assert health["status"] == "degraded"
    key_file = tmp_path / "key"
    key_file.write_text(API_KEY)
    command = Command(
        tmp_path, HOSTBENCH_URL=orchestrator.url, HOSTBENCH_API_KEY_FILE=str(key_file)
    )
    submitted = command.run("submit", "--workload", "cpu.clock")
    assert submitted.code == ExitCode.UNREACHABLE
    for text in (refused.json()["detail"], health["detail"], submitted.last_line):
        assert "maxmemory" in text and "cancel" in text, "the remedy"
    assert "maxmemory" in command.run("jobs").output

    # What was accepted is cancelled, or ends with its document.
    assert client.delete(f"/jobs/{unwanted}").status_code == 202
    assert orchestrator.job(unwanted)["state"] == "cancelled"
    resumed = client.post(f"/jobs/{unwanted}/resume")
    assert (resumed.status_code, resumed.json()["code"]) == (507, "redis_full")
    for job in (running, queued):
        assert orchestrator.wait_for(job)["state"] == "succeeded"
        assert orchestrator.result(job)["job"]["state"] == "succeeded"
        (*_, (_, last)) = orchestrator.events(job)
        assert (last["event"], last["state"]) == ("state", "succeeded")

    # The host renews its registration.
    wait_until(lambda: stack.renewed_unix_s() > full_unix_s, seconds=3 * RENEW_S)

    # The points that wait are written, also by an orchestrator that is started now.
    orchestrator.stop()
    orchestrator.start()
    stack.influx.start()
    wait_until(stack.outbox_is_empty)

    # With memory again everything is as before; what found no room is written by `reindex`.
    stack.limit_redis("0")
    wait_until(lambda: stack.health("redis")["status"] == "ok")
    again = orchestrator.submit(**SHORT)
    assert orchestrator.wait_for(again)["state"] == "succeeded"
    wait_until(stack.outbox_is_empty)
    results = ResultsStore(stack.parts.results)
    documents = [results.job(job).load() for job in (before, running, queued, again)]
    with stack.influx.client() as influx:
        reindex(stack.parts.results, influx)
        assert stored(influx) == sum(map(meant, documents), Counter())
