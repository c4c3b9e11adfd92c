"""Strangers at the ports: what they do keeps no caller out, and ends no trial."""

import contextlib
import resource
import socket
import statistics
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from hostbench.model.body import ERRORS_LISTED
from hostbench.model.service import LEASE_S
from hostbench.web.door import CONNECTIONS_MOST
from tests.client.canned_server import certificate
from tests.faults.stack import StackParts
from tests.service.streams import running
from tests.stack.service_process import ServiceProcess

SILENT = 2000
CALLS = 20
ANSWERED_S = 0.25
MEMORY_MOST_KIB = 256 << 10


@contextlib.contextmanager
def silent_connections(url: str) -> Iterator[list[socket.socket]]:
    """So many callers of a server who never say anything, some of them no longer connected."""
    address = httpx.URL(url)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, SILENT + 500)), hard))
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((address.host, address.port), timeout=30))
            for _ in range(SILENT)
        ]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def check_calls(url: str, client: httpx.Client) -> None:
    """Callers, each on a connection of its own and all on one, are answered."""
    took_s = []
    with silent_connections(url) as strangers:
        for _ in range(CALLS):
            began_s = time.monotonic()
            client.get("/healthz", headers={"Connection": "close"}).raise_for_status()
            took_s.append(time.monotonic() - began_s)
        assert statistics.median(took_s) < ANSWERED_S
        ended = 0
        for stranger in strangers:
            stranger.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                ended += stranger.recv(1) == b""
        assert ended >= SILENT - CONNECTIONS_MOST


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_silent_connections_to_a_service_with_a_trial(tmp_path: Path, tls: bool) -> None:
    made = certificate(tmp_path, "IP:127.0.0.1") if tls else None
    with ServiceProcess(tmp_path / "one", certificate=made) as service:
        with running(service, "t1") as trial:
            trial.begun().renewed()
            with service.another_client() as client:
                check_calls(service.url, client)
            assert not trial.ended.is_set(), trial.lines
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


def test_silent_connections_to_an_orchestrator(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        check_calls(orchestrator.url, orchestrator.client)
        stack.host(orchestrator)
        assert "Traceback" not in orchestrator.log


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
