"""Run measurements while no other process uses the host, so that two tools are compared fairly."""

import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from hostbench.base.cpu_times import CpuTimes
from hostbench.host.idle import read_counters, window_between

IDLE_WINDOW_S = 0.5
IDLE_WAIT_S = 1800.0
# The largest share of all CPUs' time that others, the hypervisor included, may take during a run.
FOREIGN_RATIO_MOST = 0.02
ATTEMPTS = 40
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

Arguments = ParamSpec("Arguments")
Figure = TypeVar("Figure")


def wait_until_idle() -> None:
    """Wait until the host has been idle for half a second. Raise SystemExit after half an hour."""
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
    """Return the result of `run` from a time when others took at most FOREIGN_RATIO_MOST of the
    CPUs. Run it again after each disturbed attempt; raise SystemExit after ATTEMPTS of them."""
    return _repeated(_foreign_ratio, partial(run, *args, **options))


def quietly_with_a_disk(
    run: Callable[Arguments, Figure], *args: Arguments.args, **options: Arguments.kwargs
) -> Figure:
    """Do the same as quietly(), for a run that uses a disk.

    The kernel's own threads and interrupts then work for the run. So only the user code of other
    processes, and what the hypervisor takes, count as a disturbance.
    """
    return _repeated(_foreign_user_ratio, partial(run, *args, **options))


Usage = resource.struct_rusage
Foreign = Callable[[CpuTimes, CpuTimes, Usage, Usage], float]


def _repeated(foreign_ratio: Foreign, run: Callable[[], Figure]) -> Figure:
    for _ in range(ATTEMPTS):
        wait_until_idle()
        before, own_before = _cpu_times(), _own_usage()
        figure = run()
        foreign = foreign_ratio(before, _cpu_times(), own_before, _own_usage())
        if foreign <= FOREIGN_RATIO_MOST:
            return figure
        print(f"others took {foreign:.1%} of the CPUs meanwhile: again", file=sys.stderr)
    raise SystemExit(f"{ATTEMPTS} runs were all disturbed: quieten the host")


def _cpu_times() -> CpuTimes:
    return read_counters(Path("/proc")).cpus["cpu"]


def _own_usage() -> Usage:
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def _foreign_ratio(before: CpuTimes, after: CpuTimes, own_before: Usage, own_after: Usage) -> float:
    total = after.total - before.total
    used = total - (after.idle - before.idle)
    own_s = own_after.ru_utime - own_before.ru_utime + own_after.ru_stime - own_before.ru_stime
    return max(0.0, used - own_s * TICKS_PER_S) / total


def _foreign_user_ratio(
    before: CpuTimes, after: CpuTimes, own_before: Usage, own_after: Usage
) -> float:
    used = after.user - before.user + after.steal - before.steal
    own_s = own_after.ru_utime - own_before.ru_utime
    return max(0.0, used - own_s * TICKS_PER_S) / (after.total - before.total)
