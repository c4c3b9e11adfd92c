"""A trial lives as long as its caller, its lease and its service, and not a second longer."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from hostbench.model.service import LEASE_S
from hostbench.service.__main__ import GRACE_S
from tests.patience import SOON_S, comes_true
from tests.service.conftest import StartService, behaving
from tests.service.streams import LONG, SHORT, lock_is_free, outcome, running
from tests.stack.service_process import CHECKOUT, ServiceProcess

HANG = {"workload": "fma", "params": {"threads": 1}}
# A caller as a process of its own: it renews and reads until somebody ends or stops it.
CALLER = """
import sys, threading, time
sys.path.insert(0, {checkout!r})
from hostbench.remote.client import RemoteService
from hostbench.model.service import TrialRequest
service = RemoteService({url!r}, {key!r})
request = TrialRequest(id="caller", workload="clock", params={{"threads": 1, "duration_s": 60}})
for line in service.trial(request):
    print(line.decode(), flush=True)
"""


@pytest.fixture
def caller(service: ServiceProcess) -> Iterator[subprocess.Popen[str]]:
    """A caller whose trial runs."""
    text = CALLER.format(checkout=str(CHECKOUT), url=service.url, key=service.key)
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert '"start"' in process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.exhaustive
def test_a_trial_that_is_renewed_goes_on(service: ServiceProcess) -> None:
    with running(service, "t1") as trial:
        time.sleep(LEASE_S + 2)
        assert not trial.ended.is_set() and service.program_pids()
        began_s = time.monotonic()
        trial.forget_the_lease()
        assert trial.failure()["code"] == "lease_lost"
        assert 1 < time.monotonic() - began_s < SOON_S
    assert not service.program_pids() and lock_is_free(service.lock)
    assert service.post(id="t2", **SHORT).status_code == 200


def test_no_renewal(scripted: ServiceProcess) -> None:
    with behaving(scripted, "sleeps"):
        lines = [json.loads(line) for line in scripted.post(id="t1", **LONG).content.splitlines()]
    assert [line["event"] for line in lines if line["event"] != "sample"] == [
        "start", "failure", "control_plane",
    ]  # fmt: skip
    assert outcome(scripted, "t1") == "lease_lost"


def test_a_program_that_ignores_signals_is_gone_in_time(scripted: ServiceProcess) -> None:
    with behaving(scripted, "hang"), running(scripted, "t1", **HANG) as trial:
        trial.forget_the_lease()
        assert trial.failure()["code"] == "lease_lost"
    assert not scripted.program_pids()


def test_a_lease_of_a_trial_that_has_ended(service: ServiceProcess) -> None:
    service.post(id="t1", **SHORT)
    answer = service.client.put("/trials/t1/lease")
    assert answer.status_code == 404 and answer.json()["code"] == "not_running"


@pytest.mark.parametrize("polite", [True, False])
def test_the_connection_closes(service: ServiceProcess, polite: bool) -> None:
    """Also with a reset, and while the program has nothing to say."""
    body = json.dumps({"id": "t1", **LONG} | {"params": {"threads": 1, "duration_s": 60}}).encode()
    host, _, port = service.listen.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            b"POST /trials HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + service.key.encode()
            + f"\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        assert b"200 OK" in connection.recv(4096)
        service.wait_for_program()
        if not polite:
            linger = b"\1\0\0\0\0\0\0\0"  # on, for 0 s: the close sends a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert outcome(service, "t1") == "caller_gone", "it did not wait for the lease to end"
    assert service.programs_gone_within() and lock_is_free(service.lock)
    assert service.post(id="t1", **SHORT).status_code == 200


def test_the_connection_closes_before_the_first_line(
    start_service: StartService, scripted: ServiceProcess
) -> None:
    """While it waits for a host that somebody else holds with a lower fence and does not yield."""
    other = start_service("other", lock=scripted.lock)
    with behaving(scripted, "hang"), running(scripted, "t1", fence=1, **HANG):
        os.kill(scripted.pid, signal.SIGSTOP)
        try:
            begun = {"id": "t2", "fence": 2, **SHORT}
            timeout = httpx.Timeout(60, read=1)
            with pytest.raises(httpx.ReadTimeout), other.another_client() as client:
                client.post("/trials", json=begun, timeout=timeout)
            assert outcome(other, "t2") == "caller_gone"
            assert "hostbench_service_trials_running 0.0" in other.client.get("/metrics").text
        finally:
            os.kill(scripted.pid, signal.SIGCONT)


def test_a_caller_that_is_killed(service: ServiceProcess, caller: subprocess.Popen[str]) -> None:
    caller.kill()
    assert outcome(service, "caller") == "caller_gone", "it did not wait for the lease to end"
    assert service.programs_gone_within() and lock_is_free(service.lock)
    caller.communicate()


def test_a_caller_that_is_stopped(service: ServiceProcess, caller: subprocess.Popen[str]) -> None:
    caller.send_signal(signal.SIGSTOP)
    began_s = time.monotonic()
    assert service.programs_gone_within()
    assert time.monotonic() - began_s > 1, "it ended before the lease did"
    assert lock_is_free(service.lock)
    caller.send_signal(signal.SIGCONT)
    assert "lease_lost" in caller.communicate(timeout=60)[0]


def test_a_service_that_is_killed(service: ServiceProcess) -> None:
    with running(service, "killed") as trial:
        service.wait_for_program()
        service.kill()
        assert service.programs_gone_within(), "the lifeline was not enough"
        assert lock_is_free(service.lock)
        trial.finish()
        assert trial.cut and "control_plane" not in [line["event"] for line in trial.lines]
    service.start()
    assert service.post(id="t2", fence=1, **SHORT).status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_has_to_end(service: ServiceProcess, number: signal.Signals) -> None:
    """Again and again, until it has ended."""
    process = service.process
    assert process is not None

    def ends() -> bool:
        for _ in range(10):
            process.send_signal(number)
            time.sleep(0.001)
        return process.poll() is not None

    with running(service, f"signalled-{number}") as trial:
        assert comes_true(ends)
        assert process.returncode == 0
        assert trial.failure()["code"] == "service_ends"
    service.process = None
    assert not service.program_pids() and lock_is_free(service.lock)


def test_a_service_that_has_to_end_while_nothing_runs(service: ServiceProcess) -> None:
    began_s = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() - began_s < GRACE_S, "nothing had to be waited for"


def test_a_service_that_has_to_end_during_a_look(service: ServiceProcess) -> None:
    with service.another_client() as client, ThreadPoolExecutor(1) as thread:
        look = thread.submit(client.get, "/idle?seconds=10")
        time.sleep(2)
        assert service.stop() == 0
        assert look.result().status_code == 503, "it was not waited for"


def test_an_ignored_sigchld_does_no_harm(service_of_file: ServiceProcess) -> None:
    """Our parent may have it ignored; then the kernel reaps our programs for us."""
    service = service_of_file
    service.stop()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        service.start()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert b'"end"' in service.post(id="t1", **SHORT).content.splitlines()[1]
