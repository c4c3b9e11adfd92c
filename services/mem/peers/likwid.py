"""likwid-bench's streaming kernels: those with plain stores, and `*_mem` with non-temporal ones.

It counts bytes as STREAM does, without what the caches fetch before a plain store.
"""

from dataclasses import replace

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey
from hostbench.programs.tools.likwid import ITERATIONS_LEAST, LikwidBench
from hostbench.programs.tools.reading import NUMBER, expect_about, number
from services.mem.params import STORE
from services.mem.peers.case import MAKESPAN, NON_TEMPORAL, PLAIN, Case

# A kernel's name by workload, and what its passes do. Its `triad` has four arrays; STREAM's triad
# is its `stream`. It has no kernels for scale and add.
_KERNELS = {
    "read": ("load", "loads"),
    "write": ("store", "stores"),
    "copy": ("copy", "copies"),
    "triad": ("stream", "STREAM's triad"),
}
_SUFFIXES = {"scalar": "", "sse2": "_sse", "avx2": "_avx", "avx512": "_avx512", "neon": "_neon"}
_WIDEST = "avx512"
# The kernels that exist with these suffixes, apart from x86.
_NEON = ("load", "store")
# The least time of touching a new array and of ten passes, for estimates.
_TOUCH_S_A_BYTE, _PASS_S_A_BYTE = 1e-9, 2e-10


def peer(workload: str, params: Params) -> Peer | None:
    """Return the kernel that does what the workload does.

    `best` counts as the widest and as non-temporal while the choice is unknown; a trial reports its
    choice, and then the kernel is that one. memcpy and memset (`libc`) choose by size, and are
    compared with non-temporal stores.
    """
    case = Case.of(params)
    isa = _WIDEST if params.get("isa") in ("best", None) else str(params.get("isa"))
    if workload not in _KERNELS or isa not in _SUFFIXES or not case.plain_passes:
        return None
    name, does = _KERNELS[workload]
    store = "plain" if workload == "read" else params.get(STORE)
    if isa == "neon":
        fits = name in _NEON and store != "nt"
        return Likwid(f"{name}_neon", does, case) if fits else None
    non_temporal = store != "plain"
    return Likwid(f"{name}{'_mem' if non_temporal else ''}{_SUFFIXES[isa]}", does, case)


class Likwid(LikwidBench):
    """One of its streaming kernels."""

    unit = "byte/s"
    metric = MAKESPAN

    def __init__(self, kernel: str, does: str, case: Case) -> None:
        stores = "" if kernel.startswith("load") else " with plain stores"
        if "_mem" in kernel:
            stores = " with non-temporal stores"
        self.title = kernel
        self.measures = (
            f"bytes per second as STREAM counts them, mean of the whole run: {does}{stores}"
        )
        self._case = case

    def trial_time_s(self, elapsed_s: float) -> float:
        passes_s = ITERATIONS_LEAST * self._case.size_bytes * _PASS_S_A_BYTE
        touch_s = self._case.size_bytes * _TOUCH_S_A_BYTE
        return max(elapsed_s, passes_s) + touch_s + self.overhead_s

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        store = NON_TEMPORAL if "_mem" in self.title else PLAIN
        differs = () if self.title.startswith("load") else self._case.other_store(store)
        found = replace(super().survey(ask, beside), differs=differs)
        return self._case.pages.with_conditions(found, ask)

    def command(self, beside: Beside) -> Command:
        # A kilobyte has 1000 bytes here.
        kilobytes = max(1, round(self._case.size_bytes / 1000))
        arguments = self.repeated(kilobytes, kilobytes * 1000, beside)
        return Command(self._case.pages.command(arguments))

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        size = number(rf"^Size \(Byte\):\s+{NUMBER}$", output, "Size (Byte)")
        expect_about("a size in bytes of", size, self._case.size_bytes)
        return number(rf"^MByte/s:\s+{NUMBER}$", output, "MByte/s") * 1e6
