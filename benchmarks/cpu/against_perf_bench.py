"""context_switch and syscall against perf bench: interleaved pairs on the same CPU, as often.

usage: python -m benchmarks.cpu.against_perf_bench [PAIRS] (default: 11)
Needs the Debian package linux-perf.

perf reports the mean of its whole run, so ours is the mean, too. It times whole round trips through
its pipes, of four bytes like ours: half of one is a hand-over. perf 6.1 has no round trip by futex,
and none of its futex benchmarks (wake, requeue, hash, lock-pi) is one. CPUs are kept awake for both
(as root).
"""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.awake import cpus_awake
from benchmarks.cpu.trials import cpu_bench
from benchmarks.figures import Entry, save
from benchmarks.pairs import (
    RATIO_COLUMNS,
    Comparison,
    Target,
    interleaved,
    print_header,
    print_row,
)

CPU = min(os.sched_getaffinity(0))
TRIPS, CALLS = 200_000, 5_000_000
TARGET = Target("0.95 – 1.05", least=0.95, most=1.05)


@dataclass(frozen=True)
class Case:
    """A workload of ours and the benchmark of perf that does the same."""

    workload: str
    metric: str
    benchmark: str
    loops: int
    # Of ours in one of perf's.
    operations: int

    @property
    def command(self) -> str:
        """Return the command of cpu-bench without its name."""
        return f"{self.workload} --cpus {CPU} --work {self.loops * self.operations}"

    @property
    def perf_command(self) -> list[str]:
        """Return the command of perf on the same CPU."""
        pinned = ["taskset", "-c", str(CPU)]
        return [*pinned, "perf", "bench", *self.benchmark.split(), "-l", str(self.loops)]

    def ours(self) -> float:
        """Run a trial and return its seconds for each operation."""
        return float(cpu_bench(self.command)["end"]["metrics"][self.metric])

    def theirs(self) -> float:
        """Run perf and return its seconds for each operation of ours."""
        output = answer(self.perf_command)
        found = re.search(r"([\d.]+) usecs/op", output)
        if not found:
            raise SystemExit(f"{shlex.join(self.perf_command)}: no usecs/op in its output")
        return float(found[1]) * 1e-6 / self.operations


CASES = (
    Case("context_switch --between processes --by pipe", "latency_mean_s", "sched pipe", TRIPS, 2),
    Case("context_switch --between threads --by pipe", "latency_mean_s", "sched pipe -T", TRIPS, 2),
    Case("syscall --call getppid --threads 1", "call_time_s_mean", "syscall basic", CALLS, 1),
)


def answer(command: list[str]) -> str:
    """Return what a command writes to its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def perf_version() -> str:
    """Return the version of perf. Raise SystemExit where there is none."""
    try:
        return answer(["perf", "version"]).strip()
    except FileNotFoundError:
        raise SystemExit("perf is not there: apt-get install linux-perf") from None


def main() -> None:
    pairs = given_number(11)
    version = perf_version()
    print_header(["workload", "ours, ns", "perf bench", *RATIO_COLUMNS])
    figures: list[Entry] = []
    with cpus_awake():
        for case in CASES:
            found = interleaved(pairs, case.ours, case.theirs)
            row = Comparison(TARGET, *zip(*found, strict=True))
            medians = (f"{median(side) * 1e9:.2f}" for side in (row.ours, row.theirs))
            print_row([case.workload, *medians, *row.cells()])
            entry = row.entry(
                command=f"cpu-bench {case.command}", perf_command=shlex.join(case.perf_command)
            )
            figures.append(entry)
            save("cpu/against_perf_bench", figures, version=version)


if __name__ == "__main__":
    main()
