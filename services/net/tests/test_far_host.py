"""A near end and the far end of a session, as on two hosts: what it says when the far end is not
there, is another, or leaves."""

import hashlib
import hmac
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from services.net.tests.far_end import (
    CHALLENGE,
    HEARTBEAT,
    LISTENING,
    LOOPBACK,
    NEAR_NONCE,
    READY,
    TOKEN,
    WITHIN_S,
    FarEnd,
    Near,
    far_end,
    frame,
)
from services.net.tests.program import MOMENT, WORKLOADS, call, running, session_file
from tests.benchmark import FAILED, USAGE, refused, trial_of
from tests.meanwhile import meanwhile


def session(port: int, address: str = LOOPBACK, token: bytes = TOKEN) -> str:
    """What the near end is handed."""
    return f"address={address}\nport={port}\ntoken={token.hex()}\n"


def near(text: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """A trial with this session, and how long it took."""
    since = time.monotonic()
    with session_file(text) as fd:
        workload, *others = arguments or ("tcp_stream",)
        moment = () if any("--duration-s" in one for one in others) else MOMENT
        result = call(workload, *moment, f"--session-fd={fd}", *others, pass_fds=(fd,))
    return result, time.monotonic() - since


def says(text: str, code: int, *parts: str, arguments: tuple[str, ...] = ()) -> None:
    """One clear line within five seconds, and no figure."""
    result, took_s = near(text, *arguments)
    refused(result, code, *parts)
    assert took_s < WITHIN_S


# ---- as it is meant to be -----------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("address", [LOOPBACK, "::1"])
@pytest.mark.sampled(5)
def test_every_workload_works_with_a_far_end_that_was_opened_for_it(
    workload: str, address: str
) -> None:
    with far_end(bind=address, allowed=address) as far:
        result, _ = near(session(far.listening().port, address), workload)
        assert result.returncode == 0, result.stderr
        trial = trial_of(result.stdout.splitlines())
        assert trial.params["target"] == "far_host"
        assert trial.facts["far_address"] == address
        assert trial.facts["far_host_name"] == socket.gethostname()
        far.ended("done", within_s=1.5)


def test_the_most_streams() -> None:
    with far_end(streams=1024) as far:
        both = ("tcp_stream", "--streams=128", "--direction=both")
        result, _ = near(session(far.listening().port), *both)
        assert result.returncode == 0, result.stderr
        assert len(trial_of(result.stdout.splitlines()).end["threads"]) == 256
        far.ended("done")


def test_cpus_of_a_big_host() -> None:
    with far_end() as far:
        cpus = "0," + ",".join(map(str, range(1000, 2000, 2)))
        result, _ = near(session(far.listening().port), "tcp_rr", f"--far-cpus={cpus}")
        assert result.returncode == 0, result.stderr
        assert trial_of(result.stdout.splitlines()).facts["far_cpus"] == "0"
        far.ended("done")


def test_a_session_may_come_by_a_pipe() -> None:
    with far_end() as far:
        theirs, ours = os.pipe()
        os.write(ours, session(far.listening().port).encode())
        os.close(ours)
        result = call("tcp_rr", *MOMENT, f"--session-fd={theirs}", pass_fds=(theirs,))
        os.close(theirs)
        assert result.returncode == 0, result.stderr
        far.ended("done")


# ---- a far end that is not there ----------------------------------------------------------------


def test_a_port_without_a_listener() -> None:
    with socket.create_server((LOOPBACK, 0)) as gone:
        port = gone.getsockname()[1]
    says(session(port), FAILED, f"port {port} of", "refuses the connection", "open another")


def test_a_host_that_does_not_answer() -> None:
    with socket.socket() as full:
        full.bind((LOOPBACK, 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = []
        for _ in range(4):  # what comes when the queue is full is dropped
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex((LOOPBACK, port))
            waiting.append(one)
        time.sleep(0.1)
        says(session(port), FAILED, "cannot be reached", f"port {port}", "firewall")
        for one in waiting:
            one.close()


@pytest.mark.parametrize("address", ["224.0.0.1", "255.255.255.255", "ff02::1", "0.0.0.0"])
def test_an_address_that_is_no_hosts(address: str) -> None:
    says(session(1, address), USAGE, f"address={address}", "one host")


Served = Callable[[socket.socket], None]


@contextmanager
def server(serve: Served) -> Iterator[int]:
    """Somebody else at the port, for one caller."""
    with socket.create_server((LOOPBACK, 0)) as listener:

        def run(over: threading.Event) -> None:
            caller, _ = listener.accept()
            with caller:
                serve(caller)
                over.wait(10)

        with meanwhile(run):
            yield listener.getsockname()[1]


def test_a_half_open_far_end() -> None:
    with server(lambda caller: None) as port:
        says(session(port), FAILED, f"port {port}", "does not answer as a far end")


def test_a_far_end_that_stops_in_a_message() -> None:
    with server(lambda caller: caller.sendall(frame(CHALLENGE, bytes(16))[:-1])) as port:
        says(session(port), FAILED, f"port {port}", "does not answer as a far end")


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 30, frame(READY, bytes(60))]
)
def test_somebody_else_at_the_port(reply: bytes) -> None:
    with server(lambda caller: caller.sendall(reply)) as port:
        says(session(port), FAILED, f"port {port}", "not a far end of hostbench")


def greets(caller: socket.socket, token: bytes) -> None:
    """A far end's side of the handshake."""
    hello = caller.recv(22)
    far_nonce = b"f" * len(NEAR_NONCE)
    caller.sendall(frame(CHALLENGE, far_nonce))
    caller.recv(36)
    proof = hmac.digest(token, b"far" + hello[6:] + far_nonce, hashlib.sha256)
    caller.sendall(frame(READY, proof + struct.pack(">dIQd", 30, 16, 0, 0)))


def test_a_far_end_that_does_not_know_the_token() -> None:
    with server(lambda caller: greets(caller, b"other" * 4)) as port:
        says(session(port), FAILED, "does not know the token")


def test_udp_that_does_not_come_through() -> None:
    def serve(caller: socket.socket) -> None:
        greets(caller, TOKEN)
        caller.recv(65536)
        opening = struct.pack(">HHH", 0, 1, silent.getsockname()[1]) + bytes(16)
        caller.sendall(frame(LISTENING, opening))
        for _ in range(20):
            time.sleep(0.25)
            try:
                caller.sendall(frame(HEARTBEAT, bytes(4)))
            except OSError:
                return

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((LOOPBACK, 0))
        with server(serve) as port:
            says(session(port), FAILED, "1 of 1 UDP sockets", "firewall", arguments=("udp_stream",))


def test_a_data_port_that_is_shut() -> None:
    with socket.create_server((LOOPBACK, 0)) as gone:
        shut = gone.getsockname()[1]

    def serve(caller: socket.socket) -> None:
        greets(caller, TOKEN)
        caller.recv(65536)
        caller.sendall(frame(LISTENING, struct.pack(">HHH", 0, 1, shut) + bytes(16)))

    with server(serve) as port:
        says(session(port), FAILED, "data socket 1 of 1", f"port {shut}", "let through")


# ---- a far end that refuses ---------------------------------------------------------------------


@pytest.fixture
def far() -> Iterator[FarEnd]:
    """A far end that listens."""
    with far_end() as one:
        yield one.listening()


def test_a_wrong_token(far: FarEnd) -> None:
    says(session(far.port, token=b"y" * 16), FAILED, "does not know the token")
    result, _ = near(session(far.port))  # usable at once
    assert result.returncode == 0, result.stderr


def test_a_token_that_was_used(far: FarEnd) -> None:
    with Near.proven(far):
        says(session(far.port), FAILED, "used already", "open another session")


@pytest.mark.parametrize(
    ("caps", "arguments", "parts"),
    [
        ({"streams": 2}, ("tcp_stream", "--streams=3"), ("3 sockets", "allows 2")),
        (
            {"duration_s": 1},
            ("tcp_rr", "--duration-s=2", "--warmup-s=0"),
            ("allows 1 s", "duration_s"),
        ),
        ({"rate": 1e6}, ("udp_stream",), ("no rate", "1000000 byte/s")),
        ({"bytes": 5000}, ("tcp_stream", "--total-bytes=5001"), ("5001 bytes", "allows 5000")),
    ],
    ids=["streams", "time", "rate", "bytes"],
)
def test_more_than_the_session_allows(
    caps: dict[str, Any], arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    with far_end(**caps) as far:
        says(session(far.listening().port), USAGE, *parts, arguments=arguments)
        far.ended("refused")


def test_more_bytes_than_the_session_allows() -> None:
    with far_end(bytes=50_000_000) as far:
        text = session(far.listening().port)
        says(
            text,
            USAGE,
            "50000000 bytes",
            arguments=("tcp_stream", "--duration-s=20", "--warmup-s=0"),
        )
        far.ended("capped")


# ---- a far end that leaves ----------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("sent", "part"),
    [
        (signal.SIGKILL, "has closed the connection"),
        (signal.SIGSTOP, "silent for 3 s"),
        (signal.SIGTERM, "SIGTERM"),
    ],
)
@pytest.mark.sampled(5)
def test_a_far_end_that_leaves_in_the_middle(
    workload: str, sent: signal.Signals, part: str
) -> None:
    with (
        far_end(duration_s=100) as far,
        session_file(session(far.listening().port)) as fd,
        running(workload, "--warmup-s=0", f"--session-fd={fd}", pass_fds=(fd,)) as (process, _),
    ):
        time.sleep(0.3)
        since = time.monotonic()
        far.process.send_signal(sent)
        output, errors = process.communicate(timeout=WITHIN_S + 2)
        assert time.monotonic() - since < WITHIN_S
        assert process.returncode == FAILED
        (line,) = errors.splitlines()
        assert part in line and '"end"' not in output


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_far_end_that_leaves_under_load(sent: signal.Signals) -> None:
    """The load's threads are at work on the streams while the trial fails."""
    with (
        far_end(duration_s=100) as far,
        session_file(session(far.listening().port)) as fd,
        running(
            *("tcp_rr", "--load-streams=4", "--load-direction=both", f"--session-fd={fd}"),
            pass_fds=(fd,),
        ) as (process, _),
    ):
        time.sleep(0.3)
        far.process.send_signal(sent)
        _, errors = process.communicate(timeout=WITHIN_S + 2)
        assert process.returncode == FAILED and len(errors.splitlines()) == 1
