"""Bandwidth kernels against the best kernel of likwid-bench at equal pages: interleaved pairs.

usage: python -m benchmarks.mem.against_likwid [PAIRS [4k|huge|levels [KERNEL ...]]]
(default: 7 pairs, 4k, every kernel)
Needs the Debian package likwid.

likwid-bench counts the same bytes and reports the mean of its whole run, so ours is the whole-run
mean, too. Both use the working set that mem-bench chooses for all threads; with `levels`, one
thread and a working set in each level of caches, in pages of 4 KiB. The best likwid-bench
kernel is found first, among all double-precision kernels: plain and *_mem, of every width.
likwid-bench has no scale and no add; its kernels with the same streams stand in for them (copy, and
the one with two arrays read and one written). Its cl* kernels touch only one element of each cache
line and are left out. It allocates with malloc, so glibc decides about huge pages; the script
checks them.

The figures are saved after each pair. A run that was cut short continues where it was, on the same
commit and day. A run with other kernels keeps the rows that are already saved.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Self

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, begun, save
from benchmarks.mem.trials import (
    BANDWIDTH_KERNELS,
    THREADS,
    level_sizes,
    mem_bench,
    metric,
    require_pages,
)
from benchmarks.pages import GLIBC_HUGE_PAGES
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    each_pair,
    print_header,
    print_row,
)
from benchmarks.quiet import wait_until_idle

LEVELS = ("read", "write", "copy", "triad")
FAMILIES = {
    "copy": ("copy",),
    "scale": ("copy",),
    "add": ("stream",),
    "triad": ("stream",),
    "read": ("load", "sum"),
    "write": ("store",),
}
SECONDS = 0.6
SWEEP_PASSES, PASSES = 4, 12
# In a cache: some 0.2 s at the rate of the fastest level, and 1 s in the slowest.
SWEEP_BYTES, BYTES = 8e9, 40e9
METRIC = "bytes_per_second_makespan"
TARGET = Target("≥ 0.98, interval to 1.0", least=0.98, reach=1.0)

Environment = dict[str, str]


@dataclass(frozen=True)
class WorkingSet:
    """What both tools work on, and how often likwid-bench walks through it: in a sweep over its
    kernels, and beside ours. `level` is empty for memory."""

    threads: int
    size_bytes: int
    sweep_passes: int = SWEEP_PASSES
    passes: int = PASSES
    level: str = ""

    def likwid(self, kernel: str, passes: int) -> list[str]:
        """Return the command of likwid-bench."""
        workgroup = f"N:{self.size_bytes // 1000}kB:{self.threads}"
        return ["likwid-bench", "-t", kernel, "-i", str(passes), "-w", workgroup]

    def conditions(self, pages: str) -> str:
        """Return the options of mem-bench."""
        return (
            f"--threads {self.threads} --pages {pages} --size-bytes {self.size_bytes} "
            f"--duration-s {SECONDS}"
        )


def in_levels() -> list[WorkingSet]:
    """Return a working set for each level of caches, in whole thousands of bytes, as likwid-bench
    wants them."""
    found = []
    for level, size in level_sizes().items():
        whole = round(size / 8000) * 8000
        sweep_passes, passes = int(SWEEP_BYTES / whole), int(BYTES / whole)
        found.append(WorkingSet(1, whole, sweep_passes, passes, f"L{level}"))
    return found


def likwid_bench(command: list[str], environment: Environment) -> float:
    """Return the bytes per second of one run, or 0 when this CPU lacks the instructions."""
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    found = re.search(r"^MByte/s:\s+([\d.]+)", run.stdout, re.MULTILINE)
    return float(found[1]) * 1e6 if found else 0.0


def kernels_of(families: tuple[str, ...]) -> list[str]:
    """Return the double-precision kernels of these families, in all widths, plain and *_mem."""
    listing = subprocess.run(["likwid-bench", "-a"], check=True, capture_output=True, text=True)
    names = [line.split(" ")[0] for line in listing.stdout.splitlines()]
    return [n for n in names if n.split("_")[0] in families and "sp" not in n.split("_")]


def sweep(where: WorkingSet, kernels: Sequence[str], environment: Environment) -> dict[str, float]:
    """Return the rate of every likwid-bench kernel that could be the best counterpart of one of
    ours."""
    families = tuple({family for kernel in kernels for family in FAMILIES[kernel]})
    wait_until_idle()
    return {
        kernel: likwid_bench(where.likwid(kernel, where.sweep_passes), environment)
        for kernel in kernels_of(families)
    }


@dataclass
class Row:
    """Our kernel and the best kernel of likwid-bench, pair by pair."""

    command: str
    likwid: list[str]
    swept: str
    level: str = ""
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Return the row that a saved entry describes."""
        facts = {name: str(value) for name, value in entry.facts.items()}
        command, likwid = facts["command"].removeprefix("mem-bench "), facts["likwid_command"]
        columns = (entry.numbers("ours"), entry.numbers("theirs"))
        level = facts.get("level", "")
        return cls(command, shlex.split(likwid), facts["likwid_sweep"], level, *columns)

    def take(self, pairs: int, environment: Environment) -> Iterator[None]:
        """Take the missing pairs one after another."""
        runs = (
            partial(metric, self.command, METRIC),
            partial(likwid_bench, self.likwid, environment),
        )
        for ours, theirs in each_pair(len(self.ours), pairs, *runs):
            self.ours.append(ours)
            self.theirs.append(theirs)
            yield

    def comparison(self) -> Comparison:
        return Comparison(TARGET, tuple(self.ours), tuple(self.theirs))

    def entry(self) -> Entry:
        return self.comparison().entry(
            command=f"mem-bench {self.command}",
            likwid_command=shlex.join(self.likwid),
            likwid_sweep=self.swept,
            level=self.level or None,
        )

    def cells(self) -> list[str]:
        kernel, _, threads = self.command.split()[:3]
        ours, theirs = (f"{median(rates) / 1e9:.1f}" for rates in (self.ours, self.theirs))
        place = self.level or "memory"
        return [kernel, place, threads, ours, self.likwid[2], theirs, *self.comparison().cells()]


