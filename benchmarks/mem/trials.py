"""Run mem-bench for the benchmarks of this directory, and check the pages of the tools compared
with it."""

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
# STREAM's rule: an array is at least this many times as large as all last-level caches.
CACHES_LEAST = 4

HUGE_SHARE_LEAST, SMALL_SHARE_MOST = 0.9, 0.02
LOOK_EVERY_S = 0.02


def mem_bench(command: str) -> Events:
    """Run one trial, such as "copy --pages 4k", and return its start and end events: {"start": …,
    "end": …}."""
    return trial("mem", command)


def metric(command: str, name: str) -> float:
    """Run one trial and return one of its metrics."""
    return float(mem_bench(command)["end"]["metrics"][name])


def last_level_caches_bytes() -> int:
    """Return the size of all last-level caches of this host, the larger of what the kernel and the
    C library report."""
    host = inventory()
    known = [cache for cache in host.caches if cache.type != "Instruction"]
    last = max((cache.level for cache in known), default=0)
    sizes = [(c.size_bytes or 0) * (c.instances or 1) for c in known if c.level == last]
    getconf = ["getconf", f"LEVEL{last}_CACHE_SIZE"]
    answer = subprocess.run(getconf, capture_output=True, text=True).stdout.strip()
    return max(sum(sizes), (host.cpu.sockets or 1) * int(answer or 0))


def level_sizes() -> dict[int, float]:
    """Return how many bytes are well within each level of caches, by the level's number: half of
    the first and of the second, and in the third, which others share, four times the second."""
    caches = {cache.level: cache for cache in inventory().caches if cache.type != "Instruction"}
    first, second = (caches[level].size_bytes or 0 for level in (1, 2))
    return {1: first / 2, 2: second / 2} | ({3: 4 * second} if 3 in caches else {})


def existing(path: str, source: str) -> Path:
    """Return the path of a ready-built program given as an argument. Raise SystemExit when it is
    not executable."""
    if not os.access(path, os.X_OK):
        raise SystemExit(f"{path} is no program: build it from {source} and give its path")
    return Path(path).resolve()


def require_pages(pages: str, command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command once and return the share of its largest mapping that is in huge pages.

    Raise SystemExit when the share does not fit `pages`, 4k or huge: the comparison would be
    unequal.
    """
    share = _huge_share(command, environment)
    if share < HUGE_SHARE_LEAST if pages == "huge" else share > SMALL_SHARE_MOST:
        raise SystemExit(
            f"{command[0]}: {share:.0%} of its memory is in huge pages, which is not {pages}; "
            "look at /sys/kernel/mm/transparent_hugepage/enabled, wanted: madvise"
        )
    return share


def _huge_share(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the share of huge pages in the largest mapping, at the moment when it is largest."""
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
    """Return the kilobytes of the largest mapping that are resident, and those in transparent huge
    pages; both 0 when the process has ended."""
    try:
        text = Path("/proc", str(pid), "smaps").read_text()
    except OSError:
        return 0, 0
    resident = map(int, re.findall(r"^Rss: +(\d+) kB", text, re.MULTILINE))
    huge = map(int, re.findall(r"^AnonHugePages: +(\d+) kB", text, re.MULTILINE))
    return max(zip(resident, huge, strict=True), default=(0, 0))
