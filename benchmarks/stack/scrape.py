"""What a scrape of GET /metrics takes, with as many hosts as given (500): docs/operations.md,
"Prometheus".

    python -m benchmarks.stack.scrape [HOSTS]

Starts an orchestrator and the Redis of the tests over an index of figures with that many hosts,
each with five subsystems and all series that a host may have. In turn it measures a scrape after
the index has changed, which makes the text anew, and one after that.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hostbench.decisions.index import INDEX
from tests.orchestrator.test_metrics import filled, hosts
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer

HOSTS = 500
PAIRS = 20


def main(count: int) -> None:
    """Measure, and print the times."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        filled(root / "results", hosts(count))
        with (
            RedisServer(root / "redis") as redis,
            OrchestratorProcess(root / "orchestrator", redis.url, root / "results") as orchestrator,
        ):
            changed_s: list[float] = []
            unchanged_s: list[float] = []
            content = b""
            for _ in range(PAIRS):
                os.utime(root / "results" / INDEX)
                for times in (changed_s, unchanged_s):
                    began_s = time.perf_counter()
                    content = orchestrator.client.get("/metrics").content
                    times.append(time.perf_counter() - began_s)
            resident_kib = _resident_kib(orchestrator.pid)
    series = sum(not line.startswith(b"#") for line in content.splitlines())
    print(f"{count} hosts, {series} series, {len(content) / 1e6:.2f} MB")
    print(f"the first one:  {changed_s[0] * 1e3:.0f} ms")
    print(f"after a change: {_spread(changed_s[1:])}")
    print(f"without one:    {_spread(unchanged_s)}")
    print(f"the orchestrator's resident memory afterwards: {resident_kib / 1024:.0f} MiB")


def _spread(times_s: Sequence[float]) -> str:
    low, middle, high = min(times_s), statistics.median(times_s), max(times_s)
    return f"median {middle * 1e3:.0f} ms, {low * 1e3:.0f} to {high * 1e3:.0f} ms, n {len(times_s)}"


def _resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:")))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS)
