"""The instructions of each workload for one register full of lanes, by class.

microarchitectures.yaml has those of workloads that execute the same classes with every instruction
set; functions here have the others. A test compares both with the instruction counts of every
kernel, which are in turn compared with the disassembly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from hostbench.host.microarchitecture import AMD, ARM, X86, Microarchitecture, Unknown, Width, table

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
FLOAT_BITS = {"fp32": 32, "fp64": 64}
SHORT_FLOAT_BITS = {"fp16": 16, "bf16": 16}
DTYPE_BITS = INTEGER_BITS | FLOAT_BITS | SHORT_FLOAT_BITS

# isa: (operand width, architecture; None: both)
ISAS: dict[str, tuple[Width, str | None]] = {
    "scalar": ("scalar", None),
    "sse2": (128, X86),
    "avx2": (256, X86),
    "avx512": (512, X86),
    "amx": ("tile", X86),
    "neon": (128, ARM),
    "mmla": (128, ARM),
    "sve": ("sve", ARM),
}
TILE_BITS = 16 * 64 * 8


@dataclass(frozen=True)
class Step:
    """`count` instructions of a class; `dtype` and `width` are set if they differ from the
    kernel's."""

    instruction: str
    count: int = 1
    dtype: str | None = None
    width: Width | None = None


@dataclass(frozen=True)
class Sequence:
    """The instructions for one register full of lanes, and the operations that each lane has then
    done."""

    steps: tuple[Step, ...]
    operations_per_lane: int


@dataclass(frozen=True)
class Kernel:
    """One kernel of a workload: what it computes with, and which instructions it may use.

    `sve_bits`: length of the core's SVE registers; None: it has none, or it is unknown. `vendor`:
    the vendor of an x86 core, as some vendors have loops of their own.
    """

    workload: str
    dtype: str
    isa: str
    architecture: str
    mix: str | None = None
    sve_bits: int | None = None
    vendor: str | None = None

    @classmethod
    def of(cls, workload: str, params: Mapping[str, object], row: Microarchitecture) -> Self:
        """Return the kernel of a trial on a core, by the resolved parameters of its start event."""
        mix = params.get("mix")
        return cls(
            workload=workload,
            dtype=str(params.get("dtype")),
            isa=str(params.get("isa")),
            architecture=row.architecture,
            mix=None if mix is None else str(mix),
            sve_bits=row.sve_bits,
            vendor=row.vendor,
        )

    @property
    def width(self) -> Width:
        """The width of its operands."""
        return ISAS[self.isa][0]

    @property
    def lanes(self) -> int:
        """The lanes of one register; 0 if its length is unknown."""
        if self.width == "scalar":
            return 1
        if self.width == "sve":
            bits = self.sve_bits or 0
        else:
            bits = TILE_BITS if self.width == "tile" else self.width
        return bits // DTYPE_BITS[self.dtype]


def sequence(kernel: Kernel) -> Sequence | Unknown:
    """Return the instructions of a kernel, or why they are unknown."""
    if ISAS.get(kernel.isa, (None, ""))[1] not in (None, kernel.architecture):
        return Unknown(f"no operand width is known for isa {kernel.isa!r} on {kernel.architecture}")
    if kernel.isa == "sve" and kernel.sve_bits is None:
        return Unknown("no source in the table for the length of its SVE registers")
    instructions = _instructions(kernel)
    if instructions is None:
        return Unknown(
            f"no instruction is known for workload {kernel.workload!r} with dtype {kernel.dtype!r}"
            f" and isa {kernel.isa!r}"
        )
    return instructions


def workloads() -> frozenset[str]:
    """Return the workloads whose instructions are known."""
    return frozenset(_SEQUENCES.keys() | table().sequences.keys())


def _instructions(kernel: Kernel) -> Sequence | None:
    if kernel.dtype not in DTYPE_BITS or kernel.workload in ABSENT.get(kernel.isa, ()):
        return None
    if kernel.isa in MATRIX_ISAS and kernel.workload != "dot":
        return None
    of_all_isas = table().sequences.get(kernel.workload)
    if of_all_isas is None:
        return _SEQUENCES[kernel.workload](kernel)
    if kernel.dtype not in (INTEGER_BITS if of_all_isas.dtypes == "integer" else FLOAT_BITS):
        return None
    steps = tuple(Step(name, count) for name, count in of_all_isas.steps.items())
    return Sequence(steps, of_all_isas.operations_per_lane)


# ---- one function a workload ----


def _add_sub(kernel: Kernel) -> Sequence | None:
    if kernel.dtype in SHORT_FLOAT_BITS:
        return None
    return Sequence((Step("int_add" if kernel.dtype in INTEGER_BITS else "fp_add"),), 1)


