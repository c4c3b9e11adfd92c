"""likwid-bench (RRZE-HPC/likwid): hand-written FMA and multiply-add kernels, pinned threads.

It loads one operand an iteration from 20 kB a thread, within the L1 cache. It reports the mean of
its whole run, so it is held against our whole-run mean. Kernels: bench/x86-64/peakflops*.ptt and
bench/armv8/peakflops*.ptt of versions 5.2.2 and 5.4.1.
"""

import re

from hostbench.peers import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.trial import Beside
from services.cpu.peers.reading import NUMBER, expect, match, number, version

PACKAGE = "likwid"
TOOL = "likwid-bench"
KILOBYTES_A_THREAD = 20

# By workload and isa: the kernel's name behind peakflops[_sp], its operations per element, and
# what one element's instructions are.
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
    """The kernel that does what the workload does; `best` counts as the widest, for the time it
    takes."""
    isa = _WIDEST if params.get("isa") == "best" else params.get("isa")
    kernel = _KERNELS.get((workload, str(isa)))
    precision = _PRECISIONS.get(str(params.get("dtype")))
    if kernel is None or precision is None:
        return None
    suffix, operations, instructions = kernel
    return Likwid(f"peakflops{precision[0]}{suffix}", operations / precision[1], instructions)


class Likwid(Peer):
    """One kernel of likwid-bench."""

    tool = TOOL
    package = PACKAGE
    unit = "operation/s"
    metric = "operations_per_second_makespan"
    # It sleeps for a second to calibrate its clock.
    overhead_s = 1.2

    def __init__(self, kernel: str, operations_per_byte: float, instructions: str) -> None:
        self.title = kernel
        self.measures = (
            f"floating-point operations per second, mean of the whole run: {instructions} for each "
            f"load from {KILOBYTES_A_THREAD} kB a thread"
        )
        self._operations_per_byte = operations_per_byte

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "-v")), r"Version ([\d.]+)")
        unsupported = None
        kernels = re.findall(r"^(\w+) - ", ask((TOOL, "-a")), re.MULTILINE)
        if kernels and self.title not in kernels:
            unsupported = f"{TOOL} {found or ''} has no kernel {self.title}"
        if len(set(beside.cpus)) < beside.threads:
            unsupported = (
                f"{TOOL} runs one thread a CPU; this case has {beside.threads} threads on "
                f"{len(set(beside.cpus))}"
            )
        return Survey(version=found, unsupported=unsupported)

    def command(self, beside: Beside) -> Command:
        # Told a time (-s), it takes whole seconds, and up to twice as long again to find out how
        # often to repeat. Told how often, it measures as long as we did if it is as fast.
        bytes_a_thread = KILOBYTES_A_THREAD * 1000
        rate_a_thread = beside.rate / beside.threads
        operations = bytes_a_thread * self._operations_per_byte
        iterations = max(10, round(rate_a_thread * beside.elapsed_s / operations))
        # The domain N has all CPUs of the affinity mask; -W: each thread touches its part first.
        domain = f"N:{KILOBYTES_A_THREAD * beside.threads}kB:{beside.threads}"
        return Command(
            on_cpus(beside.cpus, TOOL, "-t", self.title, "-i", str(iterations), "-W", domain)
        )

    def parse(self, output: str, beside: Beside) -> float:
        expect("kernel", match(r"^Test: (\w+)$", output, "Test")[1], self.title)
        cpus = re.findall(r"^Group: .* running on hwthread (\d+) ", output, re.MULTILINE)
        expect("its threads on CPUs", sorted(map(int, cpus)), sorted(beside.cpus))
        return number(rf"^MFlops/s:\s+{NUMBER}$", output, "MFlops/s") * 1e6
