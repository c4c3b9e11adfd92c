"""What every benchmark of this directory says of its figures: spread, host, raw values kept."""

import json
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

from benchmarks.programs import program
from hostbench.statistics import median_interval

ALL_THREADS = len(os.sched_getaffinity(0))


def spread(values: list[float]) -> dict[str, float]:
    """Median with its interval, relative median absolute deviation, extremes."""
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    interval = median_interval(values)
    return {
        "n": len(values),
        "median": middle,
        "mad_relative": deviation / middle,
        "min": min(values),
        "max": max(values),
        "low": interval.low,
        "high": interval.high,
        "confidence": interval.confidence,
    }


def host(subsystem: str) -> dict[str, object]:
    """Where the figures come from, and the program that gave them."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    binary = program(subsystem)
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    return {
        "cpu": model[1] if model else platform.processor(),
        "cpus": ALL_THREADS,
        "kernel": platform.release(),
        "program": version,
    }


def save(name: str, figures: object) -> None:
    """Keeps the raw figures of `cpu/NAME`, `mem/NAME` or `stack/NAME` beside their script."""
    subsystem, _, file = name.partition("/")
    results = Path(__file__).parent / subsystem / "results"
    results.mkdir(exist_ok=True)
    measured = "cpu" if subsystem == "stack" else subsystem
    document = json.dumps({"host": host(measured), "figures": figures}, indent=1)
    (results / f"{file}.json").write_text(document + "\n")
