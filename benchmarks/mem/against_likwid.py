"""Bandwidth kernels against the best kernel of likwid-bench at equal pages: interleaved pairs.

usage: python -m benchmarks.mem.against_likwid [PAIRS [4k|huge [KERNEL ...]]]
(default: 7 pairs, 4k, every kernel)
Needs the Debian package likwid.

likwid-bench counts the same bytes and reports the mean of its whole run, so ours is the whole-run
mean, too. Both use the working set that mem-bench chooses for all threads. The best likwid-bench
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
METRIC = "bytes_per_second_makespan"
TARGET = Target("≥ 0.98, interval to 1.0", least=0.98, reach=1.0)

Environment = dict[str, str]


def likwid_command(kernel: str, threads: int, size_bytes: int, passes: int) -> list[str]:
    workgroup = f"N:{size_bytes // 1000}kB:{threads}"
    return ["likwid-bench", "-t", kernel, "-i", str(passes), "-w", workgroup]


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


def sweep(
    threads: int, size_bytes: int, kernels: Sequence[str], environment: Environment
) -> dict[str, float]:
    """Return the rate of every likwid-bench kernel that could be the best counterpart of one of
    ours."""
    families = tuple({family for kernel in kernels for family in FAMILIES[kernel]})
    wait_until_idle()
    return {
        kernel: likwid_bench(likwid_command(kernel, threads, size_bytes, SWEEP_PASSES), environment)
        for kernel in kernels_of(families)
    }


@dataclass
class Row:
    """Our kernel and the best kernel of likwid-bench, pair by pair."""

    command: str
    likwid: list[str]
    swept: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Return the row that a saved entry describes."""
        facts = {name: str(value) for name, value in entry.facts.items()}
        command, likwid = facts["command"].removeprefix("mem-bench "), facts["likwid_command"]
        columns = (entry.numbers("ours"), entry.numbers("theirs"))
        return cls(command, shlex.split(likwid), facts["likwid_sweep"], *columns)

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
        )

    def cells(self) -> list[str]:
        kernel, _, threads = self.command.split()[:3]
        ours, theirs = (f"{median(rates) / 1e9:.1f}" for rates in (self.ours, self.theirs))
        return [kernel, threads, ours, self.likwid[2], theirs, *self.comparison().cells()]


def begin(kernel: str, command: str, threads: int, rates: dict[str, float], size: int) -> Row:
    """Return a row without pairs yet, against the fastest kernel of a sweep."""
    swept = {name: rates[name] for name in kernels_of(FAMILIES[kernel])}
    likwid = likwid_command(max(swept, key=swept.__getitem__), threads, size, PASSES)
    return Row(command, likwid, ", ".join(f"{name}={rate}" for name, rate in swept.items()))


def main() -> None:
    pairs = given_number(7)
    pages = sys.argv[2] if len(sys.argv) > 2 else "4k"
    kernels = sys.argv[3:] or BANDWIDTH_KERNELS
    environment = GLIBC_HUGE_PAGES if pages == "huge" else {}
    name = f"mem/against_likwid{'_huge' * (pages == 'huge')}"
    size_bytes = int(mem_bench("copy --duration-s 0.05")["start"]["params"]["size_bytes"])
    probe = likwid_command("copy", 1, size_bytes, SWEEP_PASSES)
    share = require_pages(pages, probe, environment)
    rows = {row.command: row for row in map(Row.of, begun(name))}
    print_header(["kernel", "threads", "ours, GB/s", "its best kernel", "GB/s", *RATIO_COLUMNS])
    for threads in THREADS:
        conditions = (
            f"--threads {threads} --pages {pages} --size-bytes {size_bytes} --duration-s {SECONDS}"
        )
        commands = {kernel: f"{kernel} {conditions}" for kernel in kernels}
        new = [kernel for kernel, command in commands.items() if command not in rows]
        rates = sweep(threads, size_bytes, new, environment) if new else {}
        for kernel, command in commands.items():
            if kernel in new:
                rows[command] = begin(kernel, command, threads, rates, size_bytes)
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