def begin(kernel: str, command: str, where: WorkingSet, rates: dict[str, float]) -> Row:
    """Return a row without pairs yet, against the fastest kernel of a sweep."""
    swept = {name: rates[name] for name in kernels_of(FAMILIES[kernel])}
    likwid = where.likwid(max(swept, key=swept.__getitem__), where.passes)
    written = ", ".join(f"{name}={rate}" for name, rate in swept.items())
    return Row(command, likwid, written, where.level)


def main() -> None:
    pairs = given_number(7)
    mode = sys.argv[2] if len(sys.argv) > 2 else "4k"
    kernels = sys.argv[3:] or (LEVELS if mode == "levels" else BANDWIDTH_KERNELS)
    pages = "4k" if mode == "levels" else mode
    environment = GLIBC_HUGE_PAGES if pages == "huge" else {}
    name = "mem/against_likwid" + ("" if mode == "4k" else f"_{mode}")
    if mode == "levels":
        sets = in_levels()
    else:
        size_bytes = int(mem_bench("copy --duration-s 0.05")["start"]["params"]["size_bytes"])
        sets = [WorkingSet(threads, size_bytes) for threads in THREADS]
    largest = sets[-1]
    probe = largest.likwid("copy", largest.sweep_passes)
    share = require_pages(pages, probe, environment)
    rows = {row.command: row for row in map(Row.of, begun(name))}
    columns = ["kernel", "place", "threads", "ours, GB/s", "its best kernel", "GB/s"]
    print_header([*columns, *RATIO_COLUMNS])
    for where in sets:
        commands = {kernel: f"{kernel} {where.conditions(pages)}" for kernel in kernels}
        new = [kernel for kernel, command in commands.items() if command not in rows]
        rates = sweep(where, new, environment) if new else {}
        for kernel, command in commands.items():
            if kernel in new:
                rows[command] = begin(kernel, command, where, rates)
            for _ in rows[command].take(pairs, environment):
                save(
                    name,
                    [row.entry() for row in rows.values()],
                    likwid_environment=environment,
                    likwid_huge_page_share=share,
                )
            print_row(rows[command].cells())


if __name__ == "__main__":
    main()
