"""Run cpu-bench and its peers for the benchmarks of this directory."""

import re
import shlex
import subprocess
from collections.abc import Mapping

from benchmarks.programs import ROOT, Events, Unsupported, trial

__all__ = ["Events", "Unsupported", "cpu_bench", "likwid_bench", "named"]


def cpu_bench(command: str) -> Events:
    """Run one trial, such as "fma --dtype fp32", and return its start and end events: {"start": …,
    "end": …}."""
    return trial("cpu", command)


def named(library: Mapping[str, str]) -> dict[str, str]:
    """Return the library of a start event for the raw figures, its path without that of this
    checkout."""
    return {**library, "path": library["path"].removeprefix(f"{ROOT}/")}


def likwid_bench(kernel: str, threads: int, seconds: float) -> float:
    """Return the operations per second of one likwid-bench run, as the mean of the whole run."""
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
