"""mem-bench as the tests call it, and what its events say."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.benchmark import Benchmark

NAME = "mem-bench"
BENCHMARK = Benchmark(NAME)
PROGRAM = BENCHMARK.path
call, measure, running = BENCHMARK.call, BENCHMARK.measure, BENCHMARK.running
table = BENCHMARK.table
MOMENT = ("--duration-s=0.05", "--warmup-s=0", "--threads=1")

STREAM = ("read", "write", "copy", "scale", "add", "triad")
LIBRARY = ("read_write", "memset_write")
NAIVE = ("naive_copy", "naive_set")
# Of pairs of nodes; skipped where there is one.
NODES = ("numa",)
CHECKS = ("patterns",)
TIMES = ("pointer_chase", "loaded_latency", "random_access")
CODE = ("code_chase",)
# What one element of 8 bytes counts for: STREAM's convention, write-allocate left out.
ARRAYS = {"read": 1, "write": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3}


def threads_of(workload: str) -> str:
    """As few as it can do with."""
    return "--threads=2" if workload == "loaded_latency" else "--threads=1"


def moment(workload: str) -> tuple[str, ...]:
    """What keeps a trial short."""
    return (*MOMENT[:2], threads_of(workload))


def status_bytes(pid: int, key: str) -> int:
    """A line such as VmRSS of /proc/PID/status, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


Calls = Callable[..., subprocess.CompletedProcess[str]]
