"""Runs mem-bench for the benchmarks of this directory, and looks at the pages of its peers."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.figures import ALL_THREADS
from benchmarks.programs import Events, trial
from hostbench.host.inventory import inventory

BANDWIDTH_KERNELS = ("copy", "scale", "add", "triad", "read", "write")
ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3, "read": 1, "write": 1}
THREADS = sorted({1, ALL_THREADS})
ELEMENT_BYTES = 8
# STREAM's rule: an array is at least so many times all last-level caches.
CACHES_LEAST = 4

HUGE_SHARE_LEAST, SMALL_SHARE_MOST = 0.9, 0.02
LOOK_EVERY_S = 0.02


def mem_bench(command: str) -> Events:
    """The start and end events of one trial, e.g. of "copy --pages 4k": {"start": …, "end": …}."""
    return trial("mem", command)


def metric(command: str, name: str) -> float:
    """One metric of one trial."""
    return float(mem_bench(command)["end"]["metrics"][name])


def last_level_caches_bytes() -> int:
    """All of this host's, by the larger of what the kernel and the C library say."""
    host = inventory()
    known = [cache for cache in host.caches if cache.type != "Instruction"]
    last = max((cache.level for cache in known), default=0)
    sizes = [(c.size_bytes or 0) * (c.instances or 1) for c in known if c.level == last]
    getconf = ["getconf", f"LEVEL{last}_CACHE_SIZE"]
    answer = subprocess.run(getconf, capture_output=True, text=True).stdout.strip()
    return max(sum(sizes), (host.cpu.sockets or 1) * int(answer or 0))


def existing(path: str, source: str) -> Path:
    """The file of a ready program that was given as an argument."""
    if not os.access(path, os.X_OK):
        raise SystemExit(f"{path} is no program: build it from {source} and give its path")
    return Path(path).resolve()


def require_pages(pages: str, command: Sequence[str], environment: Mapping[str, str]) -> float:
    """The share of its largest mapping that a command has in huge pages, while it runs once.

    Raise SystemExit when that is not what `pages`, 4k or huge, says: no equal comparison.
    """
    share = _huge_share(command, environment)
    if share < HUGE_SHARE_LEAST if pages == "huge" else share > SMALL_SHARE_MOST:
        raise SystemExit(
            f"{command[0]}: {share:.0%} of its memory is in huge pages, which is not {pages}; "
            "look at /sys/kernel/mm/transparent_hugepage/enabled, wanted: madvise"
        )
    return share


def _huge_share(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Of the largest mapping when it is largest."""
    resident, huge = 0, 0
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        while child.poll() is None:
            resident, huge = max((resident, huge), _largest_mapping(child.pid))
            time.sleep(LOOK_EVERY_S)
    if child.returncode:
        raise SystemExit(f"{shlex.join(command)}: exit {child.returncode}")
    return huge / resident if resident else 0.0


def _largest_mapping(pid: int) -> tuple[int, int]:
    """Its resident kilobytes, and those in transparent huge pages; 0 when the process has gone."""
    try:
        text = Path("/proc", str(pid), "smaps").read_text()
    except OSError:
        return 0, 0
    resident = map(int, re.findall(r"^Rss: +(\d+) kB", text, re.MULTILINE))
    huge = map(int, re.findall(r"^AnonHugePages: +(\d+) kB", text, re.MULTILINE))
    return max(zip(resident, huge, strict=True), default=(0, 0))
