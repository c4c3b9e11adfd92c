"""The server of a tool for the time of a session: started, found by its port, and gone."""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import UsageError
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.model.service import SessionEndEvent, SessionEvent, SessionOutcome, SessionRequest
from hostbench.model.subsystem import Subsystem
from hostbench.model.trial import TrialFailed
from hostbench.programs import subsystem
from hostbench.programs.peer import Command, Params, Peer
from hostbench.programs.subsystem import HasPeers
from hostbench.service import toolserver
from hostbench.service.toolserver import ToolServerWork, free_port, is_taken
from hostbench.web.problem import Problem
from tests.patience import SOON_S, comes_true

# Serves one connection, as iperf3 -s -1 does, and says so.
ONE = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    server.accept()[0].sendall(b"hello")
"""
# Is there for datagrams, and never ends.
DATAGRAMS = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], int(sys.argv[2])))
while True:
    server.recv(10)
"""
WHERE = ONE.replace('b"hello"', "str(os.sched_getaffinity(0)).encode()").replace(
    "sys", "os, sys", 1
)
FAILS = "import sys; sys.exit('no such option')"
SCRIPTS = {
    "tcp_stream": ONE,
    "udp_stream": DATAGRAMS,
    "fails": FAILS,
    "where": WHERE,
    "sleeps": "import time; time.sleep(60)",
}


class Servers(Subsystem, HasPeers):
    """Servers of one tool, python3, by workload."""

    def tools(self) -> Sequence[str]:
        return ("python3",)

    def peers(self, workload: str, params: Params) -> Sequence[Peer]:
        del workload, params
        return ()

    def server(self, tool: str, workload: str, params: Params, address: str, port: int) -> Command:
        del params
        if workload not in SCRIPTS:
            raise UsageError(f"{tool} has no server for {workload}")
        return Command((sys.executable, "-c", SCRIPTS[workload], address, str(port)))


SERVERS = Servers(name="net", title="Network", port=1)


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsystem, "find_subsystem", lambda _name: SERVERS)


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    with contextlib.closing(Interrupt()) as one:
        yield one


def request(workload: str, **changes: Any) -> SessionRequest:
    given: dict[str, Any] = {"tool": "python3", "workload": workload, "duration_s": 60} | changes
    return SessionRequest(id="s1", allowed_address="127.0.0.1", **given)


@contextlib.contextmanager
def running(work: ToolServerWork, interrupt: Interrupt) -> Iterator[Any]:
    with (
        Path("/dev/null").open() as lock,
        contextlib.closing(work.run(interrupt, lock.fileno())) as events,
    ):
        yield events


def test_a_server_of_one_test(interrupt: Interrupt) -> None:
    """No client connects to find out whether it listens: that would be its one."""
    with running(ToolServerWork(request("tcp_stream"), "net", "127.0.0.1"), interrupt) as events:
        place = next(events)
        assert isinstance(place, SessionEvent) and place.token is None
        with socket.create_connection((place.address, place.port)) as near:
            assert near.recv(10) == b"hello"
        (end,) = events
    assert isinstance(end, SessionEndEvent) and end.outcome is SessionOutcome.DONE
    assert end.cpu_s is not None and end.cpu_s > 0


def test_a_server_runs_on_the_cpus_of_our_far_end(interrupt: Interrupt) -> None:
    cpu = max(os.sched_getaffinity(0))
    work = ToolServerWork(request("where", cpus=(cpu,)), "net", "127.0.0.1")
    with running(work, interrupt) as events:
        place = next(events)
        with socket.create_connection((place.address, place.port)) as near:
            assert near.recv(100).decode() == f"{{{cpu}}}"
    with pytest.raises(Problem) as raised:
        ToolServerWork(request("where", cpus=(8191,)), "net", "127.0.0.1")
    assert "8191" in raised.value.details.detail


def test_a_server_that_never_ends_is_ended_with_the_session(interrupt: Interrupt) -> None:
    with running(ToolServerWork(request("udp_stream"), "net", "127.0.0.1"), interrupt) as events:
        place = next(events)
        assert is_taken(place.port)
        threading.Timer(0.2, interrupt.trip).start()
        with pytest.raises(Interrupted):
            next(events)
    assert comes_true(lambda: not is_taken(place.port), SOON_S)


def test_its_time_is_over(interrupt: Interrupt) -> None:
    work = ToolServerWork(request("udp_stream", duration_s=0.2, expiry_s=0.2), "net", "127.0.0.1")
    with running(work, interrupt) as events:
        place, end = events
    assert end.outcome is SessionOutcome.CAPPED
    assert not is_taken(place.port)


def test_a_server_that_fails(interrupt: Interrupt) -> None:
    with (
        running(ToolServerWork(request("fails"), "net", "127.0.0.1"), interrupt) as events,
        pytest.raises(TrialFailed) as raised,
    ):
        next(events)
    assert raised.value.code == "tool_server" and "no such option" in raised.value.message


def test_a_server_that_does_not_listen(
    interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolserver, "READY_S_MOST", 0.3)
    with (
        running(ToolServerWork(request("sleeps"), "net", "127.0.0.1"), interrupt) as events,
        pytest.raises(TrialFailed) as raised,
    ):
        next(events)
    assert raised.value.code == "tool_server"


def test_a_tool_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(Problem) as raised:
        ToolServerWork(request("tcp_stream"), "net", "127.0.0.1")
    assert raised.value.details.status == 409
    assert raised.value.details.code == "tool_missing"


@pytest.mark.parametrize("workload", ["other", None])
def test_a_tool_without_a_server_for_it(workload: str | None) -> None:
    with pytest.raises(Problem) as raised:
        ToolServerWork(
            request("tcp_stream").model_copy(update={"workload": workload}), "net", "127.0.0.1"
        )
    assert raised.value.details.errors[0].field == "body.tool"


def test_a_port_that_is_free() -> None:
    port = free_port("127.0.0.1")
    assert not is_taken(port)
    with socket.create_server(("127.0.0.1", port)):
        assert is_taken(port)
