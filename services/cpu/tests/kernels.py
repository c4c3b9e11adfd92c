"""What the loop of every kernel of cpu-bench must hold: written down apart from the C sources.

An instruction count is that of one loop iteration, without the counter and the branch.
"""

import re
from dataclasses import dataclass, replace
from itertools import product

from hostbench.host.inventory import inventory
from hostbench.host.microarchitecture import AMD

INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("fp32", "fp64")
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "fp32": 32, "fp64": 64}
SUFFIX = {"int8": "b", "int16": "w", "int32": "d", "int64": "q", "fp32": "s", "fp64": "d"}
# sve: what the emulator is set to have.
WIDTH = {
    "scalar": 0, "sse2": 128, "avx2": 256, "avx512": 512, "neon": 128, "mmla": 128, "sve": 256,
}  # fmt: skip
WIDE = ("sse2", "avx2", "avx512")
# Of the general-purpose registers no licence is carried, so these share one chain.
PLAIN_CHAIN = "loop_add_chain"


@dataclass(frozen=True)
class Kernel:
    """One row of a workload's table."""

    workload: str
    dtype: str
    isa: str
    instructions: dict[str, int]
    operations: int  # of one loop iteration
    mix: str | None = None
    symbol: str = ""
    vendor: str | None = None  # None: of every CPU that has no row of its own

    @property
    def name(self) -> str:
        """The stem of its functions' names."""
        mix = f"_{self.mix.replace(':', '')}" if self.mix else ""
        stem = self.symbol or f"{self.workload}{mix}_{self.dtype}_{self.isa}"
        return f"{stem}_amd" if self.vendor else stem

    @property
    def on_general_registers(self) -> bool:
        """Whether the accumulators are general-purpose registers."""
        return self.isa == "scalar" and self.dtype in INTEGERS

    @property
    def arguments(self) -> list[str]:
        """The arguments with which cpu-bench runs it."""
        mix = ["--mix", self.mix] if self.mix else []
        return [self.workload, "--dtype", self.dtype, "--isa", self.isa, *mix]


