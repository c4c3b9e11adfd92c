"""Runs cpu-bench and its peers for the benchmarks of this directory."""

import json
import os
import platform
import re
import shlex
import statistics
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "release" / "cpu-bench"
RESULTS = Path(__file__).parent / "results"
ALL_THREADS = len(os.sched_getaffinity(0))
EXIT_UNSUPPORTED = 4

End = dict[str, Any]


class Unsupported(SystemExit):
    """This CPU or this system cannot run it."""


def cpu_bench(command: str) -> End:
    """The start and end events of one trial, e.g. of "fma --dtype fp32": {"start": …, "end": …}."""
    run = subprocess.run([PROGRAM, *shlex.split(command)], capture_output=True, text=True)
    if run.returncode:
        kind = Unsupported if run.returncode == EXIT_UNSUPPORTED else SystemExit
        raise kind(f"cpu-bench {command}: exit {run.returncode}: {run.stderr.strip()}")
    events = [json.loads(line) for line in run.stdout.splitlines()]
    return {event["event"]: event for event in events}


def likwid_bench(kernel: str, threads: int, seconds: float) -> float:
    """Operations per second of one likwid-bench run, its mean over the whole run."""
    command = [
        "likwid-bench",
        "-t",
        kernel,
        "-s",
        str(seconds),
        "-w",
        f"S0:{20 * threads}kB:{threads}",
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"^MFlops/s:\s+([\d.]+)", output, re.MULTILINE)
    if not found:
        raise SystemExit(f"{shlex.join(command)}: no MFlops/s in its output")
    return float(found[1]) * 1e6


def spread(values: list[float]) -> dict[str, float]:
    """Median, relative median absolute deviation, extremes."""
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    return {
        "n": len(values),
        "median": middle,
        "mad_relative": deviation / middle,
        "min": min(values),
        "max": max(values),
    }


def host() -> dict[str, object]:
    """Where the figures come from."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout.strip()
    return {
        "cpu": model[1] if model else platform.processor(),
        "cpus": ALL_THREADS,
        "kernel": platform.release(),
        "program": version,
    }


def save(name: str, figures: object) -> None:
    """Keeps the raw figures beside the script that made them."""
    RESULTS.mkdir(exist_ok=True)
    document = json.dumps({"host": host(), "figures": figures}, indent=1)
    (RESULTS / f"{name}.json").write_text(document + "\n")
