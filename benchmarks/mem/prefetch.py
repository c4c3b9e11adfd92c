"""The gain from prefetching a line of each page: our kernels with and without it, in pairs.

usage: python -m benchmarks.mem.prefetch [PAIRS [4k|huge ...]]
(default: 7 pairs, 4k and huge)

One thread, whole-run means; each side uses its best streams, stores and vector width. Where the
gain misses its target, `best` does not prefetch.
"""

import sys
from functools import partial
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.figures import save
from benchmarks.mem.trials import metric
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)

KERNELS = ("read", "copy", "triad", "write")
METRIC = "bytes_per_second_makespan"
TARGET = Target("interval to 1.0", reach=1.0)


def main() -> None:
    pairs = given_number(7)
    figures = []
    print_header(["kernel", "pages", "with it, GB/s", "without", *RATIO_COLUMNS])
    for pages in sys.argv[2:] or ["4k", "huge"]:
        for kernel in KERNELS:
            command = f"{kernel} --threads 1 --pages {pages} --duration-s 0.6 --prefetch"
            with_it, without = (
                partial(metric, f"{command} {one}", METRIC) for one in ("pages", "none")
            )
            row = Comparison(TARGET, *zip(*interleaved(pairs, with_it, without), strict=True))
            figures.append(row.entry(command=f"mem-bench {command} pages"))
            middles = (f"{median(side) / 1e9:.1f}" for side in (row.ours, row.theirs))
            print_row([kernel, pages, *middles, *row.cells()])
            save("mem/prefetch", figures)


if __name__ == "__main__":
    main()
