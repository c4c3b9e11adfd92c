"""What comparing the results costs: trials of the release build beside those of the build
`unchecked`, which compares none, in interleaved pairs.

usage: python -m benchmarks.verification [PAIRS [disk]] (default: 15)
Needs the build unchecked of cpu-bench, mem-bench and net-bench (make programs-unchecked). `disk`:
the cases of the disk alone, which HOSTBENCH_SCRATCH names; without it, all others.

Register kernels and round trips compare inside the timed region. Matrices and memory compare after
it; of memory, what marks the rounds of a copy is inside. disk-bench compares on request, so there
the release build stands beside itself: --verify on beside off. Every figure is a rate, and
where there is a clock a rate per cycle: the neighbours of a virtual machine move its clock by more
than what is to be found. The time of the trial is that of the whole program.

The figures are saved after each case. A run that was cut short continues where it was, on the same
commit and day.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.disk.trials import ScratchFile
from benchmarks.figures import ALL_THREADS, Entry, begun, save
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    each_pair,
    print_header,
    print_row,
)
from benchmarks.programs import Events, trial

NAME = "stack/verification"
BRIEF = "--duration-s 0.8 --warmup-s 0.1"
UNDER_A_PERCENT = Target("≥ 0.99", least=0.99)
ON_REQUEST = Target("–")
# The kernel works for these programs, too.
WITH_KERNEL = ("disk", "net")
MIB = 1 << 20
WALL = "wall_s"
TRIES = 16


@dataclass(frozen=True)
class Case:
    """A kernel, and which of its figures to compare: by the name of the metric the words for it."""

    kind: str
    subsystem: str
    command: str
    figures: Mapping[str, str]
    target: Target = UNDER_A_PERCENT

    @property
    def name(self) -> str:
        """Return the command as its entries have it."""
        return f"{self.subsystem}-bench {self.command} {BRIEF}"


CYCLE = {"operations_per_cycle": "operations a cycle"}
BYTES = {"bytes_per_cycle": "bytes a cycle"}
OPERATIONS = {"operations_per_second": "operations a second"}
ROUND_TRIPS = {"round_trip_s": "round trips a second, by their median time", **OPERATIONS}
BLOCKS = {"latency_p50_s": "blocks a second, by their median time", **OPERATIONS}
FILE = f"--file-bytes {256 * MIB} --verify on"
CASES = (
    Case("registers", "cpu", "fma --dtype fp64 --threads 1", CYCLE),
    Case("registers", "cpu", f"fma --dtype fp64 --threads {ALL_THREADS}", CYCLE),
    Case("registers", "cpu", "fma --dtype fp32 --threads 1", CYCLE),
    Case("registers", "cpu", "add_sub --dtype int8 --threads 1", CYCLE),
    Case("registers", "cpu", "int_mul_add --dtype int64 --threads 1", CYCLE),
    Case("matrices", "cpu", f"gemm --n 1024 --threads {ALL_THREADS}", CYCLE),
    Case("level 1 cache", "mem", "copy --size-bytes 24576 --threads 1", BYTES),
    Case("memory", "mem", f"copy --size-bytes {128 * MIB} --threads {ALL_THREADS}", BYTES),
    Case("memory", "mem", f"read --size-bytes {128 * MIB} --threads {ALL_THREADS}", BYTES),
    Case("network", "net", "tcp_rr --block-bytes 1", ROUND_TRIPS),
    Case("network", "net", "tcp_rr --block-bytes 65536", ROUND_TRIPS),
    Case("disk", "disk", f"rand_read --block-bytes 4096 {FILE}", BLOCKS, ON_REQUEST),
    Case("disk", "disk", f"seq_read --block-bytes {MIB} {FILE}", BLOCKS, ON_REQUEST),
    Case("disk", "disk", f"rand_write --block-bytes 4096 {FILE}", BLOCKS, ON_REQUEST),
)


@dataclass(frozen=True)
class Side:
    """Trials that compare their results, or trials that do not.

    They have a file of their own: what it holds depends on whether blocks are compared.
    """

    compares: bool
    file: ScratchFile = field(default_factory=ScratchFile)

    def run(self, case: Case) -> Events:
        """Run one trial."""
        command = f"{case.command} {BRIEF}"
        if case.subsystem == "disk":
            return self.file.disk_bench(
                command if self.compares else command.replace("--verify on", "--verify off")
            )
        return trial(case.subsystem, command, build="release" if self.compares else "unchecked")

    def figures(self, case: Case) -> dict[str, float]:
        """Run one trial and return its figures as rates, and the seconds that the program took.

        Run another one if other work kept a figure from it, such as that of a cycle: SystemExit if
        that happens again and again.
        """
        for _ in range(TRIES):
            began_s = time.monotonic()
            metrics = self.run(case)["end"]["metrics"]
            wall_s = time.monotonic() - began_s
            if all(metrics[name] is not None for name in case.figures):
                break
        else:
            raise SystemExit(f"{case.name}: other work kept {TRIES} trials from their figures")
        rates = {
            name: 1 / metrics[name] if name.endswith("_s") else metrics[name]
            for name in case.figures
        }
        return {**rates, WALL: wall_s}


def measured(case: Case, checked: Side, unchecked: Side, pairs: int) -> Iterator[Entry]:
    """Measure a case and yield an entry for each of its figures."""
    sides: list[Callable[[], dict[str, float]]] = [
        partial(side.figures, case) for side in (checked, unchecked)
    ]
    if case.subsystem == "disk":
        for side in sides:
            side()  # the first trial fills the file
    found = list(each_pair(0, pairs, *sides, disk=case.subsystem in WITH_KERNEL))
    for metric, words in case.figures.items():
        columns = {
            "ours": [ours[metric] for ours, _ in found],
            "theirs": [theirs[metric] for _, theirs in found],
            "ours_wall_s": [ours[WALL] for ours, _ in found],
            "theirs_wall_s": [theirs[WALL] for _, theirs in found],
        }
        facts = {"kind": case.kind, "command": case.name, "figure": words}
        yield Entry({**facts, "target": case.target.text}, columns)


def cells(case: Case, entry: Entry) -> list[str]:
    """Return the row of an entry."""
    sides = [tuple(entry.numbers(column)) for column in ("ours", "theirs")]
    middles = [f"{median(side):.4g}" for side in sides]
    words = [case.kind, case.command, str(entry.facts["figure"])]
    return [*words, *middles, *Comparison(case.target, *sides).cells()]


def main() -> None:
    """Print a row for each figure and save the raw ones."""
    pairs = given_number(15)
    of_disk = sys.argv[2:] == ["disk"]
    name = f"{NAME}_disk" if of_disk else NAME
    known: dict[object, list[Entry]] = {}
    for entry in begun(name):
        known.setdefault(entry.facts["command"], []).append(entry)
    checked, unchecked = Side(compares=True), Side(compares=False)
    entries: list[Entry] = []
    print_header(("kind", "case", "figure", "compared", "not compared", *RATIO_COLUMNS))
    for case in CASES:
        if (case.subsystem == "disk") != of_disk:
            continue
        found = known.get(case.name) or list(measured(case, checked, unchecked, pairs))
        entries += found
        save(name, entries)
        for entry in found:
            print_row(cells(case, entry))


if __name__ == "__main__":
    main()
