"""What people who watch a job cost the host that measures: the CPU time of orchestrator, Redis and
service, with five watchers of its samples and without, in turn.

    python -m benchmarks.stack.watchers [PAIRS]

The watchers are stubs: a browser beside a measurement would be measured with it.
"""

import contextlib
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.console.real_console import LONG, ConsoleStack
from tests.console.test_cost import WATCHERS, cpu_s

SETTLED_S = 6.0
COUNTED_S = 12.0


def main(pairs: int) -> int:
    """Print the share of a CPU of each process, pair by pair, and the medians."""
    with tempfile.TemporaryDirectory() as root, ConsoleStack(Path(root)).running() as console:
        with console.redis.client() as client:
            client.config_set("hz", 1)  # as compose.yaml has it
        job = console.orchestrator.submit(**LONG)
        console.service.wait_for_program()
        found: dict[int, list[dict[str, float]]] = {0: [], WATCHERS: []}
        for _ in range(pairs):
            for watchers, rows in found.items():
                rows.append(_shares(console, job, watchers))
                print(f"{watchers} watchers: {_line(rows[-1])}", flush=True)
        for watchers, rows in found.items():
            medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
            print(f"{watchers} watchers, median of {pairs}: {_line(medians)}")
        console.end_all()
    return 0


def _line(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share * 100:.2f} %" for name, share in shares.items())


def _shares(console: ConsoleStack, job: str, watchers: int) -> dict[str, float]:
    over = threading.Event()

    def watch() -> None:
        one = console.logged_in("bob")
        # The stream may end with the job.
        path = f"/ui/jobs/{job}/live"
        with contextlib.suppress(Exception), one.client.stream("GET", path) as answer:
            for _ in answer.iter_lines():
                if over.is_set():
                    return

    threads = [threading.Thread(target=watch) for _ in range(watchers)]
    for thread in threads:
        thread.start()
    time.sleep(SETTLED_S)
    orchestrator, service = console.orchestrator.pid, console.service.pid
    pids = {"orchestrator": orchestrator, "redis": console.redis.pid, "service": service}
    before, began_s = {name: cpu_s(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(COUNTED_S)
    elapsed_s = time.monotonic() - began_s
    shares = {name: (cpu_s(pid) - before[name]) / elapsed_s for name, pid in pids.items()}
    over.set()
    for thread in threads:
        thread.join()
    return shares


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
