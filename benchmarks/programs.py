"""Run the benchmark programs of build/ for the scripts of this directory."""

import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXIT_UNSUPPORTED = 4

Events = dict[str, Any]


class Unsupported(SystemExit):
    """This CPU or this system cannot run the trial."""


def program(subsystem: str, build: str = "release") -> Path:
    """Return the path of `cpu-bench`, `mem-bench` and so on in one of the Makefile's builds."""
    return ROOT / "build" / build / f"{subsystem}-bench"


def trial(
    subsystem: str,
    command: str,
    *descriptors: int,
    prefix: Sequence[str] = (),
    build: str = "release",
) -> Events:
    """Run one trial, such as "fma --dtype fp32". Return its start and end events and the codes of
    its warnings: {"start": …, "end": …, "warnings": […]}.

    The program inherits `descriptors`; `prefix` comes before it in the command.
    """
    binary = program(subsystem, build)
    if not binary.exists():
        raise SystemExit(f"{binary} is not there: make programs-{build} builds it")
    arguments = [*prefix, str(binary), *shlex.split(command)]
    run = subprocess.run(arguments, capture_output=True, text=True, pass_fds=descriptors)
    if run.returncode:
        kind = Unsupported if run.returncode == EXIT_UNSUPPORTED else SystemExit
        raise kind(f"{binary.name} {command}: exit {run.returncode}: {run.stderr.strip()}")
    events = [json.loads(line) for line in run.stdout.splitlines()]
    warnings = [event["code"] for event in events if event["event"] == "warning"]
    return {**{event["event"]: event for event in events}, "warnings": warnings}
