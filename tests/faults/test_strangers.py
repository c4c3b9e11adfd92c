"""Strangers at the ports: what they do keeps no caller out, and ends no trial."""

import contextlib
import functools
import resource
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from hostbench.model.body import ERRORS_LISTED
from hostbench.model.registry import subsystems
from hostbench.model.result import Verdict
from hostbench.model.service import LEASE_S
from hostbench.model.suite import CASES_MOST
from hostbench.web.door import CONNECTIONS_MOST, READING_S
from tests.client.canned_server import certificate
from tests.faults.stack import StackParts
from tests.patience import PATIENCE_S, wait_until
from tests.service.streams import running
from tests.stack.answering import took_s
from tests.stack.service_process import ServiceProcess
from tests.stack.slow_reader import SlowReader

SILENT = 2000
CALLS = 20
ANSWERED_S = 0.25
MEMORY_MOST_KIB = 256 << 10
# Trials without end, one after another, so that they begin and end beside the strangers, too. No
# limit is known of them, so that no verdict depends on the machine.
TRIALS: dict[str, Any] = {
    "suite": {
        "name": "many-trials",
        "idle": {"policy": "force"},
        "repeats": {"min_trials": 1000, "max_trials": 1000},
        "cases": [{"workload": "cpu.clock", "params": {"threads": 1, "duration_s": 0.5}}],
    }
}
# Its plan, which is an event, has megabytes: more than what waits on the way to a reader.
LARGE: dict[str, Any] = {
    "suite": {
        "name": "ten-thousand",
        "idle": {"policy": "force"},
        "repeats": {"min_trials": 1, "max_trials": 1},
        "cases": [
            {
                "workload": "cpu.clock",
                "label": "a label that makes the plan larger " * 2,
                "params": {"threads": 1, "sample_interval_s": 60},
                "grid": {"duration_s": [60 + number / 1000 for number in range(CASES_MOST)]},
            }
        ],
    }
}
MEASURED = {Verdict.CLEAN, Verdict.NOISY, Verdict.DISTURBED}


@contextlib.contextmanager
def many_descriptors() -> Iterator[None]:
    """This process may have so many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, SILENT + 500)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ended(strangers: Sequence[socket.socket]) -> int:
    """How many of them the server has disconnected."""
    count = 0
    for stranger in strangers:
        stranger.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            count += stranger.recv(1) == b""
    return count


def connected(url: str) -> socket.socket:
    """A connection to a server, on which nothing is sent."""
    if url.startswith("unix:"):
        stranger = socket.socket(socket.AF_UNIX)
        stranger.settimeout(PATIENCE_S)
        stranger.connect(url.removeprefix("unix:"))
        return stranger
    address = httpx.URL(url)
    return socket.create_connection((address.host, address.port), timeout=PATIENCE_S)


def check_calls(url: str, client: httpx.Client, *pids: int) -> None:
    """While strangers connect and say nothing, a caller who was there before gets each answer in
    time; with all of them there, callers who come anew do. `pids`: of the servers that answer."""

    def check_call(**headers: str) -> None:
        call = functools.partial(client.get, "/healthz", headers=headers)
        took = took_s(lambda: call().raise_for_status(), *pids)
        assert took < ANSWERED_S, (url, took)

    check_call()
    with many_descriptors(), contextlib.ExitStack() as stack:
        strangers: list[socket.socket] = []
        for _ in range(CALLS):
            strangers += [stack.enter_context(connected(url)) for _ in range(SILENT // CALLS)]
            check_call()
        wait_until(lambda: ended(strangers) >= SILENT - CONNECTIONS_MOST)
        for _ in range(CALLS):
            check_call(Connection="close")


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.sampled(2)
def test_silent_connections_to_each_port_beside_a_trial(
    tmp_path: Path, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTBENCH_SCRATCH", str(tmp_path))
    made = certificate(tmp_path, "IP:127.0.0.1") if tls else None
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator(**({} if made is None else made.of_server))
        services = {
            name: stack.host(orchestrator, subsystem=name, certificate=made)
            for name in subsystems()
        }
        job = orchestrator.submit(**TRIALS)
        services["cpu"].wait_for_program()
        check_calls(orchestrator.url, orchestrator.client, orchestrator.pid, stack.redis.pid)
        for service in services.values():
            with service.another_client() as client:
                check_calls(service.url, client, service.pid)
        wait_until(lambda: stack.trials(job))
        assert orchestrator.job(job)["state"] == "running"
        assert {trial.verdict for trial in stack.trials(job)} <= MEASURED
        orchestrator.client.delete(f"/jobs/{job}").raise_for_status()
        orchestrator.wait_for(job)
        logs = [orchestrator.log, *(service.log for service in services.values())]
        assert "Traceback" not in "".join(logs)


def test_silent_connections_to_a_unix_socket(tmp_path: Path) -> None:
    """As the net service has one. In the stack only the orchestrator's container has it, too."""
    listen = f"unix:{tmp_path / 'net.sock'}"
    with (
        ServiceProcess(tmp_path / "one", subsystem="net", listen=listen) as service,
        service.another_client() as client,
    ):
        check_calls(service.url, client, service.pid)
        assert "Traceback" not in service.log


