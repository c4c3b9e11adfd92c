"""linpack against HPL at the same order and threads over the same BLAS: interleaved pairs.

usage: [XHPL=/path/of/xhpl] python -m benchmarks.cpu.against_hpl [PAIRS [N [LIBRARY]]]
(default 7, n 8000, library pinned where it is there, else system)

HPL runs with its best combination of four block sizes and of ranks x threads, which is found first,
with huge pages for its matrix, and with a CPU for each thread, as ours has. XHPL names the program:
netlib's HPL built with -DHPL_CALL_CBLAS and linked to libopenblas.so.0. Without it, the HPL inside
hpcc is used, which takes a minute for every figure. Both call the system's OpenBLAS. A library is
built and preloaded that gives HPL's threads their CPUs and forwards each call to the pinned
library, whose names have a prefix. Needs the Debian
packages libopenblas0-pthread and hpcc or openmpi-bin.
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

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import Unsupported, cpu_bench, named
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.pages import GLIBC_HUGE_PAGES
from benchmarks.quiet import quietly
from hostbench.programs.tools.hpcc import HPL_INPUT

BLOCK_SIZES = (128, 192, 256, 384)
SWEEPS = 2
XHPL = os.environ.get("XHPL")
METRIC = "operations_per_second_makespan"
# The BLAS functions that HPL calls.
CALLED = ("daxpy", "dcopy", "dgemm", "dgemv", "dger", "dscal", "dtrsm", "dtrsv", "idamax")
PREFIX = "scipy_"
# The variable in which the preloaded library finds how many threads it is to start.
THREADS = "HPL_BLAS_THREADS"


@dataclass(frozen=True)
class Shape:
    """MPI ranks in a P x Q grid, each with this many OpenBLAS threads."""

    p: int
    q: int
    threads: int

    def __str__(self) -> str:
        return f"{self.p} x {self.q} ranks of {self.threads} thread{'s' * (self.threads > 1)}"


def shapes(threads: int) -> list[Shape]:
    """Return two shapes: one rank for each thread, in a grid as square as possible, and one rank
    with all threads."""
    p = max(i for i in range(1, threads + 1) if threads % i == 0 and i * i <= threads)
    return list(dict.fromkeys([Shape(p, threads // p, 1), Shape(1, 1, threads)]))


def preloaded(library: str, called: Sequence[str], directory: Path) -> Path:
    """Build a library to preload. It gives each thread of `library` a CPU of its own, and its
    functions of the names `called` call those of `library` of the same name with the prefix.

    The program also loads the system's library, which must start no threads: they would take turns
    with those of `library` in getting CPUs. So `library` gets its threads from the preloaded one.
    """
    prefix = PREFIX if called else ""
    lines = [
        f'__asm__(".globl cblas_{name}\\n.type cblas_{name}, @function\\n'
        f'cblas_{name}: jmp {PREFIX}cblas_{name}@PLT");'
        for name in called
    ]
    lines += [
        f"void {prefix}openblas_set_num_threads(int);",
        "int atoi(const char *);",
        "char *getenv(const char *);",
        "__attribute__((constructor(101))) static void start_threads(void)",
        f'{{ {prefix}openblas_set_num_threads(atoi(getenv("{THREADS}"))); }}',
    ]
    source, made = directory / "preloaded.c", directory / "preloaded.so"
    source.write_text("\n".join(lines) + "\n")
    path = f"-Wl,-rpath,{Path(library).parent}"
    sources = [source, Path(__file__).with_name("cpu_each.c")]
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, *sources, library, path], check=True)
    return made


def hpl(n: int, sizes: Sequence[int], shape: Shape, preload: Path) -> dict[int, float]:
    """Return the operations per second by block size.

    Raise SystemExit when HPL's residual check failed.
    """
    ranks = shape.p * shape.q
    environment = {
        **os.environ,
        **GLIBC_HUGE_PAGES,
        "OPENBLAS_NUM_THREADS": "1",
        THREADS: str(shape.threads),
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
        # For the ranks only: mpirun itself calls no BLAS.
        program = ["env", f"LD_PRELOAD={preload}", XHPL or "hpcc"]
        command = ["taskset", "-c", cpus, "mpirun", "-np", str(ranks), *binding, *program]
        run = subprocess.run(
            command, check=True, cwd=scratch, env=environment, capture_output=True, text=True
        )
        report = Path(scratch) / "hpccoutf.txt"  # both hpcc and the HPL in its source write it
        output = report.read_text() if report.exists() else run.stdout
    found = re.findall(rf"^W\S+ +{n} +(\d+) +\d+ +\d+ +\S+ +(\S+)$", output, re.MULTILINE)
    passed = len(re.findall(r"^\|\|Ax-b\|\|_oo.*PASSED$", output, re.MULTILINE))
    if len(found) != len(sizes) or passed != len(sizes):
        raise SystemExit(f"hpcc measured {len(found)} of {len(sizes)} block sizes, {passed} right")
    return {int(nb): float(rate) * 1e9 for nb, rate in found}


def best_of_hpl(n: int, threads: int, preload: Path) -> tuple[Shape, int, dict[str, float]]:
    """Return the fastest shape and block size, and the best figure of each combination tried."""
    tried: dict[tuple[Shape, int], float] = {}
    for _ in range(SWEEPS):
        for shape in shapes(threads):
            for size, rate in quietly(hpl, n, BLOCK_SIZES, shape, preload).items():
                tried[shape, size] = max(rate, tried.get((shape, size), 0.0))
    shape, size = max(tried, key=lambda which: tried[which])
    return shape, size, {f"{s}, NB {nb}": rate for (s, nb), rate in tried.items()}


def blas_of_hpl() -> str:
    """Return the file behind the libblas.so.3 that hpcc loads."""
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


def choose_library(name: str | None) -> tuple[str, dict[str, str]]:
    """Return the library that both sides use: the name cpu-bench has for it, and its
    description."""
    for word in (name,) if name else ("pinned", "system"):
        try:
            start = cpu_bench(f"linpack --n 64 --duration-s 0.05 --library {word}")["start"]
        except Unsupported:
            continue
        (library,) = start["libraries"]
        if word == "system" and blas_of_hpl() != library["path"]:
            raise SystemExit(f"HPL loads {blas_of_hpl()}, cpu-bench {library['path']}")
        return word, library
    raise SystemExit(f"cpu-bench has no library {name or 'of its own or of the system'}")


def main() -> None:
    pairs = given_number(7)
    n = given_number(8000, place=2)
    word, library = choose_library(sys.argv[3] if len(sys.argv) > 3 else None)
    figures = []
    print("| n | threads | linpack Gop/s | HPL | its best | ratio: median | min – max | pairs |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        preload = preloaded(library["path"], CALLED if word == "pinned" else (), Path(scratch))
        for threads in sorted({1, ALL_THREADS}):
            shape, size, tried = best_of_hpl(n, threads, preload)
            command = f"linpack --n {n} --library {word} --threads {threads} --duration-s 0.1"
            ours, theirs = [], []
            for _ in range(pairs):
                ours.append(quietly(cpu_bench, command)["end"]["metrics"][METRIC])
                theirs.append(quietly(hpl, n, [size], shape, preload)[size])
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
            save("cpu/against_hpl", figures, library=named(library))


if __name__ == "__main__":
    main()
