"""Bandwidth against STREAM as people compile it, in the pages and with the stores that it has.

usage: python -m benchmarks.mem.against_stream /path/of/stream [PAIRS] (default: 7)

STREAM is McCalpin's stream.c 5.10, its arrays at least four times all last-level caches:

    gcc -O3 -march=native -fopenmp -mcmodel=medium -DSTREAM_ARRAY_SIZE=136314880 stream.c -o stream

Ours has arrays of the same size, in 4 KiB pages. gcc turns STREAM's copy into a call of memcpy and
gives the others plain stores, so ours uses the same. STREAM reports its best pass and the mean time
of a pass, without the first; ours reports a whole-run mean and the figure of the clean slices. The
ratio that counts is mean over mean; the table also shows our figure over STREAM's best pass.
"""

import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save
from benchmarks.mem.trials import (
    ARRAYS,
    CACHES_LEAST,
    ELEMENT_BYTES,
    THREADS,
    existing,
    last_level_caches_bytes,
    mem_bench,
    require_pages,
)
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)

# Each kernel with the kind of stores that STREAM has in it.
KERNELS = {"copy": "libc", "scale": "plain", "add": "plain", "triad": "plain"}
PAGES = "4k"
SECONDS = 0.5
TARGET = Target("≥ 0.98, interval to 1.0", least=0.98, reach=1.0)

# By kernel, in bytes per second: the mean, and the figure that the tool itself gives.
Rates = dict[str, tuple[float, float]]


def stream_command(program: Path, threads: int) -> tuple[list[str], dict[str, str]]:
    environment = {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
    return ["taskset", "-c", f"0-{threads - 1}", str(program)], environment


def stream_output(program: Path, threads: int) -> str:
    command, environment = stream_command(program, threads)
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    ).stdout
    if "Solution Validates" not in output:
        raise SystemExit(f"{shlex.join(command)}: STREAM's results are wrong")
    return output


def stream(program: Path, threads: int, elements: int) -> Rates:
    """Run STREAM once and return, by kernel, the mean over all passes but the first, and the best
    pass."""
    output = stream_output(program, threads)
    found = re.findall(r"^(\w+): +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+ *$", output, re.MULTILINE)
    rates = {}
    for name, best, mean_s in found:
        bytes_moved = ARRAYS[name.lower()] * elements * ELEMENT_BYTES
        rates[name.lower()] = (bytes_moved / float(mean_s), float(best) * 1e6)
    return rates


def elements_of(program: Path) -> int:
    """Return the length of STREAM's arrays. Raise SystemExit when they are too small for this
    host."""
    found = re.search(r"^Array size = (\d+)", stream_output(program, THREADS[-1]), re.MULTILINE)
    if not found:
        raise SystemExit(f"{program} does not print the size of its arrays: is it STREAM 5.10?")
    elements = int(found[1])
    least = -(-CACHES_LEAST * last_level_caches_bytes() // ELEMENT_BYTES)
    if elements < least:
        raise SystemExit(
            f"{program} has arrays of {elements} elements; four times the last-level caches are "
            f"{least}: compile it with -DSTREAM_ARRAY_SIZE={least}"
        )
    return elements


def our_command(kernel: str, threads: int, elements: int) -> str:
    size_bytes = ARRAYS[kernel] * elements * ELEMENT_BYTES
    return (
        f"{kernel} --threads {threads} --pages {PAGES} --store {KERNELS[kernel]} "
        f"--size-bytes {size_bytes} --duration-s {SECONDS}"
    )


def ours(threads: int, elements: int) -> Rates:
    rates = {}
    for kernel in KERNELS:
        metrics = mem_bench(our_command(kernel, threads, elements))["end"]["metrics"]
        rates[kernel] = (metrics["bytes_per_second_makespan"], metrics["bytes_per_second"])
    return rates


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit((__doc__ or "").split("\n\n")[1])
    program = existing(sys.argv[1], "McCalpin's stream.c 5.10")
    pairs = given_number(7, place=2)
    elements = elements_of(program)
    columns = ["kernel", "threads", "ours, GB/s", "STREAM", *RATIO_COLUMNS, "over its best pass"]
    print_header(columns)
    figures = []
    for threads in THREADS:
        command, environment = stream_command(program, threads)
        share = require_pages(PAGES, command, environment)
        found = interleaved(
            pairs, partial(ours, threads, elements), partial(stream, program, threads, elements)
        )
        for kernel in KERNELS:
            row = Comparison(
                TARGET,
                tuple(mine[kernel][0] for mine, _ in found),
                tuple(its[kernel][0] for _, its in found),
            )
            compared = row.entry(
                command=f"mem-bench {our_command(kernel, threads, elements)}",
                stream_command=shlex.join([*command[:-1], "stream"]),
                stream_environment=environment,
                stream_huge_page_share=share,
            )
            best = {
                "ours_figure": [mine[kernel][1] for mine, _ in found],
                "stream_best": [its[kernel][1] for _, its in found],
            }
            over_best = median(a / b for a, b in zip(*best.values(), strict=True))
            print_row(
                [
                    kernel,
                    str(threads),
                    f"{median(row.ours) / 1e9:.1f}",
                    f"{median(row.theirs) / 1e9:.1f}",
                    *row.cells(),
                    f"{over_best:.3f}",
                ]
            )
            figures.append(Entry(compared.facts, {**compared.columns, **best}))
            save("mem/against_stream", figures, stream_elements=elements)


if __name__ == "__main__":
    main()
