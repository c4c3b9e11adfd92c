"""What nvidia-smi, NVIDIA's own tool, says of the cards. It only reads."""

import csv
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hostbench.doctor.view import View, one_line

TOOL = "nvidia-smi"
# The driver is there and loaded; without it nvidia-smi would try to load it.
LOADED = "/proc/driver/nvidia/version"
TIMEOUT_S = 15.0
CARD = (
    "uuid",
    "name",
    "persistence_mode",
    "ecc.mode.current",
    "ecc.errors.uncorrected.volatile.total",
    "pcie.link.width.current",
    "pcie.link.width.max",
)
# Renamed in release 535; a later one may drop the old name.
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
PROCESS = ("gpu_uuid", "pid", "process_name")


@dataclass(frozen=True)
class Answer:
    """Rows of one query, by field; `command` is the query. `reason`: why there is none."""

    command: str
    rows: tuple[dict[str, str], ...] = ()
    reason: str | None = None


def cards(view: View) -> Answer:
    """All cards, with the fields CARD and `reasons`, a bit mask in hexadecimal."""
    answer = Answer("")
    for reasons in REASONS:
        answer = _query(view, "gpu", (*CARD, reasons))
        if answer.rows:
            break
    rows = tuple(
        {("reasons" if name in REASONS else name): value for name, value in row.items()}
        for row in answer.rows
    )
    return Answer(answer.command, rows, answer.reason)


def processes(view: View) -> Answer:
    """What computes on any card, with the fields PROCESS."""
    return _query(view, "compute-apps", PROCESS)


def _query(view: View, what: str, fields: Sequence[str]) -> Answer:
    arguments = (f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits")
    command = " ".join((TOOL, *arguments))
    if view.read(LOADED).text is None:
        return Answer(command, reason="NVIDIA's driver is not loaded")
    text, reason = run(arguments) if here(view) else (None, "not on this host")
    if text is None:
        return Answer(command, reason=reason)
    rows = []
    for values in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(values) != len(fields):
            return Answer(command, reason=f"its output: {one_line(','.join(values))}")
        rows.append(dict(zip(fields, (value.strip() for value in values), strict=True)))
    return Answer(command, tuple(rows))


def here(view: View) -> bool:
    """Whether the view is of this host: one that is made of files has no tool to run."""
    return view.root == Path("/")


def run(arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """What it prints, or why it printed nothing."""
    try:
        answer = subprocess.run(
            [TOOL, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
        )
    except FileNotFoundError:
        return None, f"{TOOL} is not installed"
    except OSError as error:
        return None, f"{TOOL} cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return None, f"{TOOL} did not answer within {TIMEOUT_S:.0f} s"
    if answer.returncode != 0:
        output = one_line(answer.stdout or answer.stderr)
        return None, f"{TOOL} ended with exit code {answer.returncode}: {output}"
    return answer.stdout, None
