"""Round trips between two processes: every one counted, and what goes wrong reported."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compiled import STRICT, compiled
from tests.machine_code import ROOT

PROBE = Path(__file__).with_name("rr_probe.c")
BENCH, HARNESS = ROOT / "services" / "net" / "bench", ROOT / "harness"
SOURCES = (
    PROBE,
    *(BENCH / f"{name}.c" for name in ("rr", "ticks", "endpoint", "endpoint_facts", "test")),
    *(HARNESS / f"{name}.c" for name in ("histogram", "cpulist", "textfile")),
)
# An answer that has not come by then is lost.
ANSWER_S = 1.0
TIMEOUT_S = 30.0
HANGS_S = 20.0

Found = dict[str, Any]


@pytest.fixture(scope="module")
def probe() -> Path:
    """The compiled rr_probe.c, with sanitizers."""
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    folders = (f"-I{HARNESS}", f"-I{BENCH}")
    return compiled("rr_probe", SOURCES, [*STRICT, *checks, "-pthread", *folders, "-lm"])


def trips(probe: Path, kind: str, **options: object) -> Found:
    """What both ends counted."""
    arguments = [f"{name}={value}" for name, value in options.items()]
    run = subprocess.run([probe, kind, *arguments], capture_output=True, timeout=TIMEOUT_S)
    assert run.returncode == 0, run.stderr.decode()
    found: Found = json.loads(run.stdout)
    return found


def all_done(found: Found, operations: int, block: int) -> None:
    """Each was sent once, answered once, and timed."""
    assert (found["result"], found["far_result"]) == ("", "")
    for end in (found["near"], found["far"]):
        assert end["operations"] == operations
        assert end["bytes"] == operations * block
        assert (end["lost"], end["duplicated"], end["refused"]) == (0, 0, 0)
        assert 0 < end["cpu_s"] <= end["seconds"] + 0.01
        assert end["path_mtu"] >= 1280 and end["receive_buffer"] > 0
    assert found["latencies"] == operations
    assert 0 < found["p50_s"] <= found["p99_s"] < found["near"]["seconds"]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("spin", [0, 1])
@pytest.mark.parametrize(
    ("kind", "block"),
    [
        *(("tcp", block) for block in (1, 7, 9, 32768, 1 << 20)),
        *(("udp", block) for block in (1, 7, 9, 1472, 65507)),
    ],
)
@pytest.mark.sampled(7)
def test_all_are_counted(probe: Path, kind: str, block: int, spin: int, version: int) -> None:
    # As many as one byte can number, and some.
    operations = 300 if block < 1 << 20 else 20
    found = trips(probe, kind, block=block, spin=spin, version=version, operations=operations)
    all_done(found, operations, block)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_a_connection_each(probe: Path, block: int, version: int) -> None:
    operations = 500 if block == 1 else 20
    found = trips(probe, "crr", block=block, version=version, operations=operations)
    all_done(found, operations, block)
    assert found["strangers"] == 0


def test_connections_leave_no_port_behind(probe: Path) -> None:
    """Else the ports of a host were used up within seconds."""
    before = waiting()
    trips(probe, "crr", operations=2000)
    assert waiting() - before < 20


def waiting() -> int:
    """TCP sockets of this network namespace in TIME_WAIT (6) and FIN_WAIT2 (5)."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[3] in ("05", "06") for line in lines)


@pytest.mark.parametrize("kind", ["tcp", "udp", "crr"])
def test_time_ends_it(probe: Path, kind: str) -> None:
    found = trips(probe, kind, operations=0, seconds=0.3)
    assert 0.29 <= found["near"]["seconds"] < 1
    all_done(found, found["near"]["operations"], 1)
    assert found["near"]["operations"] > 100


@pytest.mark.parametrize("phase", [0, 1])
def test_lost_requests_are_exact(probe: Path, phase: int) -> None:
    """A filter drops every 16th: of 40 two, and nothing else is lost with them."""
    found = trips(probe, "udp", drop=16, operations=40, phase=phase)
    near = found["near"]
    assert (near["operations"], near["lost"], found["far"]["operations"]) == (40, 2, 38)
    assert (near["bytes"], found["latencies"]) == (38, 38)
    assert 2 * ANSWER_S <= near["seconds"] < 2 * ANSWER_S + 0.5
    assert found["p99_s"] < ANSWER_S


