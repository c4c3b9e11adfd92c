"""Record which files of hostbench run when.

This module is active in every Python process that has this directory on its path and
HOSTBENCH_WALKS set (benchmarks.stack.walks). Each process writes its record when it ends.
"""

import atexit
import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = os.environ.get("HOSTBENCH_WALKED", "") + os.sep
PACKAGES = ("hostbench", "orchestrator", "services")
CO_OPTIMIZED = 1  # flag of code of functions, but not of classes and modules
DIRECTORY = os.environ.get("HOSTBENCH_WALKS")

_calls: list[tuple[float, str, str]] = []
_marks: list[tuple[float, str]] = []


def _is_ours(name: str) -> bool:
    return name.startswith(ROOT) and name[len(ROOT) :].partition(os.sep)[0] in PACKAGES


def note(frame: FrameType, event: str, argument: Any) -> None:
    """Record a call or a return of a function; see sys.setprofile."""
    del argument
    code = frame.f_code
    if event not in ("call", "return") or not _is_ours(code.co_filename):
        return
    now = time.monotonic()
    if event == "return":
        if code.co_qualname in ("InfluxClient.write", "JobDirectory.store", "case_row"):
            lines = frame.f_locals.get("lines", ())
            of_trial = any(line.startswith("disturbance,") for line in lines)
            _marks.append((now, f"{code.co_qualname}{' trial' if of_trial else ''}"))
        return
    if code.co_qualname == "Child.__init__":
        _marks.append((now, f"start {frame.f_locals['program']}"))
    line = frame.f_locals.get("line") if code.co_argcount else None
    if isinstance(line, bytes) and line.startswith(b'{"event":"end"'):
        _marks.append((now, "end"))
    if code.co_flags & CO_OPTIMIZED and not code.co_name.endswith(("comp>", "<genexpr>")):
        _calls.append((now, code.co_filename[len(ROOT) :], threading.current_thread().name))


def _write() -> None:
    sys.setprofile(None)
    found = {"command": sys.orig_argv, "calls": _calls, "marks": _marks}
    Path(DIRECTORY or "", f"{os.getpid()}.json").write_text(json.dumps(found))


if DIRECTORY:
    atexit.register(_write)
    threading.setprofile(note)
    sys.setprofile(note)
