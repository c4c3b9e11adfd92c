"""mem-bench as the tests call it, and what its events say."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machine_code import ROOT

NAME = "mem-bench"
PROGRAM = ROOT / "build" / "release" / NAME
OK, FAILED, USAGE, RESOURCE, UNSUPPORTED, WRONG = range(6)
MIB = 1 << 20
MOMENT = ("--duration-s=0.05", "--warmup-s=0", "--threads=1")
# The longest anything here may take, on a machine whose CPUs others have.
TIMEOUT_S = 60.0

STREAM = ("read", "write", "copy", "scale", "add", "triad")
LIBRARY = ("read_write", "memset_write")
NAIVE = ("naive_copy", "naive_set")
TIMES = ("pointer_chase", "loaded_latency", "random_access")
# What one element of 8 bytes counts for: STREAM's convention, write-allocate left out.
ARRAYS = {"read": 1, "write": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3}


def threads_of(workload: str) -> str:
    """As few as it can do with."""
    return "--threads=2" if workload == "loaded_latency" else "--threads=1"


def moment(workload: str) -> tuple[str, ...]:
    """What keeps a trial short."""
    return (*MOMENT[:2], threads_of(workload))


@dataclass(frozen=True)
class Trial:
    """A trial that has ended well."""

    start: dict[str, Any]
    warnings: dict[str, str]
    end: dict[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        """As resolved."""
        found: dict[str, Any] = self.start["params"]
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
    assert events[-1]["event"] == "end" and events[-1]["verified"] is True
    return Trial(start, warnings, events[-1])


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
    workload: str, *arguments: str, program: Path = PROGRAM, prefix: Sequence[str] = ()
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A long trial that has begun, and its start event; ended and gone afterwards."""
    with subprocess.Popen(
        [*prefix, str(program), workload, "--duration-s=60", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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


def table(*prefix: str, program: Path = PROGRAM) -> dict[str, Any]:
    """The workloads of --list by name."""
    result = call("--list", program=program, prefix=prefix)
    assert result.returncode == OK, result.stderr
    return {workload["name"]: workload for workload in json.loads(result.stdout)["workloads"]}


def status_bytes(pid: int, key: str) -> int:
    """A line such as VmRSS of /proc/PID/status, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


Calls = Callable[..., subprocess.CompletedProcess[str]]