@pytest.mark.parametrize("block", [1, 64])
def test_what_answers_nothing_is_no_answer(probe: Path, block: int) -> None:
    """Datagrams of an earlier phase, or late ones."""
    found = trips(probe, "udp", block=block, early=5, operations=100)
    assert found["near"]["duplicated"] == 5
    assert (found["near"]["lost"], found["latencies"]) == (0, 100)


@pytest.mark.parametrize(("kind", "block"), [("tcp", 1), ("tcp", 100_000), ("udp", 9)])
def test_a_wrong_answer_fails(probe: Path, kind: str, block: int) -> None:
    found = trips(probe, kind, block=block, far="corrupt")
    assert found["result"] == "EBADMSG"
    assert found["near"]["what"] == f"an answer of {block} bytes is not what was requested"


@pytest.mark.parametrize("spin", [0, 1])
def test_a_far_end_that_vanishes(probe: Path, spin: int) -> None:
    found = trips(probe, "tcp", far="vanish", spin=spin)
    assert found["result"] == "ECONNRESET"
    assert found["near"]["what"].startswith("receiving")
    assert found["near"]["seconds"] < 1


def test_a_refused_datagram_is_counted(probe: Path) -> None:
    """The other end is gone: the kernel says so, and the operation is lost as any other."""
    found = trips(probe, "udp", far="vanish", operations=3)
    assert (found["result"], found["latencies"]) == ("", 1)
    assert found["near"]["lost"] == 2
    assert found["near"]["refused"] in (1, 2)  # the second may have come before it was gone


@pytest.mark.parametrize("spin", [0, 1])
@pytest.mark.parametrize(("kind", "block"), [("tcp", 1), ("tcp", 1 << 20), ("udp", 1), ("crr", 1)])
@pytest.mark.sampled(5)
def test_a_silent_far_end_delays_no_end(probe: Path, kind: str, block: int, spin: int) -> None:
    found = trips(probe, kind, block=block, far="silent", stop=0.3, spin=spin)
    assert found["result"] == ""
    assert 0.2 <= found["near"]["seconds"] < 1
    assert found["latencies"] == 0


def test_a_silent_listener_is_given_up(probe: Path) -> None:
    found = trips(probe, "crr", far="silent")
    assert found["result"] == "ETIMEDOUT"
    assert "nothing from the far end for 4 s" in found["near"]["what"]
    assert found["near"]["seconds"] < 6


@pytest.fixture
def started(probe: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start the probe; one that hangs is killed, so that it ends a test and not all of them."""
    timers: list[threading.Timer] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [probe, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        timers.append(threading.Timer(HANGS_S, os.killpg, (process.pid, signal.SIGKILL)))
        timers[-1].start()
        return process

    yield start
    for timer in timers:
        timer.cancel()


# A stranger may come as soon as the port is there, before the far end begins to answer.
@pytest.mark.parametrize("before", ["wait=1", "wait=2"])
@pytest.mark.parametrize("sent", [b"", b"x", b"fedcba98765432101", b"0123456789abcdef"])
def test_strangers_are_turned_away(
    started: Callable[..., subprocess.Popen[bytes]], sent: bytes, before: str
) -> None:
    """Who shows no key, or a wrong one, or goes when it has shown it: none holds up the others."""
    with started("crr", "operations=200", before) as process:
        assert process.stdin is not None and process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
            stranger.sendall(sent)
            time.sleep(0.05)
            if len(sent) == 16:
                stranger.close()
            process.stdin.write(b"\n")
            process.stdin.flush()
            found = json.loads(process.stdout.readline())
    assert found["near"]["operations"] == found["far"]["operations"] == 200
    assert found["strangers"] == (len(sent) != 16)
    assert found["near"]["seconds"] < 3.9  # what silence would have taken