def _fma_add(kernel: Kernel) -> Sequence | None:
    mixes = {"1:1": (1, 1), "2:1": (2, 1)}
    if kernel.dtype not in FLOAT_BITS or kernel.mix not in mixes:
        return None
    fmas, adds = mixes[kernel.mix]
    return Sequence((Step("fp_fma", fmas), Step("fp_add", adds)), 2 * fmas + adds)


# x86 cannot multiply vectors of 8-bit lanes: the even and the odd lanes are multiplied as 16 bits
# each, then joined.
_PRODUCT_OF_INT8 = {
    "sse2": (Step("move"), Step("bitwise", 3), Step("int_mul", 2, "int16")),
    "avx2": (Step("bitwise", 3), Step("int_mul", 2, "int16")),
    "avx512": (Step("bitwise", 2), Step("int_mul", 2, "int16")),
}


def _product(kernel: Kernel) -> tuple[Step, ...]:
    if kernel.dtype == "int8" and kernel.architecture == X86:
        return _PRODUCT_OF_INT8.get(kernel.isa, (Step("int_mul"),))
    return (Step("int_mul"),)


def _int_mul(kernel: Kernel) -> Sequence | None:
    return Sequence(_product(kernel), 1) if kernel.dtype in INTEGER_BITS else None


def _int_mul_add(kernel: Kernel) -> Sequence | None:
    if kernel.dtype not in INTEGER_BITS:
        return None
    if kernel.architecture == ARM:
        return Sequence((Step("int_mul_add"),), 2)
    # SSE overwrites one operand. The product of int8 already has its copy, and AMD's loop needs
    # none.
    copied = kernel.isa == "sse2" and kernel.dtype != "int8" and kernel.vendor != AMD
    copies = (Step("move"),) if copied else ()
    return Sequence((*copies, *_product(kernel), Step("int_add")), 2)


def _dot(kernel: Kernel) -> Sequence | None:
    """Return one multiplication and one addition per element; matrix instructions use each element
    several times.

    A tile instruction multiplies 16 rows by 16 columns: each element of one tile 16 times. SMMLA
    and BFMMLA multiply two rows by two columns.
    """
    if kernel.isa == "mmla":
        return Sequence((Step("matrix"),), 2 * 2)
    return Sequence((Step("dot"),), 2 * 16 if kernel.isa == "amx" else 2)


def _compare(kernel: Kernel) -> Sequence | None:
    if kernel.dtype in SHORT_FLOAT_BITS:
        return None
    is_integer = kernel.dtype in INTEGER_BITS
    comparison = "int_compare" if is_integer else "fp_compare"
    if kernel.isa == "scalar" and (is_integer or kernel.architecture == ARM):
        count = "add_carry" if kernel.architecture == X86 else "conditional_increment"
        return Sequence((Step(comparison), Step(count)), 1)
    return Sequence(_vector_compare(kernel, comparison), _compared(kernel))


def _vector_compare(kernel: Kernel, comparison: str) -> tuple[Step, ...]:
    """Return the steps of a comparison. The counts are integers as wide as the operands. CMPSD and
    PSUBQ work on vector registers, but only one lane counts."""
    counts = f"int{DTYPE_BITS[kernel.dtype]}"
    width: Width | None = 128 if kernel.isa == "scalar" else None
    if kernel.isa == "avx512":
        return (Step(comparison, _compared(kernel)), Step("masked_int_add", dtype=counts))
    # SSE overwrites the compared operand.
    copies = (Step("move", width=width),) if kernel.isa in ("scalar", "sse2") else ()
    return (
        *copies,
        Step(comparison, _compared(kernel), width=width),
        Step("int_add", dtype=counts, width=width),
    )


def _compared(kernel: Kernel) -> int:
    """Return the comparisons for each addition to the counts. On AMD's cores, a result is compared
    again if comparisons have fewer ports than additions."""
    is_of_all_ports = kernel.isa in ("sse2", "avx2") and kernel.dtype in ("int8", "int16", "int32")
    return 2 if kernel.vendor == AMD and not is_of_all_ports else 1


_SEQUENCES: dict[str, Callable[[Kernel], Sequence | None]] = {
    "add_sub": _add_sub,
    "fma_add": _fma_add,
    "int_mul": _int_mul,
    "int_mul_add": _int_mul_add,
    "dot": _dot,
    "compare": _compare,
}
# Workloads without kernels for an isa; matrix instructions only have `dot`.
ABSENT = {"sve": {"dot", "compare"}}
MATRIX_ISAS = {"amx", "mmla"}
