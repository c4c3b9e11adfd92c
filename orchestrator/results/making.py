"""The main part of a process that makes one thing for the orchestrator (apart.py) and then ends.

It imports no server packages: with FastAPI, its start would take twice the CPU time.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from hostbench.base.errors import HostbenchError

NICENESS = 10
# If memory runs out, the kernel ends this process and not the server in the same container.
OOM_SCORE_MOST = "1000"
# The exit code after an expected error, whose line is the last on standard error. Python itself
# exits with 1 after a traceback.
REFUSED = 2


def print_made(make: Callable[[], bytes]) -> int:
    """Make the thing and print it. Return the exit code."""
    os.nice(NICENESS)
    Path("/proc/self/oom_score_adj").write_text(OOM_SCORE_MOST)
    try:
        made = make()
    except HostbenchError as error:
        sys.stderr.write(f"{error.message}\n")
        return REFUSED
    sys.stdout.buffer.write(made)
    return 0
