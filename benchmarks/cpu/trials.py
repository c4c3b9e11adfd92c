"""Runs cpu-bench and its peers for the benchmarks of this directory."""

import json
import re
import shlex
import subprocess
from typing import Any

from benchmarks.figures import PROGRAM

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
