"""linpack against HPL (Debian package hpcc) at the same order and threads: interleaved pairs.

usage: [XHPL=/path/of/xhpl] python -m benchmarks.cpu.against_hpl [PAIRS [N]] (default 7, n 8000)

HPL gets its best of four block sizes and of ranks x threads, found first. With XHPL it is that
program of netlib's HPL, built with the OpenBLAS that cpu-bench loads (make arch=…, with
LAlib = -l:libopenblas.so.0 and HPL_OPTS = -DHPL_CALL_CBLAS); else the HPL inside hpcc, which takes
a minute for every figure. Needs the Debian packages libopenblas0-pthread and hpcc or openmpi-bin.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpu.trials import cpu_bench
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.quiet import quietly
from hostbench.programs.tools.hpcc import HPL_INPUT

BLOCK_SIZES = (128, 192, 256, 384)
SWEEPS = 2
XHPL = os.environ.get("XHPL")
METRIC = "operations_per_second_makespan"


@dataclass(frozen=True)
class Shape:
    """MPI ranks in a P x Q grid, each with so many threads of OpenBLAS."""

    p: int
    q: int
    threads: int

    def __str__(self) -> str:
        return f"{self.p} x {self.q} ranks of {self.threads} thread{'s' * (self.threads > 1)}"


def shapes(threads: int) -> list[Shape]:
    """One rank a thread, as square as it goes; and one rank with all threads."""
    p = max(i for i in range(1, threads + 1) if threads % i == 0 and i * i <= threads)
    return list(dict.fromkeys([Shape(p, threads // p, 1), Shape(1, 1, threads)]))


def hpl(n: int, sizes: Sequence[int], shape: Shape) -> dict[int, float]:
    """Operations per second by block size. Raises SystemExit when HPL's residual check failed."""
    ranks = shape.p * shape.q
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": str(shape.threads),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    cpus = f"0-{ranks * shape.threads - 1}"
    binding = ["--bind-to", "core"] if ranks > 1 else ["--bind-to", "none"]
    with tempfile.TemporaryDirectory() as scratch:
        text = HPL_INPUT.format(
            device=6, n=n, count=len(sizes), sizes=" ".join(map(str, sizes)), p=shape.p, q=shape.q
        )
        for name in ("hpccinf.txt", "HPL.dat"):
            (Path(scratch) / name).write_text(text)
        command = ["taskset", "-c", cpus, "mpirun", "-np", str(ranks), *binding, XHPL or "hpcc"]
        run = subprocess.run(
            command, check=True, cwd=scratch, env=environment, capture_output=True, text=True
        )
        output = run.stdout if XHPL else (Path(scratch) / "hpccoutf.txt").read_text()
    found = re.findall(rf"^W\S+ +{n} +(\d+) +\d+ +\d+ +\S+ +(\S+)$", output, re.MULTILINE)
    passed = len(re.findall(r"^\|\|Ax-b\|\|_oo.*PASSED$", output, re.MULTILINE))
    if len(found) != len(sizes) or passed != len(sizes):
        raise SystemExit(f"hpcc measured {len(found)} of {len(sizes)} block sizes, {passed} right")
    return {int(nb): float(rate) * 1e9 for nb, rate in found}


def best_of_hpl(n: int, threads: int) -> tuple[Shape, int, dict[str, float]]:
    """The fastest shape and block size, and the best figure of each that was tried."""
    tried: dict[tuple[Shape, int], float] = {}
    for _ in range(SWEEPS):
        for shape in shapes(threads):
            for size, rate in quietly(hpl, n, BLOCK_SIZES, shape).items():
                tried[shape, size] = max(rate, tried.get((shape, size), 0.0))
    shape, size = max(tried, key=lambda which: tried[which])
    return shape, size, {f"{s}, NB {nb}": rate for (s, nb), rate in tried.items()}


def blas_of_hpl() -> str:
    """The file behind the libblas.so.3 that hpcc loads."""
    where = XHPL or shutil.which("hpcc")
    if not where:
        raise SystemExit("hpcc is not installed: apt install hpcc libopenblas0-pthread")
    libraries = subprocess.run(["ldd", where], check=True, capture_output=True, text=True).stdout
    found = re.search(r"libopenblas\S* => (\S+)", libraries)
    if not found:
        raise SystemExit(
            f"{where} is not linked to OpenBLAS: update-alternatives --config libblas.so.3-…"
        )
    return str(Path(found[1]).resolve())


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    (library,) = cpu_bench("linpack --n 64 --duration-s 0.05")["start"]["libraries"]
    if blas_of_hpl() != library["path"]:
        raise SystemExit(f"hpcc loads {blas_of_hpl()}, cpu-bench {library['path']}")
    figures = []
    print("| n | threads | linpack Gop/s | HPL | its best | ratio: median | min – max | pairs |")
    print("|---|---|---|---|---|---|---|---|")
    for threads in sorted({1, ALL_THREADS}):
        shape, size, tried = best_of_hpl(n, threads)
        command = f"linpack --n {n} --threads {threads} --duration-s 0.1"
        ours, theirs = [], []
        for _ in range(pairs):
            ours.append(quietly(cpu_bench, command)["end"]["metrics"][METRIC])
            theirs.append(quietly(hpl, n, [size], shape)[size])
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        row = {"ours": spread(ours), "hpl": spread(theirs), "ratio": spread(ratios)}
        print(
            f"| {n} | {threads} | {row['ours']['median'] / 1e9:.1f} "
            f"| {row['hpl']['median'] / 1e9:.1f} | {shape}, NB {size} "
            f"| **{row['ratio']['median']:.3f}** | {min(ratios):.3f} – {max(ratios):.3f} "
            f"| {pairs} |",
            flush=True,
        )
        facts = {
            "command": f"cpu-bench {command}",
            "hpl_command": f"mpirun -np {shape.p * shape.q} {'xhpl' if XHPL else 'hpcc'} "
            f"(N {n}, NB {size}, {shape})",
            "hpl_sweep": tried,
        }
        figures.append(Entry(facts, {"ours": ours, "hpl": theirs}))
        save("cpu/against_hpl", figures, library=library)


if __name__ == "__main__":
    main()
