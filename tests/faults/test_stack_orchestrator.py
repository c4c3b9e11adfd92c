"""The orchestrator is killed, stopped and terminated in the middle of a trial."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import yaml

from hostbench.model.jobs import JobView, StackState
from hostbench.results.store import ResultsStore
from orchestrator.queue.connection import key
from orchestrator.queue.jobs import LEASE_S
from orchestrator.results.archive import Archive
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts, go_on, pause
from tests.patience import PATIENCE_S, wait_until
from tests.stack.orchestrator_process import SERVICE_KEY, OrchestratorProcess
from tests.stack.service_process import CHECKOUT, ServiceProcess
from tests.stack.slow_reader import SlowReader
from tests.unit.report_documents import sampled_run, stored

# A lease runs out, and the next look for such jobs.
LOST_S = LEASE_S + PATIENCE_S

pytestmark = pytest.mark.usefixtures("idle_afterwards")


@pytest.fixture(scope="module")
def script() -> str:
    """A trial of the host lasts, and leaves the CPU to other tests."""
    return "sleeps"


def in_mid_trial(orchestrator: OrchestratorProcess, service: ServiceProcess) -> str:
    """A job whose first case is done and whose second one runs."""
    job = orchestrator.submit(**SHORT_THEN_LONG)
    wait_until(
        lambda: (orchestrator.job(job)["progress"] or {}).get("done"), lambda: orchestrator.log
    )
    service.wait_for_program()
    return job


def kept_as(stack: StackParts, job: str, state: str) -> JobView:
    """What the results directory says of a job, once that is its state."""

    def kept() -> JobView:
        return JobView.model_validate_json((stack.results / job / "job.json").read_bytes())

    wait_until(lambda: kept().state == state, kept)
    return kept()


def wait_for_fresh_lease(stack: StackParts, job: str) -> None:
    """Until the job's lease was just renewed, so that a pause costs the job as little as it can."""
    with stack.redis.client() as client:
        before = client.hget(key("signs"), f"lease:{job}")
        wait_until(lambda: client.hget(key("signs"), f"lease:{job}") != before)


