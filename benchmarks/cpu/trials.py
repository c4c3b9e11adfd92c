"""Runs cpu-bench and its peers for the benchmarks of this directory."""

import re
import shlex
import subprocess
from collections.abc import Mapping

from benchmarks.programs import ROOT, Events, Unsupported, trial

__all__ = ["Events", "Unsupported", "cpu_bench", "likwid_bench", "named"]


def cpu_bench(command: str) -> Events:
    """The start and end events of one trial, e.g. of "fma --dtype fp32": {"start": …, "end": …}."""
    return trial("cpu", command)


def named(library: Mapping[str, str]) -> dict[str, str]:
    """A library of a start event for the raw figures: without the place of this checkout."""
    return {**library, "path": library["path"].removeprefix(f"{ROOT}/")}


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
