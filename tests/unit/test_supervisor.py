"""The supervisor of peers by itself: what it lays out for a peer, and hands on to it."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest

from hostbench.programs.peer_trial import SUPERVISOR
from tests.stack.ports import free_port


@pytest.fixture
def lifeline() -> Iterator[int]:
    read_end, write_end = os.pipe()
    yield read_end
    os.close(read_end)
    os.close(write_end)


@pytest.fixture
def unnamed(tmp_path: Path) -> Iterator[IO[bytes]]:
    with closing(tempfile.TemporaryFile(dir=tmp_path)) as file:
        file.write(b"one file for all")
        file.flush()
        yield file


def supervised(lifeline: int, *command: str, inherited: tuple[int, ...] = (), **more: Any) -> Any:
    request = {
        "command": command,
        "files": {},
        "links": {},
        "report": None,
        "timeout_s": 10.0,
        "inherited": inherited,
        **more,
    }
    run = subprocess.run(
        [sys.executable, "-I", "-S", str(SUPERVISOR), json.dumps(request), "--lifeline-fd",
         str(lifeline)],
        capture_output=True,
        check=True,
        pass_fds=[lifeline, *inherited],
    )  # fmt: skip
    return json.loads(run.stdout)


def test_a_link_leads_to_an_inherited_file(lifeline: int, unnamed: IO[bytes]) -> None:
    number = unnamed.fileno()
    links = {"test_file.0": f"/proc/self/fd/{number}"}
    ended = supervised(lifeline, "cat", "test_file.0", inherited=(number,), links=links)
    assert ended["exit_code"] == 0 and ended["output"] == "one file for all"


def test_removing_the_scratch_directory_leaves_what_links_lead_to(
    lifeline: int, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("still here")
    links = {"directory": str(kept), "file": str(kept / "file")}
    ended = supervised(lifeline, "sh", "-c", "pwd; ls", links=links)
    scratch, *names = ended["output"].split()
    assert names == ["directory", "file"]
    assert not Path(scratch).exists()
    assert (kept / "file").read_text() == "still here"


def test_without_the_descriptor_the_link_is_dangling(lifeline: int, unnamed: IO[bytes]) -> None:
    links = {"test_file.0": f"/proc/self/fd/{unnamed.fileno()}"}
    ended = supervised(lifeline, "cat", "test_file.0", links=links)
    assert ended["exit_code"] == 1 and "No such file" in ended["output"]


# ---- a server beside it ----

SERVER = """
import socket, sys, time
kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[sys.argv[1]]
here = socket.socket(socket.AF_INET6 if ":" in sys.argv[3] else socket.AF_INET, kind)
time.sleep(0.2)
here.bind((sys.argv[3], int(sys.argv[2])))
if kind == socket.SOCK_STREAM:
    here.listen()
print("here I am", flush=True)
if sys.argv[4] == "once":
    one, _ = here.accept()
    one.sendall(b"first")
    sys.exit(0)
time.sleep(100)
"""
CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as here:
    print(here.recv(100).decode())
"""


def listening(port: int, protocol: str, address: str, how: str) -> dict[str, Any]:
    command = [sys.executable, "-c", SERVER, protocol, str(port), address, how]
    return {"command": command, "protocol": protocol, "port": port}


def test_a_server_is_there_before_the_first_who_connects(lifeline: int) -> None:
    """It serves one connection: no client may have tried it before."""
    port = free_port()
    server = listening(port, "tcp", "127.0.0.1", "once")
    ended = supervised(lifeline, sys.executable, "-c", CLIENT, str(port), server=server)
    assert ended["exit_code"] == 0, ended["output"]
    assert ended["output"] == "first\n", "what the server prints is no figure"
    assert ended["left_behind"] == 0


@pytest.mark.parametrize(("protocol", "address"), [("udp", "127.0.0.1"), ("tcp", "::1")])
def test_a_server_that_goes_on_is_ended_and_is_not_left_behind(
    lifeline: int, protocol: str, address: str
) -> None:
    port = free_port()
    server = listening(port, protocol, address, "on")
    started_s = time.monotonic()
    ended = supervised(lifeline, "echo", "done", server=server)
    assert time.monotonic() - started_s < 10
    assert (ended["exit_code"], ended["output"], ended["left_behind"]) == (0, "done\n", 0)
    # Its time is not the peer's.
    assert ended["elapsed_s"] < 0.2
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as again:
        again.bind((address, port))


def test_what_a_server_printed_of_a_peer_that_failed(lifeline: int) -> None:
    server = listening(free_port(), "tcp", "127.0.0.1", "on")
    ended = supervised(lifeline, "sh", "-c", "sleep 0.1; exit 3", server=server)
    assert ended["exit_code"] == 3
    assert ended["output"] == "\n[output of its server:] here I am\n"


@pytest.mark.parametrize("command", [["false"], ["/no/such/server"], ["sh", "-c", "echo no; exit"]])
def test_without_its_server_a_peer_is_not_started(lifeline: int, command: list[str]) -> None:
    port = free_port()
    server = {"command": command, "protocol": "tcp", "port": port}
    ended = supervised(lifeline, "echo", "started", server=server)
    assert ended["exit_code"] is None
    assert "started" not in ended["output"]
    expected = "No such file" if "/no" in command[0] else f"nothing listens at tcp port {port}"
    assert expected in ended["output"]


def test_a_server_ends_with_the_lifeline() -> None:
    port = free_port()
    read_end, write_end = os.pipe()
    request = {
        "command": ["sleep", "100"],
        "files": {},
        "links": {},
        "report": None,
        "timeout_s": 100.0,
        "inherited": (),
        "server": listening(port, "tcp", "127.0.0.1", "on"),
    }
    command = [sys.executable, "-I", "-S", str(SUPERVISOR), json.dumps(request), "--lifeline-fd"]
    with subprocess.Popen([*command, str(read_end)], pass_fds=[read_end]) as supervisor:
        os.close(read_end)
        deadline_s = time.monotonic() + 10
        while not _reachable(port) and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert _reachable(port)
        os.close(write_end)
        assert supervisor.wait(10) == 1
    assert not _reachable(port)


def _reachable(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
