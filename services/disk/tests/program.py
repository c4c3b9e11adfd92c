"""disk-bench as the tests call it, and what its events say."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machine_code import ROOT

NAME = "disk-bench"
PROGRAM = ROOT / "build" / "release" / NAME
OK, FAILED, USAGE, RESOURCE, UNSUPPORTED, WRONG = range(6)
MIB = 1 << 20
# What keeps a trial short: a small file, and little time.
FILE_BYTES = 16 * MIB
MOMENT = (f"--file-bytes={FILE_BYTES}", "--duration-s=0.1", "--warmup-s=0")
WORKLOADS = (
    "seq_read",
    "seq_write",
    "seq_rw",
    "rand_read",
    "rand_write",
    "rand_rw",
    "fsync_latency",
)
NAIVE = ("naive_read", "naive_write", "naive_rw")
READING = ("seq_read", "seq_rw", "rand_read", "rand_rw")
# The longest anything here may take, on a machine whose CPUs others have.
TIMEOUT_S = 60.0


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


@contextmanager
def program_for_all() -> Iterator[Path]:
    """A copy of the program that every user can start, wherever the checkout lies."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield Path(shutil.copy(PROGRAM, directory))


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
    workload: str,
    *arguments: str,
    program: Path = PROGRAM,
    prefix: Sequence[str] = (),
    **options: Any,
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A long trial that has begun, and its start event; ended and gone afterwards."""
    with subprocess.Popen(
        [*prefix, str(program), workload, "--duration-s=60", *arguments],
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


def scratch_file(directory: Path) -> int:
    """The unnamed file of a job, as a descriptor."""
    return os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)


def on_disk() -> Path:
    """A directory that is not in memory, as the scratch directory has to be."""
    return Path(os.environ.get("HOSTBENCH_SCRATCH", "/var/tmp"))