def test_killed_in_mid_trial(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    job = in_mid_trial(orchestrator, service)
    waiting = orchestrator.submit(**SHORT)
    orchestrator.kill()
    assert service.programs_gone_within()
    orchestrator.start()
    lost = orchestrator.wait_for(job, seconds=LOST_S)
    assert lost["state"] == "lost" and "resume the job" in lost["reason"]
    assert kept_as(stack, job, "lost").reason == lost["reason"], "also once Redis forgets it"
    assert (lost["exit_code"], lost["progress"]["done"]) == (None, 1)
    assert orchestrator.wait_for(waiting)["state"] == "succeeded", "the next job runs"
    assert [trial.value is not None for trial in stack.trials(job)] == [True], "kept"
    partial = orchestrator.result(job)
    assert partial["job"]["state"] == "interrupted"
    assert [len(case["trials"]) for case in partial["cases"]] == [1, 0]
    assert orchestrator.client.post(f"/jobs/{job}/resume").status_code == 202
    orchestrator.wait_for(job, StackState.RUNNING)
    assert [session.kept for session in stack.sessions(job)] == [
        (),
        (partial["cases"][0]["case"],),
    ]


@pytest.mark.exhaustive
def test_stopped_in_mid_trial_while_another_orchestrator_goes_on(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        stop_one_of_two(stack)


def stop_one_of_two(stack: StackParts) -> None:
    stopped, other = stack.orchestrator("stopped"), stack.orchestrator("other")
    other.pause()  # so that the first one gets the job
    service = stack.host(stopped)
    job = in_mid_trial(stopped, service)
    other.resume()
    waiting = stopped.submit(**SHORT)
    stopped.pause()
    assert service.programs_gone_within()
    assert other.wait_for(job, seconds=LOST_S)["state"] == "lost"
    assert other.wait_for(waiting)["state"] == "succeeded"
    before = other.job(job)
    journal = (stack.results / job / "journal.ndjson").read_bytes()
    stopped.resume()
    time.sleep(3)
    assert stopped.job(job) == other.job(job) == before, "it writes nothing of its state"
    assert stack.states(job)[-1] == "lost" and stack.states(job).count("lost") == 1
    records = (stack.results / job / "journal.ndjson").read_bytes().removeprefix(journal)
    assert b'"record":"trial"' not in records
    again = stopped.submit(**SHORT)
    assert stopped.wait_for(again)["state"] == "succeeded", "both go on"


def test_stopped_for_a_moment(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """The service ends the trial that was not renewed; the job says so."""
    job = in_mid_trial(orchestrator, service)
    wait_for_fresh_lease(stack, job)
    orchestrator.pause()
    assert service.programs_gone_within()
    orchestrator.resume()
    view = orchestrator.wait_for(job)
    assert view["state"] == "failed" and "1 of 2 cases are measured and kept" in view["reason"]
    assert orchestrator.wait_for(orchestrator.submit(**SHORT))["state"] == "succeeded"


def test_a_signal_in_mid_trial(orchestrator: OrchestratorProcess, service: ServiceProcess) -> None:
    job = in_mid_trial(orchestrator, service)
    waiting = orchestrator.submit(**SHORT)
    assert orchestrator.stop() == 0
    assert service.programs_gone_within()
    orchestrator.start()
    view = orchestrator.job(job)
    assert view["state"] == "lost", "at once: it gave its hosts back"
    assert "its orchestrator was stopped" in view["reason"]
    assert orchestrator.wait_for(waiting)["state"] == "succeeded"


class HalfAService:
    """It answers the first call of an orchestrator as a real service does, and not the second."""

    def __init__(self, like: ServiceProcess) -> None:
        self._first = like.client.get("/workloads").content
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    @contextlib.contextmanager
    def called_twice(self) -> Iterator[None]:
        """Enter after the second call; it gets no answer while this lasts."""
        self._listening.settimeout(PATIENCE_S)
        with self._listening, self._listening.accept()[0] as connection:
            assert connection.recv(1 << 16).startswith(b"GET /workloads")
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self._first)}\r\n\r\n"
            connection.sendall(head.encode() + self._first)
            assert connection.recv(1 << 16).startswith(b"GET /host")
            yield


@contextlib.contextmanager
def page_that_waits(results: Path) -> Iterator[str]:
    """A job whose document does not come to its end, so the process that makes its page waits."""
    directory = stored(sampled_run(samples=4), results)
    ended = JobView(
        id=directory.id,
        state=StackState.SUCCEEDED,
        reason=None,
        suite="quick",
        hosts=["bench-1"],
        priority=0,
        spec=None,
        submitted_unix_s=1.8e9,
    )
    Archive(ResultsStore(results)).keep(ended)
    directory.document.unlink()
    os.mkfifo(directory.document)
    yield directory.id


def test_a_signal_while_no_end_answers_or_reads(tmp_path: Path) -> None:
    """In mid-trial at a service that is stopped, while another one registers, with readers who take
    nothing, a page that is being made, and an InfluxDB that does not answer."""
    compose = yaml.safe_load((CHECKOUT / "compose.yaml").read_text())
    given_s = int(compose["services"]["orchestrator"]["stop_grace_period"].removesuffix("s"))
    with (
        StackParts(tmp_path) as stack,
        page_that_waits(stack.results) as page,
        socket.create_server(("127.0.0.1", 0)) as influxdb,
        ThreadPoolExecutor(2) as callers,
        contextlib.ExitStack() as opened,
    ):
        orchestrator = stack.orchestrator(
            HOSTBENCH_INFLUXDB_URL=f"http://127.0.0.1:{influxdb.getsockname()[1]}",
            HOSTBENCH_INFLUXDB_USER="writer",
            HOSTBENCH_INFLUXDB_PASSWORD="password of the writer",
        )
        service = stack.host(orchestrator, script="sleeps")
        job = in_mid_trial(orchestrator, service)
        for _ in range(3):
            opened.enter_context(SlowReader(orchestrator, job))
        callers.submit(orchestrator.client.get, f"/jobs/{page}/report")
        document = stack.results / page / "result.json"
        making = wait_until(lambda: opened_for_writing(document))
        assert making is not None
        opened.callback(os.close, making)
        half = HalfAService(service)
        registration = {
            "host": "bench-2", "subsystem": "cpu", "url": half.url, "instance": "5d41402abc4b2a76",
        }  # fmt: skip
        callers.submit(
            httpx.post,
            f"{orchestrator.url}/hosts",
            json=registration,
            headers={"Authorization": f"Bearer {SERVICE_KEY}"},
            timeout=120,
        )
        opened.enter_context(half.called_twice())
        pause(service)
        began_s = time.monotonic()
        assert orchestrator.stop() == 0
        took_s = time.monotonic() - began_s
        print(f"ended in {took_s:.1f} s")  # noqa: T201
        assert took_s < given_s, orchestrator.log
        assert "Traceback" not in orchestrator.log


def opened_for_writing(pipe: Path) -> int | None:
    """A descriptor of it, once somebody reads it."""
    with contextlib.suppress(OSError):
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    return None


@pytest.mark.exhaustive
def test_a_signal_between_taking_a_job_and_beginning_it(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    pause(service)
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    assert orchestrator.stop() == 0
    assert stack.states(job)[-1] == "queued", "it is not lost with us"
    go_on(service)
    orchestrator.start()
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert len(stack.sessions(job)) == 1


@pytest.mark.exhaustive
def test_killed_between_taking_a_job_and_beginning_it(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """The job cannot have measured anything: it is queued again by itself."""
    pause(service)  # so it does not say what it has
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    orchestrator.kill()
    go_on(service)
    orchestrator.start()
    assert orchestrator.wait_for(job, seconds=LOST_S)["state"] == "succeeded"
    assert len(stack.sessions(job)) == 1
    assert stack.states(job)[:4] == ["queued", "waiting", "queued", "waiting"]


@pytest.mark.exhaustive
def test_a_signal_before_a_job_has_begun(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    pause(service)
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    assert orchestrator.stop() == 0
    go_on(service)
    orchestrator.start()
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert stack.states(job)[:3] == ["queued", "waiting", "queued"]
