"""net-bench as the tests call it, and what its events say."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.benchmark import Benchmark

NAME = "net-bench"
BENCHMARK = Benchmark(NAME)
PROGRAM = BENCHMARK.path
call, measure, running = BENCHMARK.call, BENCHMARK.measure, BENCHMARK.running
table = BENCHMARK.table
MOMENT = ("--duration-s=0.2", "--warmup-s=0.05")
STREAMS = ("tcp_stream", "udp_stream")
ROUND_TRIPS = ("tcp_rr", "udp_rr", "tcp_crr")
NAIVE = "naive_stream"
WORKLOADS = (*STREAMS, *ROUND_TRIPS, NAIVE)


def children_of(pid: int) -> list[int]:
    """Processes that this one has started and that are still there."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone_within(pids: Sequence[int], seconds: float) -> bool:
    """Whether all of these processes end in that time."""
    until = time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def sockets_of(pid: int) -> int:
    """Open sockets of a process; 0 of one that is gone."""
    try:
        entries = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0
    return sum(_target(entry).startswith("socket:") for entry in entries)


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


# Before a program that ordinary work is not to hold up; without the right to it, nice starts it all
# the same.
BEFORE_OTHERS = ("nice", "-n", "-20")


def small_loopback(mtu: int) -> tuple[str, ...]:
    """What stands before a program whose loopback is to have this MTU: a namespace of its own."""
    script = f'ip link set lo mtu {mtu} up && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh")
    try:
        works = subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        works = False
    if not works:
        pytest.skip("no network namespace can be made here (unshare, ip)")
    return prefix


@contextmanager
def session_file(text: str) -> Iterator[int]:
    """A descriptor of a file that only its holder can read, as a service hands a session over."""
    fd = os.memfd_create("session")
    os.write(fd, text.encode())
    try:
        yield fd
    finally:
        os.close(fd)
