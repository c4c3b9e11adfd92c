"""net-bench as the tests call it, and what its events say."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.machine_code import ROOT

NAME = "net-bench"
PROGRAM = ROOT / "build" / "release" / NAME
OK, FAILED, USAGE, RESOURCE, UNSUPPORTED, WRONG = range(6)
MIB = 1 << 20
MOMENT = ("--duration-s=0.2", "--warmup-s=0.05")
STREAMS = ("tcp_stream", "udp_stream")
ROUND_TRIPS = ("tcp_rr", "udp_rr", "tcp_crr")
NAIVE = "naive_stream"
WORKLOADS = (*STREAMS, *ROUND_TRIPS, NAIVE)
# The longest anything here may take, on a machine whose CPUs others have.
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Trial:
    """A trial that has ended well."""

    start: dict[str, Any]
    samples: tuple[dict[str, Any], ...]
    warnings: dict[str, str]
    end: dict[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        """As resolved."""
        found: dict[str, Any] = self.start["params"]
        return found

    @property
    def facts(self) -> dict[str, str]:
        """Of the way between the two ends."""
        found: dict[str, str] = self.start["facts"]
        return found

    @property
    def metrics(self) -> dict[str, Any]:
        """Of the whole trial."""
        found: dict[str, Any] = self.end["metrics"]
        return found


def call(
    *arguments: str, program: Path = PROGRAM, prefix: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess[str]:
    """One call; `prefix` stands before the program."""
    command = [*prefix, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, **options)


def measure(workload: str, *arguments: str, **options: Any) -> Trial:
    """A trial that must end well."""
    result = call(workload, *arguments, **options)
    assert result.returncode == OK, result.stderr
    return trial_of(result.stdout.splitlines())


def trial_of(lines: Sequence[str]) -> Trial:
    """The trial of these events."""
    events = [json.loads(line) for line in lines]
    warnings = {one["code"]: one["message"] for one in events if one["event"] == "warning"}
    (start,) = (one for one in events if one["event"] == "start")
    samples = tuple(one for one in events if one["event"] == "sample")
    assert events[-1]["event"] == "end" and events[-1]["verified"] is True
    return Trial(start, samples, warnings, events[-1])


def refused(result: subprocess.CompletedProcess[str], code: int, *parts: str) -> str:
    """One line that holds all parts, the exit code, and no figure; the line."""
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["event"] == ("skip" if code == UNSUPPORTED else "error")
    assert '"end"' not in result.stdout
    (line,) = result.stderr.splitlines()
    for part in parts:
        assert part in line, line
    assert (last["reason"] if code == UNSUPPORTED else last["message"]) in line
    return line


@contextmanager
def running(
    workload: str, *arguments: str, prefix: Sequence[str] = (), **options: Any
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A long trial that has begun, and its start event; ended and gone afterwards."""
    with subprocess.Popen(
        [*prefix, str(PROGRAM), workload, "--duration-s=60", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            first = process.stdout.readline()
            assert first, process.stderr.read()
            yield process, json.loads(first)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=20)
            except (subprocess.TimeoutExpired, ValueError):
                process.kill()


def table(**options: Any) -> dict[str, Any]:
    """The workloads of --list by name."""
    result = call("--list", **options)
    assert result.returncode == OK, result.stderr
    return {workload["name"]: workload for workload in json.loads(result.stdout)["workloads"]}


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
