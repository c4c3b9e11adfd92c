"""What every benchmark of this directory says of its figures: spread, host, raw values kept."""

import json
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "build" / "release" / "cpu-bench"
ALL_THREADS = len(os.sched_getaffinity(0))


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
    """Keeps the raw figures of `cpu/NAME` or `stack/NAME` beside the script that made them."""
    subsystem, _, file = name.partition("/")
    results = Path(__file__).parent / subsystem / "results"
    results.mkdir(exist_ok=True)
    document = json.dumps({"host": host(), "figures": figures}, indent=1)
    (results / f"{file}.json").write_text(document + "\n")
