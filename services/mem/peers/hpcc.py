"""hpcc's STREAM: compiled C with plain stores, one rank for each thread, all at once (StarSTREAM).

Its arrays are as large as HPL's matrix: three in the memory of one. It prints the best of nine
passes of the slowest rank; multiplied by the number of ranks, that is what STREAM prints.
"""

import math
from dataclasses import replace

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey
from hostbench.programs.tools.hpcc import Hpcc
from hostbench.programs.tools.reading import NUMBER, expect, number
from services.mem.peers.case import BEST, PLAIN, Case

DOUBLE_BYTES, ARRAYS = 8, 3
_KERNELS = {"copy": "Copy", "scale": "Scale", "add": "Add", "triad": "Triad"}


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for STREAM's four kernels."""
    case = Case.of(params)
    fits = workload in _KERNELS and case.plain_passes
    return Stream(_KERNELS[workload], case) if fits else None


class Stream(Hpcc):
    """One of the four kernels of StarSTREAM."""

    unit = "byte/s"
    metric = BEST
    reference_blas = "with which HPL, which runs too, takes minutes"

    def __init__(self, kernel: str, case: Case) -> None:
        self.title = f"STREAM {kernel}"
        self.measures = (
            "bytes per second as STREAM counts them, best of nine passes: compiled C with plain "
            "stores, one rank for each thread of ours, all at once"
        )
        self._kernel, self._case = kernel, case
        self.hpl_n = max(1, math.isqrt(case.size_bytes // DOUBLE_BYTES))

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = replace(super().survey(ask, beside), differs=self._case.other_store(PLAIN))
        return self._case.pages.with_conditions(found, ask)

    def ranks(self, beside: Beside) -> list[tuple[int, ...]]:
        return [(cpu,) for cpu in beside.cpus]

    def command(self, beside: Beside) -> Command:
        command = super().command(beside)
        return replace(command, arguments=self._case.pages.command(command.arguments))

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        elements = number(rf"^STREAM_VectorSize={NUMBER}$", output, "STREAM_VectorSize")
        expected = self.hpl_n * self.hpl_n // beside.threads // ARRAYS
        expect("elements of an array", int(elements), expected)
        name = f"StarSTREAM_{self._kernel}"
        return number(rf"^{name}={NUMBER}$", output, name) * 1e9 * beside.threads
