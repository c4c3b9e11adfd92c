"""net-bench with a session that another host has opened: here a far end of this one."""

import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from services.net.tests.far_end import LOOPBACK, TOKEN, FarEnd, far_end
from services.net.tests.program import (
    FAILED,
    MOMENT,
    USAGE,
    WORKLOADS,
    Trial,
    call,
    refused,
    session_file,
    trial_of,
)

WITHIN_S = 5.0


def session(far: FarEnd, token: bytes = TOKEN) -> str:
    """What the far host's service hands to the near end's."""
    return f"address={far.address}\nport={far.port}\ntoken={token.hex()}\n"


def measure(text: str, *arguments: str) -> Trial:
    """A trial that must end well."""
    with session_file(text) as fd:
        result = call(*arguments, f"--session-fd={fd}", pass_fds=(fd,))
    assert result.returncode == 0, result.stderr
    return trial_of(result.stdout.splitlines())


def refuse(text: str, arguments: Sequence[str], code: int, *parts: str) -> str:
    """A trial that must fail, soon and with one line; the line."""
    begun = time.monotonic()
    with session_file(text) as fd:
        result = call(*arguments, f"--session-fd={fd}", pass_fds=(fd,))
    line = refused(result, code, *parts)
    assert time.monotonic() - begun < WITHIN_S
    assert TOKEN.hex() not in line
    return line


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("target", ["auto", "far_host"])
def test_a_session_is_measured_in(workload: str, target: str) -> None:
    with far_end() as far:
        far.listening()
        trial = measure(session(far), workload, *MOMENT, f"--target={target}", "--streams=2")
        assert trial.params["target"] == "far_host"
        assert trial.facts["far_address"] == LOOPBACK
        assert trial.metrics["turned_away"] == 0
        assert far.ended("done")["cpu_s"] > 0


def test_where_the_far_end_runs_is_its_own_choice_there() -> None:
    with far_end() as far:
        far.listening()
        assert measure(session(far), "tcp_rr", *MOMENT).params["far_cpus"] is None


def test_a_wrong_token() -> None:
    with far_end() as far:
        far.listening()
        refuse(session(far, b"x" * 16), ["tcp_stream"], FAILED, "token")
        # One wrong proof does not spoil the session.
        measure(session(far), "tcp_stream", *MOMENT)
        far.ended("done")


def test_a_session_is_over_when_it_was_used() -> None:
    with far_end() as far:
        far.listening()
        text = session(far)
        measure(text, "tcp_stream", *MOMENT)
        refuse(text, ["tcp_stream"], FAILED, LOOPBACK)


@pytest.mark.parametrize(
    ("caps", "arguments", "part"),
    [
        ({"streams": 2}, ["tcp_stream", "--streams=3"], "streams"),
        ({"duration_s": 5}, ["tcp_stream", "--duration-s=100"], "duration_s"),
        ({"bytes": 1000}, ["tcp_stream", "--total-bytes=1001"], "bytes"),
        ({"rate": 1000}, ["udp_stream", "--rate=2000"], "rate"),
    ],
)
def test_more_than_the_session_allows(
    caps: dict[str, Any], arguments: list[str], part: str
) -> None:
    with far_end(**caps) as far:
        far.listening()
        line = refuse(session(far), arguments, USAGE, part)
        assert str(next(iter(caps.values()))) in line
        far.ended("refused")


def test_a_far_end_that_accepts_and_says_nothing() -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        text = f"address={LOOPBACK} port={silent.getsockname()[1]} token={TOKEN.hex()}"
        refuse(text, ["tcp_rr"], FAILED, LOOPBACK)


def test_somebody_else_at_that_port() -> None:
    with socket.create_server((LOOPBACK, 0)) as other:

        def greet() -> None:
            caller, _ = other.accept()
            with caller:
                caller.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)
                time.sleep(0.5)

        thread = threading.Thread(target=greet)
        thread.start()
        text = f"address={LOOPBACK} port={other.getsockname()[1]} token={TOKEN.hex()}"
        refuse(text, ["udp_rr"], FAILED, LOOPBACK)
        thread.join()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_far_end_whose_service_ends_it(workload: str) -> None:
    with far_end() as far:
        far.listening()
        timer = threading.Timer(1, far.cut_lifeline)
        timer.start()
        line = refuse(session(far), [workload, "--duration-s=20"], FAILED)
        assert LOOPBACK in line or "far end" in line
        timer.join()
        far.ended("ended")
