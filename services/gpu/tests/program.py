"""gpu-bench as the tests call it, and what its events say."""

import json
from functools import cache
from typing import Any

import pytest

from tests.benchmark import OK, Benchmark

NAME = "gpu-bench"
BENCHMARK = Benchmark(NAME, timeout_s=240.0)
PROGRAM = BENCHMARK.path
call, measure, running = BENCHMARK.call, BENCHMARK.measure, BENCHMARK.running
MOMENT = ("--duration-s=0.1", "--warmup-s=0.02")
# Long enough for a window of 100 ms where others have the CPUs too.
WINDOWS = ("--duration-s=0.3", "--warmup-s=0.05")
# A program that gets SIGTERM ends within a second; a machine that others load too may hold it up.
STOP_S = 5.0


def table(**options: Any) -> dict[str, Any]:
    """The workloads of --list by name."""
    return BENCHMARK.table(**options) if options else _own_table()


@cache
def _own_table() -> dict[str, Any]:
    """That of this host, whose devices stay the same."""
    return BENCHMARK.table()


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
