"""core_to_core against the crate core-to-core-latency: interleaved pairs on the same two CPUs.

usage: python -m benchmarks.cpu.against_core_to_core_latency [PAIRS] (default: 11)
Needs cargo, as of the Debian package; it builds the crate in the user's cache at the first run.

Both figures are the time of one hand-over of a cache line, half of a round trip, from stretches of
250 round trips in a row. Ours is the median of stretches on 16 lines, as where a line lies decides
which part of the cache keeps it. The crate has one line a process and reports a mean; its figure is
the median of 16 processes. CPUs are kept awake for both (as root).
"""

import os
import re
import shlex
import subprocess
from pathlib import Path
from statistics import median

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

CRATE, VERSION = "core-to-core-latency", "1.2.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostbench"
PROCESSES = 16
TRIPS, STRETCHES = 250, 100
SECONDS = 0.5
TARGET = Target("0.95 – 1.05", least=0.95, most=1.05)


def built() -> Path:
    """Return the crate's program, built first if it is not there yet."""
    root = CACHE / f"{CRATE}-{VERSION}"
    program = root / "bin" / CRATE
    if not program.exists():
        wanted = ["--locked", "--version", VERSION, "--root", str(root), CRATE]
        try:
            subprocess.run(["cargo", "install", *wanted], check=True)
        except FileNotFoundError:
            raise SystemExit("cargo is not there: apt-get install cargo") from None
    return program


def two_cpus() -> tuple[int, int]:
    """Return the first and the last CPU of this process. Raise SystemExit where it has only one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise SystemExit(f"a line goes between two CPUs, and this process may use CPU {cpus} alone")
    return cpus[0], cpus[-1]


def theirs(command: list[str]) -> float:
    """Return the seconds of one hand-over: the median of the processes' means."""
    means_ns = []
    for _ in range(PROCESSES):
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = re.search(r"[\d.]+", output)
        if not found:
            raise SystemExit(f"{shlex.join(command)}: no latency in its output")
        means_ns.append(float(found[0]))
    return median(means_ns) * 1e-9


def main() -> None:
    pairs = given_number(11)
    program = built()
    near, far = two_cpus()
    cpus = f"{near},{far}"
    command = f"core_to_core --cpus {cpus} --threads 2 --duration-s {SECONDS}"
    other = [str(program), str(TRIPS), str(STRETCHES), "--cores", cpus, "--csv"]

    def ours() -> float:
        return float(cpu_bench(command)["end"]["metrics"]["hand_over_time_s"])

    with cpus_awake():
        found = interleaved(pairs, ours, lambda: theirs(other))
    row = Comparison(TARGET, *zip(*found, strict=True))
    print_header(["CPUs", "ours, ns", CRATE, *RATIO_COLUMNS])
    medians = (f"{median(side) * 1e9:.2f}" for side in (row.ours, row.theirs))
    print_row([cpus, *medians, *row.cells()])
    entry = row.entry(
        command=f"cpu-bench {command}",
        other_command=shlex.join([CRATE, *other[1:]]),
        other_version=VERSION,
        other_processes=PROCESSES,
    )
    save("cpu/against_core_to_core_latency", [entry])


if __name__ == "__main__":
    main()
