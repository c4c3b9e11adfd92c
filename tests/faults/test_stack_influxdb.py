"""InfluxDB comes and goes while the stack measures: the job does not care, and every point is
there once in the end."""

import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grafana.queries import Chosen, panel_queries
from hostbench.model.jobs import StackState
from hostbench.model.result import ResultDocument
from hostbench.results.store import ResultsStore
from orchestrator.influx.client import InfluxClient
from orchestrator.influx.reindex import reindex
from tests.faults.stack import SHORT_THEN_LONG, StackParts
from tests.patience import wait_until
from tests.stack.boards.answers import rows_of
from tests.stack.influx_server import EITHER, SHIPPED_PROGRAM, InfluxServer, ShippedInflux
from tests.stack.orchestrator_process import SERVICE_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import PROGRAMS, ServiceProcess
from tests.stack.stored_points import STATES, meant, stored

JOB = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 0.35, "warmup_s": 0, "sample_interval_s": 0.1},
    "trials": 2,
    "idle_policy": "force",
}


@dataclass(frozen=True)
class Stack:
    """One of each, as processes."""

    influx: InfluxServer
    orchestrator: OrchestratorProcess
    documents: list[ResultDocument] = field(default_factory=list)

    def run_job(self) -> None:
        """Run a job to its end and keep its document."""
        job_id = self.orchestrator.submit(**JOB)
        view = self.orchestrator.wait_for(job_id)
        assert view["state"] == "succeeded", view
        self.documents.append(ResultsStore(self.orchestrator.results).job(job_id).load())

    def meant(self) -> Counter[str]:
        """Return the points of all documents so far: what the database has to hold."""
        return sum(map(meant, self.documents), Counter())

    def part(self) -> dict[str, str]:
        """What /healthz says of InfluxDB."""
        answer = self.orchestrator.client.get("/healthz")
        assert answer.status_code == 200, answer.text
        part: dict[str, str] = answer.json()["parts"]["influxdb"]
        return part

    def wait_until_written(self, seconds: float = 60) -> None:
        """Until the outbox is empty and nothing is wrong."""
        until = time.monotonic() + seconds
        while not ((part := self.part())["status"] == "ok" and part["detail"].startswith("0 ")):
            assert time.monotonic() < until, part
            time.sleep(0.1)


# 1.x is supported too, so these go through both; the other tests of faults have one InfluxDB.
@pytest.fixture(scope="module", params=EITHER)
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    if request.param is ShippedInflux and not SHIPPED_PROGRAM.exists():
        pytest.skip("the InfluxDB of compose.yaml is not built here; scripts/influxdb.sh says why")
    tmp_path = tmp_path_factory.mktemp("stack")
    with (
        request.param(tmp_path / "influx") as influx,
        RedisServer(tmp_path / "redis") as database,
    ):
        influx.set_up()
        with OrchestratorProcess(
            tmp_path / "orchestrator", database.url, tmp_path / "results", **influx.settings
        ) as orchestrator:
            service = ServiceProcess(
                tmp_path / "service",
                key=SERVICE_KEY,
                HOSTBENCH_ORCHESTRATOR_URL=orchestrator.url,
            )
            with service:
                orchestrator.wait_for_host(service.host)
                yield Stack(influx, orchestrator)


def test_a_job_leaves_exactly_its_documents_points(stack: Stack) -> None:
    stack.run_job()
    stack.wait_until_written()
    with stack.influx.client() as influx:
        found = stored(influx)
    assert found == stack.meant()
    for name in ("result", "sample", "disturbance", "control_plane"):
        assert any(f"'{name}'" in text for text in found), name


def test_influxdb_stopped_for_a_whole_job(stack: Stack) -> None:
    stack.influx.stop(signal.SIGKILL)
    stack.run_job()
    part = stack.part()
    assert part["status"] == "degraded"
    assert "does not answer" in part["detail"] and "wait in the outbox" in part["detail"]
    stack.influx.start()
    stack.wait_until_written()
    with stack.influx.client() as influx:
        assert stored(influx) == stack.meant()


