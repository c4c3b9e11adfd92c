"""gemm against a plain loop of cblas_dgemm over the best BLAS of this CPU, with that library's own
threads: interleaved pairs.

usage: python -m benchmarks.cpu.against_dgemm [PAIRS [N]] (default 7, n 2048)

The loop is run with every library that cpu-bench finds, and the fastest one is compared with gemm.
Both sides have huge pages, and each of their threads has a CPU of its own, the same for both.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import Unsupported, cpu_bench, named
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.pages import GLIBC_HUGE_PAGES
from benchmarks.quiet import quietly

LOOP, CPU_EACH = (Path(__file__).with_name(name) for name in ("dgemm_loop.c", "cpu_each.c"))
SECONDS = 1
SWEEPS = 2
METRIC = "operations_per_second_makespan"
# The libraries of cpu-bench, and the prefix of each one's function names.
PREFIXES = {"pinned": "scipy_", "system": "", "blis": ""}


def build(name: str, library: str, directory: Path) -> Path:
    """Compile the loop against one library and return the program."""
    program = directory / f"dgemm_loop_{name}"
    names = [f"-D{one}={PREFIXES[name]}{one}" for one in ("cblas_dgemm", "cblas_sgemm")]
    path = f"-Wl,-rpath,{Path(library).parent}"
    # BLIS starts its threads anew in every call: given CPUs before main(), all would inherit one.
    sources = [LOOP] if name == "blis" else [LOOP, CPU_EACH]
    subprocess.run(["gcc", "-O2", *names, "-o", program, *sources, library, path], check=True)
    return program


def loop(command: list[str], threads: int) -> float:
    """Return the operations per second of the plain loop with one thread on each CPU from CPU 0
    on."""
    pinned = ["taskset", "-c", f"0-{threads - 1}", *command]
    environment = {
        **os.environ,
        **GLIBC_HUGE_PAGES,
        "OPENBLAS_NUM_THREADS": str(threads),
        "BLIS_NUM_THREADS": str(threads),
    }
    done = subprocess.run(pinned, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def found_libraries() -> dict[str, Mapping[str, str]]:
    """Return the libraries that this host has, each as cpu-bench describes it."""
    found = {}
    for name in PREFIXES:
        try:
            start = cpu_bench(f"gemm --n 64 --duration-s 0.05 --library {name}")["start"]
        except Unsupported:
            continue
        (found[name],) = start["libraries"]
    return found


def best_loop(
    programs: Mapping[str, Path], arguments: list[str], threads: int
) -> tuple[str, dict[str, float]]:
    """Return the library with the fastest loop, and the best figure of every library."""
    tried = dict.fromkeys(programs, 0.0)
    for _ in range(SWEEPS):
        for name, program in programs.items():
            tried[name] = max(tried[name], quietly(loop, [str(program), *arguments], threads))
    return max(tried, key=lambda name: tried[name]), tried


def main() -> None:
    pairs = given_number(7)
    n = given_number(2048, place=2)
    arguments = ["d", str(n), str(SECONDS)]
    libraries = found_libraries()
    figures = []
    print("| n | threads | ours Gop/s | plain loop | over | ratio: median | min – max | pairs |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        programs = {
            name: build(name, library["path"], Path(scratch)) for name, library in libraries.items()
        }
        for threads in sorted({1, ALL_THREADS}):
            command = f"gemm --n {n} --threads {threads} --duration-s {SECONDS}"
            over, tried = best_loop(programs, arguments, threads)
            ours, theirs, chosen = [], [], []
            for _ in range(pairs):
                events = quietly(cpu_bench, command)
                ours.append(events["end"]["metrics"][METRIC])
                chosen.append(events["start"]["params"]["library"])
                theirs.append(quietly(loop, [str(programs[over]), *arguments], threads))
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
            row = {"ours": spread(ours), "plain": spread(theirs), "ratio": spread(ratios)}
            print(
                f"| {n} | {threads} | {row['ours']['median'] / 1e9:.1f} "
                f"| {row['plain']['median'] / 1e9:.1f} | {over} "
                f"| **{row['ratio']['median']:.3f}** "
                f"| {min(ratios):.3f} – {max(ratios):.3f} | {pairs} |",
                flush=True,
            )
            facts = {
                "command": f"cpu-bench {command}",
                "plain_command": f"GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "
                f"OPENBLAS_NUM_THREADS={threads} "
                f"taskset -c 0-{threads - 1} dgemm_loop {' '.join(arguments)}, over {over}",
                "plain_sweep": tried,
            }
            figures.append(Entry(facts, {"ours": ours, "plain": theirs, "library": chosen}))
            known: dict[str, Any] = {f"library_{key}": named(one) for key, one in libraries.items()}
            save("cpu/against_dgemm", figures, **known)


if __name__ == "__main__":
    main()
