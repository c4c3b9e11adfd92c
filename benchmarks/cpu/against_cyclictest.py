"""wakeup by a timer against cyclictest: interleaved pairs on the same CPU, as many timers.

usage: python -m benchmarks.cpu.against_cyclictest [PAIRS] (default: 11)
Needs the Debian package rt-tests.

Both wait for the same timers (clock_nanosleep, absolute, every millisecond) without real-time
priority. Each figure is the median of how late the thread woke up. Like cpu-bench, cyclictest gets
a timer slack of 1 ns: otherwise the kernel may put its timers off by 50 µs. CPUs are kept awake for
both (as root).
"""

import ctypes
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.arguments import given_number
from benchmarks.awake import cpus_awake
from benchmarks.cpu.trials import cpu_bench
from benchmarks.figures import save
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)

CPU = min(os.sched_getaffinity(0))
INTERVAL_US, TIMERS = 1000, 3000
# Later timers are counted together.
LATEST_NS = 200_000
PR_SET_TIMERSLACK = 29
TARGET = Target("0.95 – 1.05", least=0.95, most=1.05)
COMMAND = f"wakeup --by timer --cpus {CPU} --work {TIMERS}"
CYCLICTEST = (
    *("cyclictest", "--policy=other", "--threads=1", f"--affinity={CPU}", "--quiet", "--nsecs"),
    *(f"--interval={INTERVAL_US}", f"--loops={TIMERS}", f"--histogram={LATEST_NS}"),
)


def ours() -> float:
    """Run a trial and return the median in seconds."""
    return float(cpu_bench(COMMAND)["end"]["metrics"]["latency_p50_s"])


def theirs() -> float:
    """Run cyclictest and return the median in seconds."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "found.json"
        files = (f"--json={path}", "--histfile=/dev/null")
        subprocess.run([*CYCLICTEST, *files], check=True, capture_output=True)
        found: dict[str, Any] = json.loads(path.read_text())
    return median_ns(found["thread"]["0"]) * 1e-9


def median_ns(thread: Mapping[str, Any]) -> int:
    """Return the median of a thread's histogram. Raise SystemExit if it is beyond its end."""
    late = sorted((int(ns), count) for ns, count in thread["histogram"].items())
    sums = accumulate(count for _, count in late)
    for (ns, _), so_far in zip(late, sums, strict=True):
        if 2 * so_far >= thread["cycles"]:
            return ns
    raise SystemExit(f"half of cyclictest's timers were more than {LATEST_NS} ns late")


def cyclictest_version() -> str:
    """Return the version of cyclictest. Raise SystemExit where there is none."""
    try:
        text = subprocess.run(["cyclictest", "--help"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise SystemExit("cyclictest is not there: apt-get install rt-tests") from None
    return text.partition("\n")[0]


def main() -> None:
    pairs = given_number(11)
    version = cyclictest_version()
    # A new process takes it from the thread that starts it, as the slack that it falls back to.
    if ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0):
        raise SystemExit("this kernel refuses a timer slack of 1 ns")
    with cpus_awake():
        found = interleaved(pairs, ours, theirs)
    row = Comparison(TARGET, *zip(*found, strict=True))
    print_header(["CPU", "ours, µs", "cyclictest", *RATIO_COLUMNS])
    medians = (f"{median(side) * 1e6:.2f}" for side in (row.ours, row.theirs))
    print_row([str(CPU), *medians, *row.cells()])
    entry = row.entry(command=f"cpu-bench {COMMAND}", other_command=shlex.join(CYCLICTEST))
    save("cpu/against_cyclictest", [entry], version=version)


if __name__ == "__main__":
    main()
