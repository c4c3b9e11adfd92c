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

from benchmarks.cpu.quiet import quietly
from benchmarks.cpu.trials import ALL_THREADS, cpu_bench, save, spread

BLOCK_SIZES = (128, 192, 256, 384)
SWEEPS = 2
XHPL = os.environ.get("XHPL")
METRIC = "operations_per_second_makespan"
# HPL's own defaults of hpcc's example, with our order, block size and grid.
HPCCINF = """HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
{count}      # of NBs
{sizes}      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


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
        text = HPCCINF.format(
            n=n, count=len(sizes), sizes=" ".join(map(str, sizes)), p=shape.p, q=shape.q
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
        figures.append(
            {
                "command": f"cpu-bench {command}",
                "hpl_command": f"mpirun -np {shape.p * shape.q} {'xhpl' if XHPL else 'hpcc'} "
                f"(N {n}, NB {size}, {shape})",
                "library": library,
                "hpl_sweep": tried,
                **row,
                "ours_raw": ours,
                "hpl_raw": theirs,
            }
        )
        save("against_hpl", figures)


if __name__ == "__main__":
    main()
