"""pointer_chase against multichase: interleaved pairs at 256 MiB, with huge and with 4 KiB pages,
and within each level of caches, with 4 KiB pages.

usage: python -m benchmarks.mem.against_multichase /path/of/multichase [PAIRS] (default: 11)

multichase is google/multichase, built with its own Makefile. Like ours it visits all nodes of 64
bytes in one random order (-T as large as the memory, so there is no locality). It reports its mean.
"""

import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.figures import save
from benchmarks.mem.trials import existing, level_sizes, metric, require_pages
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)

MEMORY_BYTES = 256 << 20
NODE_BYTES = 64
SECONDS = 1.0
SAMPLES = 2  # half a second each, after one that multichase drops
METRIC = "access_time_s_mean"
IN_MEMORY = Target("0.97 – 1.03", least=0.97, most=1.03)
IN_A_CACHE = Target("0.95 – 1.05", least=0.95, most=1.05)


def multichase_command(program: Path, pages: str, size_bytes: int) -> list[str]:
    size, node = str(size_bytes), str(NODE_BYTES)
    options = ["-a", "-m", size, "-s", node, "-T", size, "-t", "1", "-n", str(SAMPLES)]
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    return [*pinned, str(program), *options, *(["-H"] if pages == "huge" else [])]


def multichase(command: list[str]) -> float:
    """Return the seconds for each access, as the mean of the samples."""
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output.split()[-1]) * 1e-9


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit((__doc__ or "").split("\n\n")[1])
    program = existing(sys.argv[1], "google/multichase")
    pairs = given_number(11, place=2)
    print_header(["pages", "place", "ours, ns", "multichase", *RATIO_COLUMNS])
    figures = []
    in_caches = [
        ("4k", round(size / NODE_BYTES) * NODE_BYTES, f"L{level}")
        for level, size in level_sizes().items()
    ]
    for pages, size_bytes, level in (
        *(("huge", MEMORY_BYTES, None), ("4k", MEMORY_BYTES, None)),
        *in_caches,
    ):
        command = (
            f"pointer_chase --threads 1 --pages {pages} --size-bytes {size_bytes} "
            f"--duration-s {SECONDS}"
        )
        theirs = multichase_command(program, pages, size_bytes)
        # A small working set is not its largest mapping.
        share = None if level else require_pages(pages, theirs, {})
        found = interleaved(pairs, partial(metric, command, METRIC), partial(multichase, theirs))
        target = IN_A_CACHE if level else IN_MEMORY
        row = Comparison(target, *zip(*found, strict=True))
        entry = row.entry(
            command=f"mem-bench {command}",
            multichase_command=shlex.join([*theirs[:3], "multichase", *theirs[4:]]),
            multichase_huge_page_share=share,
            level=level,
        )
        print_row(
            [
                pages,
                level or "memory",
                f"{median(row.ours) * 1e9:.2f}",
                f"{median(row.theirs) * 1e9:.2f}",
                *row.cells(),
            ]
        )
        figures.append(entry)
        save("mem/against_multichase", figures)


if __name__ == "__main__":
    main()
