"""gemm against a plain loop of cblas_dgemm, with OpenBLAS's own threads: interleaved pairs.

usage: python -m benchmarks.cpu.against_dgemm [PAIRS] (default 7). Both load the same library file.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cpu.trials import cpu_bench
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.quiet import quietly

SOURCE = Path(__file__).with_name("dgemm_loop.c")
ORDERS = [2048, 4096]
DTYPES = {"fp64": "d", "fp32": "s"}
SECONDS = 2
METRIC = "operations_per_second_makespan"


def build(library: str, directory: Path) -> Path:
    program = directory / "dgemm_loop"
    path = f"-Wl,-rpath,{Path(library).parent}"
    subprocess.run(["gcc", "-O2", "-o", program, SOURCE, library, path], check=True)
    return program


def loop(command: list[str], threads: int) -> float:
    """Operations per second of the plain loop, one thread a CPU from CPU 0 on."""
    pinned = ["taskset", "-c", f"0-{threads - 1}", *command]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(pinned, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    (library,) = cpu_bench("gemm --n 64 --duration-s 0.05")["start"]["libraries"]
    figures = []
    print("| gemm | threads | ours Gop/s | plain loop | ratio: median | min – max | pairs |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        program = build(library["path"], Path(scratch))
        for n in ORDERS:
            for dtype, letter in DTYPES.items():
                for threads in sorted({1, ALL_THREADS}):
                    command = (
                        f"gemm --n {n} --dtype {dtype} --threads {threads} --duration-s {SECONDS}"
                    )
                    plain = [str(program), letter, str(n), str(SECONDS)]
                    ours, theirs = [], []
                    for _ in range(pairs):
                        ours.append(quietly(cpu_bench, command)["end"]["metrics"][METRIC])
                        theirs.append(quietly(loop, plain, threads))
                    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
                    row = {"ours": spread(ours), "plain": spread(theirs), "ratio": spread(ratios)}
                    print(
                        f"| {dtype} {n} | {threads} | {row['ours']['median'] / 1e9:.1f} "
                        f"| {row['plain']['median'] / 1e9:.1f} | **{row['ratio']['median']:.3f}** "
                        f"| {min(ratios):.3f} – {max(ratios):.3f} | {pairs} |",
                        flush=True,
                    )
                    facts = {
                        "command": f"cpu-bench {command}",
                        "plain_command": f"OPENBLAS_NUM_THREADS={threads} "
                        f"taskset -c 0-{threads - 1} dgemm_loop {letter} {n} {SECONDS}",
                    }
                    figures.append(Entry(facts, {"ours": ours, "plain": theirs}))
                    save("cpu/against_dgemm", figures, library=library)


if __name__ == "__main__":
    main()
