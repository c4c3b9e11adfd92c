"""gpu-bench as the tests call it, and what its events say."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.machine_code import ROOT

NAME = "gpu-bench"
PROGRAM = ROOT / "build" / "release" / NAME
OK, FAILED, USAGE, RESOURCE, UNSUPPORTED, WRONG = range(6)
MOMENT = ("--duration-s=0.3", "--warmup-s=0.05")
# The longest anything here may take: a driver's compiler, on a machine whose CPUs others have.
TIMEOUT_S = 240.0
# Who is told to end does so within a second; a machine that others load too may hold it up.
STOP_S = 5.0


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
        """Of the device and the kernel."""
        found: dict[str, str] = self.start["facts"]
        return found

    @property
    def metrics(self) -> dict[str, Any]:
        """Of the whole trial."""
        found: dict[str, Any] = self.end["metrics"]
        return found


def call(
    *arguments: str,
    program: Path = PROGRAM,
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """One call; `prefix` stands before the program, `env` is added to this process's own."""
    command = [*prefix, str(program), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, **(env or {})},
        **options,
    )


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
    workload: str, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A long trial that has begun, and its start event; ended and gone afterwards."""
    with subprocess.Popen(
        [str(PROGRAM), workload, "--duration-s=60", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
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
    return _table_under(**options) if options else _own_table()


@cache
def _own_table() -> dict[str, Any]:
    """That of this host, whose devices stay the same."""
    return _table_under()


def _table_under(**options: Any) -> dict[str, Any]:
    result = call("--list", **options)
    assert result.returncode == OK, result.stderr
    return {workload["name"]: workload for workload in json.loads(result.stdout)["workloads"]}


def listed(**options: Any) -> dict[str, Any]:
    """What --list-devices says."""
    result = call("--list-devices", **options)
    assert result.returncode == OK and not result.stderr, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@cache
def devices() -> tuple[dict[str, Any], ...]:
    """The devices of this host."""
    return tuple(listed()["devices"])


def on_pocl() -> tuple[str, ...]:
    """The arguments that choose PoCL's device, which is this host's CPU; skips where there is
    none."""
    for device in devices():
        if device["backend"] == "opencl" and device["type"] == "cpu":
            return (f"--device={device['index']}", "--backend=opencl")
    pytest.skip("no OpenCL device of type CPU is here: pocl-opencl-icd is not installed")
