"""Is a page cache that passes for a disk always detected, and a disk never taken for a page cache?

usage: python -m benchmarks.disk.contamination [RUNS] (default: 50)

In the planted case this process keeps the whole file in its address space, so the kernel keeps the
pages, whatever the program does to drop them; then the file is read through the page cache. The
other cases are the same reads without the mapping, and reads that bypass the page cache.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.arguments import given_number
from benchmarks.disk.trials import ScratchFile
from benchmarks.figures import Entry, Value, save
from benchmarks.pairs import print_header, print_row

FILE_BYTES = 64 << 20
WARNING = "cache_contaminated"
ONCE = f"seq_read --file-bytes {FILE_BYTES} --total-bytes {FILE_BYTES} --warmup-s 0"
BUFFERED, DIRECT = f"{ONCE} --cache-mode buffered", f"{ONCE} --cache-mode direct"
EVIDENCE = ("device_read_ratio", "cached_ratio_before", "bytes_per_second")


@contextmanager
def in_memory(descriptor: int) -> Iterator[None]:
    """Keep every page of the file mapped and read while the context is open; the kernel does not
    drop such pages."""
    with mmap.mmap(descriptor, FILE_BYTES, prot=mmap.PROT_READ) as pages:
        for offset in range(0, FILE_BYTES, mmap.PAGESIZE):
            _ = pages[offset]
        yield


def measured(file: ScratchFile, command: str, runs: int, *, planted: bool) -> Entry:
    """Return which of the runs were flagged, and the evidence of each."""
    found = []
    for _ in range(runs):
        if planted:
            with in_memory(file.descriptor):
                found.append(file.disk_bench(command))
        else:
            found.append(file.disk_bench(command))
    columns: dict[str, list[Value]] = {
        "flagged": [int(WARNING in events["warnings"]) for events in found]
    }
    for name in EVIDENCE:
        columns[name] = [events["end"]["metrics"][name] for events in found]
    return Entry({"command": f"disk-bench {command}", "planted": planted}, columns)


def main() -> None:
    runs = given_number(50)
    file = ScratchFile()
    file.disk_bench(DIRECT)  # this run fills the file
    print_header(["read", "runs", "flagged", "wanted", ""])
    figures = []
    for title, command, planted in (
        ("buffered, kept in memory by another process", BUFFERED, True),
        ("buffered", BUFFERED, False),
        ("direct", DIRECT, False),
    ):
        figure = measured(file, command, runs, planted=planted)
        flagged, wanted = int(sum(figure.numbers("flagged"))), runs if planted else 0
        holds = "holds" if flagged == wanted else "**misses**"
        print_row([title, f"{runs}", f"{flagged}", f"{wanted}", holds])
        figures.append(figure)
        save("disk/contamination", figures)


if __name__ == "__main__":
    main()
