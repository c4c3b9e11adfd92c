"""random_access of 8 bytes over 1 GiB against hand-written loops in assembly: interleaved pairs.

usage: python -m benchmarks.mem.against_assembly [PAIRS [INDEX ...]]
(default: 7 pairs, precomputed and lcg)

The loops are random_access.c beside this script, built here with gcc; they do the same operation on
the same kind of index and with the same pages.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.figures import save, spread
from benchmarks.mem.trials import mem_bench, require_pages
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)
from benchmarks.programs import Events

SOURCE = Path(__file__).with_name("random_access.c")
SIZE_BYTES = 1 << 30
BLOCK_BYTES = 8
SECONDS = 0.6
PAGES = "huge"
METRIC = "access_time_s_mean"
EMPTY_LOOP_MOST = 0.20
TARGET = Target("≤ 1.05", most=1.05)


def build(directory: Path) -> Path:
    program = directory / "random_access"
    subprocess.run(["gcc", "-O2", "-o", program, SOURCE], check=True)
    return program


def loop_command(program: Path, operation: str, index: str) -> list[str]:
    cpu = min(os.sched_getaffinity(0))
    arguments = [operation, index, PAGES, str(SIZE_BYTES), str(SECONDS)]
    return ["taskset", "-c", str(cpu), str(program), *arguments]


def loop(command: list[str]) -> float:
    """Run the command and return the seconds for each access."""
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def our_command(operation: str, index: str) -> str:
    return (
        f"random_access --operation {operation} --block-bytes {BLOCK_BYTES} --index {index} "
        f"--threads 1 --pages {PAGES} --size-bytes {SIZE_BYTES} --duration-s {SECONDS}"
    )


def empty_loop(ends: list[Events]) -> str:
    """Return the share of the time that the bare loop takes, and whether mem-bench warned where it
    is large."""
    ratio = spread([events["end"]["metrics"]["empty_loop_ratio"] for events in ends])["median"]
    warned = all("empty_loop" in events["warnings"] for events in ends)
    if ratio <= EMPTY_LOOP_MOST:
        return f"{ratio:.0%}"
    return f"{ratio:.0%}, {'flagged' if warned else '**not flagged**'}"


def main() -> None:
    pairs = given_number(7)
    figures = []
    print_header(["operation", "index", "ours, ns", "assembly", *RATIO_COLUMNS, "empty loop"])
    with tempfile.TemporaryDirectory() as scratch:
        program = build(Path(scratch))
        share = require_pages(PAGES, loop_command(program, "read", "precomputed"), {})
        for index in sys.argv[2:] or ["precomputed", "lcg"]:
            for operation in ("read", "write", "update"):
                command, theirs = (
                    our_command(operation, index),
                    loop_command(program, operation, index),
                )
                found = interleaved(pairs, partial(mem_bench, command), partial(loop, theirs))
                ends = [events for events, _ in found]
                row = Comparison(
                    TARGET,
                    tuple(events["end"]["metrics"][METRIC] for events in ends),
                    tuple(time_s for _, time_s in found),
                )
                entry = row.entry(
                    command=f"mem-bench {command}",
                    loop_command=shlex.join([*theirs[:3], program.name, *theirs[4:]]),
                    empty_loop=empty_loop(ends),
                )
                print_row(
                    [
                        operation,
                        index,
                        f"{median(row.ours) * 1e9:.2f}",
                        f"{median(row.theirs) * 1e9:.2f}",
                        *row.cells(),
                        empty_loop(ends),
                    ]
                )
                figures.append(entry)
                save("mem/against_assembly", figures, loop_huge_page_share=share)


if __name__ == "__main__":
    main()
