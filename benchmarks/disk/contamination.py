"""Whether a page cache that passes for a disk is always seen, and a disk never taken for one.

usage: python -m benchmarks.disk.contamination [RUNS] (default: 50)

The planted kind: this process has the whole file in its address space, so the kernel keeps the
pages, whatever the program does to drop them; then the file is read through the page cache. The
others are the same reads without that, and reads past the page cache.
"""

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.disk.trials import ScratchFile
from benchmarks.figures import save
from benchmarks.pairs import print_header, print_row

FILE_BYTES = 64 << 20
WARNING = "cache_contaminated"
ONCE = f"seq_read --file-bytes {FILE_BYTES} --total-bytes {FILE_BYTES} --warmup-s 0"
BUFFERED, DIRECT = f"{ONCE} --cache-mode buffered", f"{ONCE} --cache-mode direct"
EVIDENCE = ("device_read_ratio", "cached_ratio_before", "bytes_per_second")


@contextmanager
def in_memory(descriptor: int) -> Iterator[None]:
    """Has every page of the file mapped and read: such pages are not dropped."""
    with mmap.mmap(descriptor, FILE_BYTES, prot=mmap.PROT_READ) as pages:
        for offset in range(0, FILE_BYTES, mmap.PAGESIZE):
            _ = pages[offset]
        yield


def measured(file: ScratchFile, command: str, runs: int, *, planted: bool) -> dict[str, object]:
    """How many of the runs were flagged, and what each had for evidence."""
    flagged, evidence = 0, []
    for _ in range(runs):
        if planted:
            with in_memory(file.descriptor):
                events = file.disk_bench(command)
        else:
            events = file.disk_bench(command)
        flagged += WARNING in events["warnings"]
        evidence.append({name: events["end"]["metrics"][name] for name in EVIDENCE})
    return {
        "command": f"disk-bench {command}",
        "planted": planted,
        "runs": runs,
        "flagged": flagged,
        "flagged_wanted": runs if planted else 0,
        "evidence": evidence,
    }


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    file = ScratchFile()
    file.disk_bench(DIRECT)  # fills the file
    print_header(["read", "runs", "flagged", "wanted", ""])
    figures = []
    for title, command, planted in (
        ("buffered, kept in memory by another process", BUFFERED, True),
        ("buffered", BUFFERED, False),
        ("direct", DIRECT, False),
    ):
        figure = measured(file, command, runs, planted=planted)
        holds = figure["flagged"] == figure["flagged_wanted"]
        print_row(
            [
                title,
                *(str(figure[name]) for name in ("runs", "flagged", "flagged_wanted")),
                "holds" if holds else "**misses**",
            ]
        )
        figures.append(figure)
        save("disk/contamination", figures)


if __name__ == "__main__":
    main()
