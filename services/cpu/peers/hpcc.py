"""hpcc's HPL and DGEMM with the installed BLAS."""

import math
from dataclasses import replace

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey
from hostbench.programs.tools.hpcc import BLOCK_SIZE, Hpcc
from hostbench.programs.tools.pages import HUGE, Pages
from hostbench.programs.tools.placement import moving
from hostbench.programs.tools.reading import NUMBER, expect, number


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for cpu.linpack, or for cpu.gemm in double precision."""
    n = params.get("n")
    if not isinstance(n, int | float) or n < 1:
        return None
    if workload == "linpack":
        return Hpl(int(n))
    return Dgemm(int(n)) if workload == "gemm" and params.get("dtype") == "fp64" else None


# The pages of our matrices.
_PAGES = Pages(HUGE)


class BlasTest(Hpcc):
    """One of its tests of dense linear algebra."""

    unit = "operation/s"
    metric = "operations_per_second"
    reference_blas = "which says nothing about a CPU"

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = super().survey(ask, beside)
        differs = _other_library(found.library, beside)
        return _PAGES.with_conditions(replace(found, differs=differs), ask)

    def command(self, beside: Beside) -> Command:
        command = super().command(beside)
        return replace(command, arguments=_PAGES.command(command.arguments))


def _other_library(library: str | None, beside: Beside) -> tuple[str, ...]:
    """Return how a tool differs that computes with this library, such as
    `OpenBLAS 0.3.21 (PATH)`."""
    theirs = (library or "an unknown BLAS").partition(" (")[0]
    if theirs in beside.libraries:
        return ()
    return (f"{theirs}; ours {' and '.join(beside.libraries) or 'another'}",)


class Hpl(BlasTest):
    """HPL with one rank for each thread."""

    title = "HPL"

    def __init__(self, n: int) -> None:
        self.hpl_n = n
        self.measures = (
            f"2/3 n³ + 3/2 n² operations over the time to solve one system of n = {n}, NB = "
            f"{BLOCK_SIZE}, one single-threaded rank for each thread of ours"
        )

    def ranks(self, beside: Beside) -> list[tuple[int, ...]]:
        return [(cpu,) for cpu in beside.cpus]

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        expect("n", int(number(rf"^HPL_N={NUMBER}$", output, "HPL_N")), self.hpl_n)
        return number(rf"^HPL_Tflops={NUMBER}$", output, "HPL_Tflops") * 1e12


class Dgemm(BlasTest):
    """Its DGEMM test in one rank with all threads."""

    title = "DGEMM"

    def __init__(self, n: int) -> None:
        self.n = n
        self.hpl_n = hpl_n_of_dgemm(n)
        self.measures = (
            f"2 n³ operations over the time of one cblas_dgemm of n = {n}, one rank with as many "
            "BLAS threads as ours"
        )

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = super().survey(ask, beside)
        return replace(found, differs=(*found.differs, *moving(beside.cpus)))

    def ranks(self, beside: Beside) -> list[tuple[int, ...]]:
        return [beside.cpus]

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        expect("n", int(number(rf"^DGEMM_N={NUMBER}$", output, "DGEMM_N")), self.n)
        return number(rf"^StarDGEMM_Gflops={NUMBER}$", output, "StarDGEMM_Gflops") * 1e9


def dgemm_n(hpl_n: int) -> int:
    """Return the size of DGEMM that one rank derives from HPL's (DGEMM/tstdgemm.c): three matrices
    in the memory of HPL's one."""
    return int(math.sqrt(hpl_n * hpl_n // 3 + 0.25) - 0.5)


def hpl_n_of_dgemm(n: int) -> int:
    """Return the smallest size of HPL for which DGEMM has this size."""
    hpl_n = math.isqrt(3 * n * (n + 1))
    while dgemm_n(hpl_n) < n:
        hpl_n += 1
    return hpl_n
