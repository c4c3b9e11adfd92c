"""Every kernel against its theoretical limit: median of clean slices / (clock × table × cores).

usage: python -m benchmarks.cpu.against_limit [TRIALS [WORKLOAD ...]]
(default: 7 of 0.3 s each, every workload that has kernels)

The kernels are measured in turn, TRIALS times, so that a disturbed minute costs each kernel one
trial rather than one kernel all of its trials.
"""

import itertools
import sys
from collections.abc import Iterator

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import Unsupported, cpu_bench
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.quiet import wait_until_idle
from hostbench.host.inventory import inventory
from hostbench.host.microarchitecture import CpuIdentity
from hostbench.programs.program import load_program
from services.cpu.limits import trial_limits

CHOSEN = ("dtype", "isa", "mix")


def commands(workloads: list[str]) -> Iterator[str]:
    """Yield a command for every kernel on one thread and on all of them, from the program's own
    table."""
    for workload in load_program("cpu").table.workloads:
        choices = {p.name: p.words for p in workload.params if p.name in CHOSEN}
        if "isa" not in choices or (workloads and workload.name not in workloads):
            continue
        named = [
            [f"--{name} {word}" for word in choices[name] if word != "best"] for name in choices
        ]
        threads = [f"--threads {count}" for count in sorted({1, ALL_THREADS})]
        for words in itertools.product(*named, threads):
            yield f"{workload.name} {' '.join(words)} --duration-s 0.3"


def measured(command: str, identity: CpuIdentity) -> tuple[float, float | None]:
    """Return the rate of one trial, and its share of the theoretical limit."""
    events = cpu_bench(command)
    start, end = events["start"], events["end"]
    limit = trial_limits(
        identity, start["workload"], start["params"], end["metrics"], start["placement"]["cores"]
    )["operations_per_second"]
    rate = end["metrics"]["operations_per_second"]
    return rate, rate / limit.value if limit.value else None


def main() -> None:
    trials = given_number(7)
    identity = CpuIdentity.from_inventory(inventory().cpu)
    figures: dict[str, list[tuple[float, float | None]]] = {}
    left = list(commands(sys.argv[2:]))
    for _ in range(trials):
        wait_until_idle()
        for command in list(left):
            try:
                figures.setdefault(command, []).append(measured(command, identity))
            except Unsupported:
                left.remove(command)
                figures.pop(command)
    print("| kernel | Gop/s | of the limit: median | min – max | n |")
    print("|---|---|---|---|---|")
    for command, pairs in figures.items():
        print(row(command, pairs))
    save("cpu/against_limit", [entry(command, pairs) for command, pairs in figures.items()])


def row(command: str, pairs: list[tuple[float, float | None]]) -> str:
    known = [ratio for _, ratio in pairs if ratio is not None]
    shown = (
        f"**{spread(known)['median']:.3f}** | {min(known):.3f} – {max(known):.3f}"
        if known
        else "no limit known | "
    )
    rate = spread([rate for rate, _ in pairs])["median"] / 1e9
    return f"| {command} | {rate:.2f} | {shown} | {len(pairs)} |"


def entry(command: str, pairs: list[tuple[float, float | None]]) -> Entry:
    rates, efficiencies = zip(*pairs, strict=True)
    columns = {"rate": rates, "efficiency": efficiencies}
    return Entry({"command": f"cpu-bench {command}"}, columns)


if __name__ == "__main__":
    main()