def test_strangers_who_connect_again_and_again(tmp_path: Path) -> None:
    made = certificate(tmp_path, "IP:127.0.0.1")
    with ServiceProcess(tmp_path / "one", certificate=made) as service:
        with running(service, "t1") as trial, contextlib.ExitStack() as opened:
            trial.renewed()
            address = httpx.URL(service.url)
            until_s = time.monotonic() + LEASE_S + 3
            connections: deque[socket.socket] = deque(maxlen=SILENT // 2)
            while time.monotonic() < until_s:
                if len(connections) == connections.maxlen:
                    connections.popleft().close()
                with contextlib.suppress(OSError):
                    stranger = socket.create_connection((address.host, address.port), timeout=5)
                    connections.append(opened.enter_context(stranger))
            assert not trial.ended.is_set(), trial.lines
        assert "Traceback" not in service.log


@pytest.mark.exhaustive
def test_a_reader_of_events_who_is_too_slow_is_dropped_and_comes_back(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        stack.host(orchestrator)
        job = orchestrator.submit(**LARGE)
        stack.service("bench-1").wait_for_program()
        with SlowReader(orchestrator, job) as reader:
            wait_until(
                lambda: "connections_ended" in orchestrator.log, seconds=READING_S + PATIENCE_S
            )
            orchestrator.client.delete(f"/jobs/{job}").raise_for_status()
            orchestrator.wait_for(job)
            events = list(orchestrator.events(job))
            before_plan = [event["event"] for _, event in events].index("plan")
            got = reader.ids()
        assert got == [event_id for event_id, _ in events[:before_plan]], "dropped in mid-plan"
        assert list(orchestrator.events(job, got[-1])) == events[before_plan:]


def bombs() -> dict[str, bytes]:
    """Bodies with as many errors as values are read; `many` has more."""

    def body(cases: bytes, **more: int) -> bytes:
        added = b"".join(b',"%s":%d' % one for one in ((k.encode(), v) for k, v in more.items()))
        return b'{"suite":{"name":"a","cases":[' + cases + b"]" + added + b"}}"

    def published(tables: bytes) -> bytes:
        case = b'{"workload":"cpu.fma"}'
        return body(case)[:-2] + b',"published":{"tables":[' + tables + b"]}}}"

    entry = b'{"workload":"cpu.fma","grid":{"threads":[%s[]]}}'
    return {
        "many": body(b"{}," * 349_000 + b"{}"),
        "cases": body(b"{}," * 60_000 + b"{}"),
        "values": body(entry % (b"[]," * 60_000)),
        "params": body(
            b'{"workload":"cpu.fma","params":{%s}}'
            % b",".join(b'"%x":[]' % number for number in range(60_000))
        ),
        "axes": body(
            b'{"workload":"cpu.fma","grid":{%s}}'
            % b",".join(b'"%x":1' % number for number in range(100_000))
        ),
        "peers": b'{"suite":"a","peers":[' + b"{}," * 60_000 + b"{}]}",
        "tables": published(b"{}," * 60_000 + b"{}"),
        "rows": published(b'{"rows":[' + b"[]," * 60_000 + b"[]]}"),
        "cells": published(b'{"rows":[[' + b"{}," * 60_000 + b"{}]]}"),
        "unknown": body(b"{}", **{f"{number:x}": 1 for number in range(110_000)}),
        "deep": b'{"suite":' * 100_000,
    }


def test_bodies_full_of_errors_cost_neither_memory_nor_time(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        status = Path(f"/proc/{orchestrator.pid}/status")
        for name, body in bombs().items():
            assert len(body) <= 1 << 20, name
            with ThreadPoolExecutor(2) as twice:
                posts = [
                    twice.submit(orchestrator.client.post, "/jobs", content=body) for _ in range(2)
                ]
            for post in posts:
                problem = post.result().json()
                if name == "many":
                    assert (post.result().status_code, problem["code"]) == (413, "too_large")
                    continue
                assert post.result().status_code == 422, (name, problem)
                assert 1 <= len(problem["errors"]) <= ERRORS_LISTED, name
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < MEMORY_MOST_KIB, peak
        assert "Traceback" not in orchestrator.log