@pytest.mark.exhaustive
def test_a_job_that_is_measured_again_keeps_its_earlier_points(tmp_path: Path) -> None:
    """Its program has changed before it is resumed, so the document drops what the other one
    measured; in InfluxDB that is as if it were of an earlier job."""
    program = Path(shutil.copy2(PROGRAMS / "cpu-bench", tmp_path))
    with StackParts(tmp_path) as parts:
        server = parts.influx()
        orchestrator = parts.orchestrator(**server.settings)
        service = parts.host(orchestrator, HOSTBENCH_PROGRAMS=str(tmp_path))
        job = orchestrator.submit(**SHORT_THEN_LONG)

        def measured_in(session: int) -> ResultDocument:
            """The document once the first case is done; the job is cancelled then."""

            def is_done() -> bool:
                view = orchestrator.job(job)
                return int(view["sessions"]) == session and bool(view["progress"]["done"])

            wait_until(is_done)
            orchestrator.client.delete(f"/jobs/{job}").raise_for_status()
            assert orchestrator.wait_for(job)["state"] == "cancelled"
            answer = orchestrator.client.get(f"/jobs/{job}/result")
            return ResultDocument.model_validate_json(answer.content)

        before = measured_in(1)
        service.stop()
        with program.open("ab") as file:
            file.write(b"another build")
        service.start()
        orchestrator.wait_for_host(service.host)
        assert orchestrator.client.post(f"/jobs/{job}/resume").status_code == 202
        after = measured_in(2)
        dropped, kept = (document.cases[0].trials[0] for document in (before, after))
        assert dropped.time_unix_s < kept.time_unix_s and len(after.cases[0].trials) == 1
        with server.client() as influx:
            wanted = meant(before) | meant(after)
            wait_until(lambda: not wanted - stored(influx), lambda: wanted - stored(influx))


@pytest.mark.exhaustive
@pytest.mark.timeout(240)
def test_influxdb_and_the_orchestrator_gone_after_a_job(stack: Stack) -> None:
    stack.influx.stop(signal.SIGKILL)
    stack.run_job()
    stack.orchestrator.kill()
    stack.influx.start()
    stack.orchestrator.start()
    # What the dead one was given is taken over once it is surely dead.
    stack.wait_until_written(150)
    with stack.influx.client() as influx:
        assert stored(influx) == stack.meant()


def last_states(influx: InfluxClient) -> dict[str, str]:
    """What the table of jobs shows: of each the state that it came into last, as Grafana finds it
    among those that it was in."""
    now_ms = int(time.time() * 1000)
    around = Chosen(now_ms - 3_600_000, now_ms + 3_600_000, {})
    (text,) = [
        one.text
        for one in panel_queries(around)
        if (one.board, one.panel, one.ref) == ("hostbench-overview", "Jobs", "A")
    ]
    rows = sorted(rows_of(influx.query(text)), key=lambda row: row["since_ms"])
    return {row["job"]: row["state"] for row in rows}


@pytest.mark.timeout(180)
def test_the_table_of_jobs_has_the_last_state_of_each(tmp_path: Path) -> None:
    """Also of those that never began, and after an orchestrator that had points on their way."""
    with StackParts(tmp_path) as parts:
        server = parts.influx()
        orchestrator = parts.orchestrator(**server.settings)
        parts.host(orchestrator)
        done = orchestrator.submit(**JOB)
        orchestrator.wait_for(done)
        running = orchestrator.submit(**SHORT_THEN_LONG)
        waiting = orchestrator.submit(**JOB)
        dropped = orchestrator.submit(**JOB)
        orchestrator.client.delete(f"/jobs/{dropped}").raise_for_status()
        orchestrator.wait_for(running, StackState.RUNNING)
        states = {done: "succeeded", running: "running", waiting: "queued", dropped: "cancelled"}
        with server.client() as influx:
            wait_until(lambda: last_states(influx) == states, lambda: last_states(influx))
            server.stop(signal.SIGKILL)
            orchestrator.kill()
            orchestrator.start()
            orchestrator.wait_for(waiting)
            states |= {running: "lost", waiting: "succeeded"}
            server.start()
            wait_until(lambda: last_states(influx) == states, lambda: last_states(influx))
            assert {job: orchestrator.job(job)["state"] for job in states} == states
            ends = stored(influx, STATES)
        server.make_database("again")
        with server.client(database="again") as again:
            assert not reindex(ResultsStore(parts.results), again, lambda *_: None).rejected
            del states[dropped]
            assert last_states(again) == states, "nothing is left of what never began"
            assert not stored(again, STATES) - ends
