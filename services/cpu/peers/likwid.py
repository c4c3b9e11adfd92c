"""likwid-bench's FMA and multiply-add kernels. They load one operand an iteration from 20 kB for
each thread, within the L1 cache."""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Command, Params, Peer
from hostbench.programs.tools.likwid import LikwidBench
from hostbench.programs.tools.reading import NUMBER, number

KILOBYTES_A_THREAD = 20

# By workload and isa: the kernel's name after peakflops[_sp], its operations per element, and the
# instructions of one element.
_FMA = "15 FMA"
_KERNELS = {
    ("fma", "avx2"): ("_avx_fma", 30, _FMA),
    ("fma", "avx512"): ("_avx512_fma", 30, _FMA),
    ("fma", "neon"): ("_neon_fma", 56, "28 FMA"),
    ("mul_add", "scalar"): ("", 16, "as many multiplications as additions"),
    ("mul_add", "sse2"): ("_sse", 16, "8 multiplications and 8 additions"),
    ("mul_add", "avx2"): ("_avx", 15, "8 multiplications and 7 additions"),
    ("mul_add", "avx512"): ("_avx512", 15, "8 multiplications and 7 additions"),
    ("mul_add", "neon"): ("_neon", 28, "14 multiplications and 14 additions"),
}
_WIDEST = "avx512"
_PRECISIONS = {"fp64": ("", 8), "fp32": ("_sp", 4)}


def peer(workload: str, params: Params) -> Peer | None:
    """Return the kernel that does what the workload does; for its time, `best` counts as the
    widest."""
    isa = _WIDEST if params.get("isa") == "best" else params.get("isa")
    kernel = _KERNELS.get((workload, str(isa)))
    precision = _PRECISIONS.get(str(params.get("dtype")))
    if kernel is None or precision is None:
        return None
    suffix, operations, instructions = kernel
    return Likwid(f"peakflops{precision[0]}{suffix}", operations / precision[1], instructions)


class Likwid(LikwidBench):
    """One of its peakflops kernels."""

    unit = "operation/s"
    metric = "operations_per_second_makespan"

    def __init__(self, kernel: str, operations_per_byte: float, instructions: str) -> None:
        self.title = kernel
        self.measures = (
            f"floating-point operations per second, mean of the whole run: {instructions} for each "
            f"load from {KILOBYTES_A_THREAD} kB a thread"
        )
        self._operations_per_byte = operations_per_byte

    def command(self, beside: Beside) -> Command:
        kilobytes = KILOBYTES_A_THREAD * beside.threads
        operations = kilobytes * 1000 * self._operations_per_byte
        return Command(self.repeated(kilobytes, operations, beside))

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        return number(rf"^MFlops/s:\s+{NUMBER}$", output, "MFlops/s") * 1e6
