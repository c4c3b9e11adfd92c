"""What the pages of the console take with 500 hosts and 20,000 results: bytes, and the time from
the request to the whole answer, one request at a time.

    python -m benchmarks.stack.pages [TIMES]

The results are one real document, which the index lists 20,000 times. The first page counts with
the files that it loads.
"""

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tests.console.real_console import Browser, ConsoleStack
from tests.console.stored_series import multiply, store_series

HOSTS, RESULTS = 500, 20_000
CASE = quote("cpu.fma fp64 avx2 2 threads")
FIRST = "/ui/hosts"
PAGES = (
    FIRST,
    f"{FIRST}?page=11",
    f"{FIRST}?show=attention",
    "/ui/new",
    "/ui/results",
    "/ui/results?page=400",
    f"/ui/results?case={CASE}&verdict=clean",
    "/ui/history?host=node-007",
    "/ui/doctor?host=node-007",
)


def main(times: int) -> int:
    """Print each page's bytes, and its times: the first, then median and range of the others."""
    with tempfile.TemporaryDirectory() as root, ConsoleStack(Path(root)).running() as console:
        store_series(console.orchestrator.results, "bench-1", [1.0])
        multiply(console.orchestrator.results, HOSTS, RESULTS)
        bob = console.logged_in("bob")
        for path in PAGES:
            first_ms, size = _timed(bob, path)
            rest_ms = sorted(_timed(bob, path)[0] for _ in range(times))
            print(
                f"{path}: {size} bytes, first {first_ms:.0f} ms, median of {times} "
                f"{statistics.median(rest_ms):.0f} ms ({rest_ms[0]:.0f} to {rest_ms[-1]:.0f})",
                flush=True,
            )
        print(f"{FIRST} with its files: {_with_files(bob, FIRST)} bytes")
    return 0


def _timed(bob: Browser, path: str) -> tuple[float, int]:
    began_s = time.perf_counter()
    page = bob.page(path)
    return (time.perf_counter() - began_s) * 1000, len(page.encode())


def _with_files(bob: Browser, path: str) -> int:
    page = bob.page(path)
    files = set(re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', page))
    return len(page.encode()) + sum(len(bob.get(file).content) for file in files)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 21))
