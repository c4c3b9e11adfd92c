"""How long servers take to answer, whatever else the machine does."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def took_s(call: Callable[[], object], *pids: int) -> float:
    """How long a call took, without the time for which other work kept the servers of these process
    ids, or the caller, from the CPUs."""
    everyone = (os.getpid(), *pids)
    waited_s = {pid: _waited_s(pid) for pid in everyone}
    began_s = time.monotonic()
    call()
    elapsed_s = time.monotonic() - began_s
    for pid in everyone:
        for thread, so_far_s in _waited_s(pid).items():
            elapsed_s -= so_far_s - waited_s[pid].get(thread, 0.0)
    return elapsed_s


def _waited_s(pid: int) -> dict[str, float]:
    """How long each thread of a process has been ready to run and did not (proc_pid_schedstat)."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            waited_ns = (thread / "schedstat").read_text().split()[1]
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        found[thread.name] = int(waited_ns) / 1e9
    return found