def lanes(dtype: str, isa: str) -> int:
    """Of one register."""
    return max(1, WIDTH[isa] // BITS[dtype])


def vex(isa: str) -> str:
    return "v" if isa in ("avx2", "avx512") else ""


def fp(operation: str, dtype: str, isa: str) -> str:
    """`add` of fp64 on avx2 is vaddpd."""
    return f"{vex(isa)}{operation}{'s' if isa == 'scalar' else 'p'}{SUFFIX[dtype]}"


def fused(operation: str, dtype: str, isa: str) -> str:
    return f"v{operation}{'s' if isa == 'scalar' else 'p'}{SUFFIX[dtype]}"


def counted(*mnemonics: tuple[str, int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for mnemonic, count in mnemonics:
        counts[mnemonic] = counts.get(mnemonic, 0) + count
    return counts


def accumulators(isa: str) -> int:
    return 24 if isa == "avx512" else 12


# Classes of microarchitectures.yaml; the first pattern that fits names the class.
CLASSES = {
    r"vpdp\w+|vdpbf16ps|vfn?madd231ph|tdp\w+|sdot|bfdot": "dot",
    r"smmla|bfmmla": "matrix",
    r"vfn?madd231[sp][sd]|fmadd|fmsub|fmla|fmls": "fp_fma",
    r"v?(add|sub)[sp][sd]|fadd|fsub": "fp_add",
    r"v?mul[sp][sd]|fmul": "fp_mul",
    r"v?cmplt[sp][sd]|fcmgt|fcmp": "fp_compare",
    r"v?p(add|sub)[bwdq]|add|sub": "int_add",
    r"v?pmull[wdq]|imul|mul": "int_mul",
    r"madd|msub|mla|mls": "int_mul_add",
    r"v?pcmpgt[bwdq]|cmgt|cmp": "int_compare",
    r"popcnt|vpopcnt[bwdq]|cnt": "popcnt",
    r"adc|sbb": "add_carry",
    r"cinc": "conditional_increment",
    r"v?pandd?|v?por|vpternlogd": "bitwise",
    r"movdqa": "move",
}


def class_of(mnemonic: str, kernel: Kernel) -> str:
    found = next(name for pattern, name in CLASSES.items() if re.fullmatch(pattern, mnemonic))
    if kernel.workload == "dot" and found == "fp_fma":
        return "dot"
    if (kernel.workload, kernel.isa, found) == ("compare", "avx512", "int_add"):
        return "masked_int_add"
    return found


# ---- x86-64 ----


def x86_fma() -> list[Kernel]:
    return [
        Kernel("fma", dtype, isa, counted(
            (fused("fmadd231", dtype, isa), 8 * n), (fused("fnmadd231", dtype, isa), 8 * n),
        ), 2 * 16 * n * lanes(dtype, isa))
        for dtype, isa in product(FLOATS, ("scalar", *WIDE))
        for n in (accumulators(isa),)
    ]  # fmt: skip


def x86_fma_add() -> list[Kernel]:
    found = []
    for dtype, isa in product(FLOATS, ("scalar", *WIDE)):
        n, m = accumulators(isa), 24 if isa == "avx512" else 14
        fma, fnma = fused("fmadd231", dtype, isa), fused("fnmadd231", dtype, isa)
        add, wide = fused("add", dtype, isa), lanes(dtype, isa)
        one, two = (
            counted((fma, 6 * n), (add, 6 * n)),
            counted((fma, 4 * m), (fnma, 4 * m), (add, 4 * m)),
        )
        found += [
            Kernel("fma_add", dtype, isa, one, (2 + 1) * 6 * n * wide, "1:1"),
            Kernel("fma_add", dtype, isa, two, (2 + 2 + 1) * 4 * m * wide, "2:1"),
        ]
    return found


def x86_mul_add() -> list[Kernel]:
    return [
        Kernel("mul_add", dtype, isa, counted(
            (fp("mul", dtype, isa), 6 * n), (fp("add", dtype, isa), 6 * n),
        ), 12 * n * lanes(dtype, isa))
        for dtype, isa in product(FLOATS, ("scalar", *WIDE))
        for n in (accumulators(isa),)
    ]  # fmt: skip


def x86_additions() -> list[Kernel]:
    found = []
    for workload, second in (("add_sub", "sub"), ("int_add", "add")):
        for dtype in INTEGERS:
            found.append(Kernel(workload, dtype, "scalar", counted(("add", 80), (second, 80)), 160))
            for isa in WIDE:
                n, letter = accumulators(isa), SUFFIX[dtype]
                counts = counted(
                    (f"{vex(isa)}padd{letter}", 8 * n), (f"{vex(isa)}p{second}{letter}", 8 * n)
                )
                found.append(Kernel(workload, dtype, isa, counts, 16 * n * lanes(dtype, isa)))
    for dtype, isa in product(FLOATS, ("scalar", *WIDE)):
        n = accumulators(isa)
        counts = counted((fp("add", dtype, isa), 8 * n), (fp("sub", dtype, isa), 8 * n))
        found.append(Kernel("add_sub", dtype, isa, counts, 16 * n * lanes(dtype, isa)))
    return found


INT8_MULTIPLY = {
    "sse2": (36, {"movdqa": 1, "pand": 2, "pmullw": 2, "por": 1}),
    "avx2": (36, {"vpand": 2, "vpmullw": 2, "vpor": 1}),
    "avx512": (48, {"vpandd": 1, "vpmullw": 2, "vpternlogd": 1}),
}
MULTIPLY = {"int16": "pmullw", "int32": "pmulld", "int64": "pmullq"}


def x86_int_mul() -> list[Kernel]:
    found = [
        Kernel("int_mul", dtype, "scalar", {"imul": 160}, 160,
               symbol=f"int_mul_{'int64' if dtype == 'int64' else 'int32'}_scalar")
        for dtype in INTEGERS
    ]  # fmt: skip
    for isa, (times, each) in INT8_MULTIPLY.items():
        counts = {mnemonic: times * count for mnemonic, count in each.items()}
        found.append(Kernel("int_mul", "int8", isa, counts, times * lanes("int8", isa)))
    for dtype, isa in product(MULTIPLY, WIDE):
        if dtype == "int64" and isa != "avx512":
            continue
        usual = 384 if isa == "avx512" else 128 if dtype == "int32" else 192
        count = 48 if (dtype, isa) == ("int32", "avx512") else usual
        instructions = {vex(isa) + MULTIPLY[dtype]: count}
        found.append(Kernel("int_mul", dtype, isa, instructions, count * lanes(dtype, isa)))
    return found


def x86_int_mul_add() -> list[Kernel]:
    found = [
        Kernel("int_mul_add", dtype, "scalar", {"imul": 80, "add": 80}, 160,
               symbol=f"int_mul_add_{'int64' if dtype == 'int64' else 'int32'}_scalar")
        for dtype in INTEGERS
    ]  # fmt: skip
    for isa, (times, each) in INT8_MULTIPLY.items():
        counts = {mnemonic: times * count for mnemonic, count in each.items()}
        counts[f"{vex(isa)}paddb"] = times
        found.append(Kernel("int_mul_add", "int8", isa, counts, 2 * times * lanes("int8", isa)))
    for dtype, isa in product(MULTIPLY, WIDE):
        if dtype == "int64" and isa != "avx512":
            continue
        count = 72 if isa == "avx512" else 54
        instructions = {
            vex(isa) + MULTIPLY[dtype]: count,
            f"{vex(isa)}padd{SUFFIX[dtype]}": count,
        }
        if isa == "sse2":
            instructions["movdqa"] = count
        found.append(Kernel("int_mul_add", dtype, isa, instructions, 2 * count * lanes(dtype, isa)))
    return found


def x86_compare() -> list[Kernel]:
    found = [
        Kernel("compare", dtype, "scalar", {"cmp": 128, "sbb": 64, "adc": 64}, 128)
        for dtype in INTEGERS
    ]
    for dtype, isa in product((*INTEGERS, *FLOATS), ("scalar", *WIDE)):
        integer, letter = dtype in INTEGERS, SUFFIX[dtype]
        if (isa == "scalar" and integer) or (dtype, isa) == ("int64", "sse2"):
            continue
        count = 112 if isa == "avx512" else 54
        ps = "s" if isa == "scalar" else "p"
        compare = f"{vex(isa)}pcmpgt{letter}" if integer else f"{vex(isa)}cmplt{ps}{letter}"
        of_counts = letter if integer else {"fp32": "d", "fp64": "q"}[dtype]
        tally = f"{vex(isa)}p{'add' if isa == 'avx512' else 'sub'}{of_counts}"
        instructions = {compare: count, tally: count}
        if isa in ("scalar", "sse2"):
            instructions["movdqa"] = count
        found.append(Kernel("compare", dtype, isa, instructions, count * lanes(dtype, isa)))
    return found


def x86_dot() -> list[Kernel]:
    """Operations of one instruction: a multiplication and an addition each product."""
    return [
        Kernel("dot", "int8", "avx2", {"vpdpbusd": 192}, 192 * 32 * 2),
        Kernel("dot", "int8", "avx512", {"vpdpbusd": 384}, 384 * 64 * 2),
        Kernel("dot", "int8", "amx", {"tdpbssd": 64}, 64 * 16 * 16 * 64 * 2),
        Kernel("dot", "int16", "avx2", {"vpdpwssd": 192}, 192 * 16 * 2),
        Kernel("dot", "int16", "avx512", {"vpdpwssd": 384}, 384 * 32 * 2),
        Kernel("dot", "bf16", "avx512", {"vdpbf16ps": 384}, 384 * 32 * 2),
        Kernel("dot", "bf16", "amx", {"tdpbf16ps": 64}, 64 * 16 * 16 * 32 * 2),
        Kernel("dot", "fp16", "avx512", {"vfmadd231ph": 192, "vfnmadd231ph": 192}, 384 * 32 * 2),
        Kernel("dot", "fp16", "amx", {"tdpfp16ps": 64}, 64 * 16 * 16 * 32 * 2),
    ]


def x86_popcnt() -> list[Kernel]:
    """Three counts and an addition, of 5 accumulators 12 times or of 12 accumulators 4 times."""
    found = [
        Kernel("popcnt", dtype, "scalar", {"popcnt": 180, "add": 60}, 180,
               symbol=f"popcnt_{'int64' if dtype == 'int64' else 'int32'}_scalar")
        for dtype in INTEGERS
    ]  # fmt: skip
    for dtype in INTEGERS:
        instructions = {f"vpopcnt{SUFFIX[dtype]}": 144, f"vpadd{SUFFIX[dtype]}": 48}
        operations = 144 * lanes(dtype, "avx512")
        found.append(Kernel("popcnt", dtype, "avx512", instructions, operations))
    return found


X86_GENERAL = [
    *x86_fma(), *x86_fma_add(), *x86_mul_add(), *x86_additions(), *x86_int_mul(),
    *x86_int_mul_add(), *x86_compare(), *x86_dot(), *x86_popcnt(),
]  # fmt: skip


def x86_amd_mul_add() -> list[Kernel]:
    """A multiplication on one register and an addition on another."""
    return [
        Kernel("mul_add", dtype, isa, counted(
            (fp("mul", dtype, isa), 56), (fp("add", dtype, isa), 56),
        ), 112 * lanes(dtype, isa))
        for dtype, isa in product(FLOATS, ("scalar", "sse2", "avx2"))
    ]  # fmt: skip


def x86_amd_int_mul_add() -> list[Kernel]:
    """In general-purpose registers in another order, else with a multiplication on one register and
    an addition on another."""
    found = [k for k in x86_int_mul_add() if k.isa == "scalar"]
    for dtype, isa in product(MULTIPLY, WIDE):
        if dtype == "int64" and isa != "avx512":
            continue
        count = 96 if isa == "avx512" else 56
        instructions = {
            vex(isa) + MULTIPLY[dtype]: count,
            f"{vex(isa)}padd{SUFFIX[dtype]}": count,
        }
        found.append(Kernel("int_mul_add", dtype, isa, instructions, 2 * count * lanes(dtype, isa)))
    return found


def x86_amd_int8() -> list[Kernel]:
    """Twenty products at a time, four times over."""
    each = {mnemonic: 80 * count for mnemonic, count in INT8_MULTIPLY["avx512"][1].items()}
    operations = 80 * lanes("int8", "avx512")
    return [
        Kernel("int_mul", "int8", "avx512", each, operations),
        Kernel("int_mul_add", "int8", "avx512", each | {"vpaddb": 80}, 2 * operations),
    ]


def x86_amd_compare() -> list[Kernel]:
    """Two comparisons for each addition, where comparisons have fewer ports."""
    found = []
    for kernel in x86_compare():
        if kernel.isa != "avx512" and kernel.dtype in ("int8", "int16", "int32"):
            continue
        if kernel.on_general_registers:
            continue
        count = 56 if kernel.isa == "avx512" else 24
        instructions = {
            mnemonic: count * (2 if "cmp" in mnemonic else 1) for mnemonic in kernel.instructions
        }
        operations = 2 * count * lanes(kernel.dtype, kernel.isa)
        found.append(replace(kernel, instructions=instructions, operations=operations))
    return found


# The rows that stand before those of all CPUs.
X86_AMD = [
    replace(kernel, vendor=AMD)
    for kernel in (
        *x86_amd_mul_add(),
        *x86_amd_int_mul_add(),
        *x86_amd_int8(),
        *x86_amd_compare(),
    )
]
X86_KERNELS = [*X86_GENERAL, *X86_AMD]


def x86_kernels_of_this_cpu() -> list[Kernel]:
    """The kernels that the program takes on this CPU."""
    own = X86_AMD if inventory().cpu.vendor == AMD else []
    replaced = {tuple(kernel.arguments) for kernel in own}
    return [*own, *(k for k in X86_GENERAL if tuple(k.arguments) not in replaced)]


# ---- aarch64: 24 vector accumulators, 16 general-purpose ones ----


def arm_pairs(
    workload: str, dtype: str, isa: str, first: str, second: str, operations: int
) -> Kernel:
    """Eight rounds of two instructions on every accumulator."""
    general = isa == "scalar" and dtype in INTEGERS
    each = 8 * (16 if general else 24)
    counts = counted((first, each), (second, each))
    return Kernel(workload, dtype, isa, counts, operations * 2 * each * lanes(dtype, isa))


def arm_floats() -> list[Kernel]:
    found = []
    for dtype, isa in product(FLOATS, ("scalar", "neon", "sve")):
        fma, fms = ("fmadd", "fmsub") if isa == "scalar" else ("fmla", "fmls")
        wide = lanes(dtype, isa)
        found += [
            arm_pairs("fma", dtype, isa, fma, fms, 2),
            arm_pairs("add_sub", dtype, isa, "fadd", "fsub", 1),
            Kernel("mul_add", dtype, isa, {"fmul": 144, "fadd": 144}, 288 * wide),
            Kernel("fma_add", dtype, isa, {fma: 144, "fadd": 144}, 3 * 144 * wide, "1:1"),
            Kernel("fma_add", dtype, isa, {fma: 96, fms: 96, "fadd": 96}, 5 * 96 * wide, "2:1"),
        ]
    return found


def arm_integers() -> list[Kernel]:
    found = []
    for dtype, isa in product(INTEGERS, ("scalar", "neon", "sve")):
        if isa == "scalar" and dtype in ("int8", "int16"):
            continue
        found += [
            arm_pairs("add_sub", dtype, isa, "add", "sub", 1),
            arm_pairs("int_add", dtype, isa, "add", "add", 1),
        ]
        if (dtype, isa) == ("int64", "neon"):
            continue
        mla, mls = ("madd", "msub") if isa == "scalar" else ("mla", "mls")
        found += [
            arm_pairs("int_mul", dtype, isa, "mul", "mul", 1),
            arm_pairs("int_mul_add", dtype, isa, mla, mls, 2),
        ]
    return found


def arm_compare() -> list[Kernel]:
    found = []
    for dtype in (*INTEGERS, *FLOATS):
        prefix = "f" if dtype in FLOATS else ""
        wide = lanes(dtype, "neon")
        instructions = {f"{prefix}cmgt": 384, "sub": 384}
        found.append(Kernel("compare", dtype, "neon", instructions, 384 * wide))
        if dtype not in ("int8", "int16"):
            scalar = {f"{prefix}cmp": 256, "cinc": 256}
            found.append(Kernel("compare", dtype, "scalar", scalar, 256))
    return found


ARM_DOT = [
    Kernel("dot", "int8", "neon", {"sdot": 384}, 384 * 16 * 2),
    Kernel("dot", "int8", "mmla", {"smmla": 384}, 384 * 2 * 2 * 8 * 2),
    Kernel("dot", "bf16", "neon", {"bfdot": 384}, 384 * 8 * 2),
    Kernel("dot", "bf16", "mmla", {"bfmmla": 384}, 384 * 2 * 2 * 4 * 2),
    Kernel("dot", "fp16", "neon", {"fmla": 192, "fmls": 192}, 384 * 8 * 2),
]
ARM_POPCNT = Kernel("popcnt", "int8", "neon", {"cnt": 144, "add": 48}, 144 * 16)
ARM_KERNELS = [*arm_floats(), *arm_integers(), *arm_compare(), *ARM_DOT, ARM_POPCNT]
