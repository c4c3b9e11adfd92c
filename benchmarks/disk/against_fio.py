"""disk-bench against fio at equal engine, blocks, depth, threads, cache mode and pages of buffers:
interleaved pairs.

usage: python -m benchmarks.disk.against_fio [PAIRS] (default: 11)
Needs the Debian package fio, and HOSTBENCH_SCRATCH on the disk to measure.

Both tools work in the same unnamed file. The cost of a program shows on a disk that answers at
once:

    benchmarks/disk/on_loop_device.sh .venv/bin/python -m benchmarks.disk.against_fio

A real disk mostly varies more from run to run than the tools differ, so the table shows its spread
beside the ratios. CPUs are kept awake for both tools (as root): in a virtual machine, a CPU that
has gone to sleep takes longer to wake up than a fast disk to answer, and microseconds decide which
requests meet a sleeping one. The buckets of fio's percentiles are 1.6 % wide, those of ours 0.8 %.
Both tools start the clock before the submission.
"""

import shlex
from collections.abc import Mapping
from dataclasses import fields

from benchmarks.arguments import given_number
from benchmarks.awake import cpus_awake
from benchmarks.disk.trials import Figures, ScratchFile
from benchmarks.figures import Entry, save, spread
from benchmarks.pairs import Comparison, Target, interleaved, print_header, print_row

CASES = (
    "seq_read --block-bytes 1048576 --queue-depth 1 --engine io_uring",
    "seq_read --block-bytes 1048576 --queue-depth 32 --engine io_uring",
    "seq_write --block-bytes 1048576 --queue-depth 1 --engine io_uring",
    "seq_write --block-bytes 1048576 --queue-depth 32 --engine io_uring",
    "rand_read --block-bytes 4096 --queue-depth 1 --engine io_uring",
    "rand_read --block-bytes 4096 --queue-depth 32 --engine io_uring",
    "rand_write --block-bytes 4096 --queue-depth 1 --engine io_uring",
    "rand_write --block-bytes 4096 --queue-depth 32 --engine io_uring",
    "rand_read --block-bytes 4096 --threads 32 --engine psync",
)
SECONDS = 1.0
# Targets for our figure divided by fio's: rates at least this much, times at most this long.
NO_SLOWER, NO_LONGER = Target("≥ 0.98", least=0.98), Target("≤ 1.05", most=1.05)
SHOWN = Target("none")
ON_LOOP_DEVICE = {
    "operations_per_second": NO_SLOWER,
    "latency_p50_s": NO_LONGER,
    "latency_p99_s": NO_LONGER,
    "cpu_seconds_per_million_operations": NO_LONGER,
}
# A real disk varies more from run to run than the two programs differ.
ON_DISK = dict.fromkeys(ON_LOOP_DEVICE, SHOWN) | {"latency_p50_s": NO_LONGER}
WORDS = ("rate", "p50", "p99", "CPU time")

Pairs = list[tuple[Figures, Figures]]


def compare(file: ScratchFile, case: str, pairs: int) -> tuple[Pairs, dict[str, object]]:
    """Measure the pairs of one case. Return them with the two commands used and the huge pages that
    each tool had.

    Raise SystemExit when one tool has huge pages and the other has none: the comparison would be
    unequal.
    """
    command = f"{case} --duration-s {SECONDS}"
    # This first run fills the file and reports the CPUs that it used.
    theirs = file.fio_command(file.disk_bench(command), SECONDS)

    def ours() -> Figures:
        return Figures.of_ours(file.disk_bench(command))

    def fio() -> Figures:
        return Figures.of_fio(file.fio(theirs))

    huge = file.huge_bytes(command, theirs)
    if len({bool(found) for found in huge.values()}) > 1:
        raise SystemExit(f"{case}: buffers are in different pages: {huge}")
    facts = {"command": f"disk-bench {command}", "fio_command": _shown(theirs), **huge}
    return interleaved(pairs, ours, fio, disk=True), facts


def _shown(command: tuple[str, ...]) -> str:
    """Return the command from taskset on when it uses 4 KiB pages: the part before it contains the
    path of this checkout."""
    small = any(word.endswith("small_pages.py") for word in command)
    return shlex.join(command[command.index("taskset") :] if small else command)


def columns(targets: Mapping[str, Target]) -> list[str]:
    """Return the header of the table."""
    aims = [
        f"{word} {target.text}" if target is not SHOWN else word
        for word, target in zip(WORDS, targets.values(), strict=True)
    ]
    return ["case", "ours, operation/s", "fio", "its spread", *aims, "pairs", ""]


def comparisons(found: Pairs, targets: Mapping[str, Target]) -> dict[str, Comparison | None]:
    """Return the comparison of each figure, or None where a run had too few operations for it."""
    rows: dict[str, Comparison | None] = {}
    for field in fields(Figures):
        ours = [getattr(mine, field.name) for mine, _ in found]
        theirs = [getattr(its, field.name) for _, its in found]
        complete = all(value is not None for value in (*ours, *theirs))
        target = targets[field.name]
        rows[field.name] = Comparison(target, tuple(ours), tuple(theirs)) if complete else None
    return rows


def entry(facts: dict[str, object], found: Pairs, targets: Mapping[str, Target]) -> Entry:
    """Return the raw figures of a case's pairs, to be saved."""
    aims = {f"target_{name}": target.text for name, target in targets.items()}
    sides = {"ours": [mine for mine, _ in found], "theirs": [its for _, its in found]}
    columns = {
        f"{side}_{field.name}": [getattr(figures, field.name) for figures in values]
        for field in fields(Figures)
        for side, values in sides.items()
    }
    return Entry({**facts, **aims}, columns)


def cell(row: Comparison | None) -> str:
    """Return the ratio with its interval."""
    if row is None:
        return "too few"
    ratio = spread(row.ratios)
    miss = "" if row.holds else " **misses**"
    return f"**{ratio['median']:.3f}** ({ratio['low']:.3f} – {ratio['high']:.3f}){miss}"


def main() -> None:
    pairs = given_number(11)
    file = ScratchFile()
    name = "against_fio_on_loop_device" if file.on_loop_device else "against_fio"
    targets = ON_LOOP_DEVICE if file.on_loop_device else ON_DISK
    print_header(columns(targets))
    figures = []
    for case in CASES:
        with cpus_awake():
            found, facts = compare(file, case, pairs)
        rows = comparisons(found, targets)
        rate = rows["operations_per_second"]
        assert rate is not None, "every run reports a rate"
        holds = all(row.holds for row in rows.values() if row is not None)
        ours, theirs = spread(list(rate.ours)), spread(list(rate.theirs))
        print_row(
            [
                case.replace("--", ""),
                f"{ours['median']:,.0f}",
                f"{theirs['median']:,.0f}",
                f"{theirs['mad_relative']:.1%}",
                *map(cell, rows.values()),
                f"{len(found)}",
                "holds" if holds else "**misses**",
            ]
        )
        figures.append(entry(facts, found, targets))
        save(f"disk/{name}", figures)


if __name__ == "__main__":
    main()
