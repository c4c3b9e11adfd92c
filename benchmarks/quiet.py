"""Runs that nobody disturbed: what two tools are compared on when a host is not ours alone."""

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from hostbench.idle import CpuTimes, read_counters, window_between

IDLE_WINDOW_S = 0.5
IDLE_WAIT_S = 1800.0
# Of all CPUs' time during a run: what others took, the hypervisor included.
FOREIGN_RATIO_MOST = 0.02
ATTEMPTS = 40

Arguments = ParamSpec("Arguments")
Figure = TypeVar("Figure")


def wait_until_idle() -> None:
    """Comes back when the host has been idle for half a second. Gives up after half an hour."""
    deadline_s = time.monotonic() + IDLE_WAIT_S
    while True:
        before = read_counters(Path("/proc"))
        time.sleep(IDLE_WINDOW_S)
        window = window_between(before, read_counters(Path("/proc")))
        if not window.reasons:
            return
        if time.monotonic() > deadline_s:
            raise SystemExit(f"the host is never idle: {window.reasons[0].text}")


def quietly(
    run: Callable[Arguments, Figure], *args: Arguments.args, **options: Arguments.kwargs
) -> Figure:
    """What `run` gives on a host that nobody else used meanwhile; repeated until that is so."""
    for _ in range(ATTEMPTS):
        wait_until_idle()
        before, own_before_s = read_counters(Path("/proc")), _children_s()
        figure = run(*args, **options)
        after, own_s = read_counters(Path("/proc")), _children_s() - own_before_s
        foreign = _foreign_ratio(before.cpus["cpu"], after.cpus["cpu"], own_s)
        if foreign <= FOREIGN_RATIO_MOST:
            return figure
        print(f"others took {foreign:.1%} of the CPUs meanwhile: again", file=sys.stderr)
    raise SystemExit(f"{ATTEMPTS} runs were all disturbed: quieten the host")


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _foreign_ratio(before: CpuTimes, after: CpuTimes, own_s: float) -> float:
    total = after.total - before.total
    used = total - (after.idle - before.idle)
    return max(0.0, used - own_s * os.sysconf("SC_CLK_TCK")) / total
