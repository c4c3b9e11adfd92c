"""Every kernel's loop holds exactly the instructions that its figure counts, and nothing else."""

from collections import Counter

import pytest

from services.cpu.tests.disassembly import functions, loop

PAIRS = 8
CHAIN_CYCLES = 80
INTEGER_SUFFIX = {"int8": "b", "int16": "w", "int32": "d", "int64": "q"}
ADVANCED_SIMD_SHAPE = {
    "int8": "16b", "int16": "8h", "int32": "4s", "int64": "2d", "fp32": "4s", "fp64": "2d",
}  # fmt: skip
VECTOR_REGISTER = {"scalar": "xmm", "sse2": "xmm", "avx2": "ymm", "avx512": "zmm"}
X86_FLAVOURS = ["release", "clang"]


def x86_mnemonics(workload: str, dtype: str, isa: str) -> tuple[str, str]:
    """The adding and the subtracting instruction of a kernel."""
    packed = "s" if isa == "scalar" else "p"
    precision = {"fp32": "s", "fp64": "d"}.get(dtype, "")
    if workload == "fma":
        return f"vfmadd231{packed}{precision}", f"vfnmadd231{packed}{precision}"
    vex = "v" if isa in ("avx2", "avx512") else ""
    if precision:
        return f"{vex}add{packed}{precision}", f"{vex}sub{packed}{precision}"
    if isa == "scalar":
        return "add", "sub"
    return f"{vex}padd{INTEGER_SUFFIX[dtype]}", f"{vex}psub{INTEGER_SUFFIX[dtype]}"


def x86_kernels() -> list[tuple[str, str, str]]:
    fp, integer = ["fp64", "fp32"], list(INTEGER_SUFFIX)
    isas = list(VECTOR_REGISTER)
    return [("fma", dtype, isa) for dtype in fp for isa in isas] + [
        ("add_sub", dtype, isa) for dtype in integer + fp for isa in isas
    ]


def x86_accumulators(dtype: str, isa: str) -> int:
    if isa == "avx512":
        return 24
    return 10 if isa == "scalar" and dtype in INTEGER_SUFFIX else 12


@pytest.mark.parametrize("variant", X86_FLAVOURS)
@pytest.mark.parametrize(("workload", "dtype", "isa"), x86_kernels())
def test_x86_loop(variant: str, workload: str, dtype: str, isa: str) -> None:
    body = loop(functions(variant)[f"{workload}_{dtype}_{isa}_loop"])
    each = PAIRS * x86_accumulators(dtype, isa)
    add, subtract = x86_mnemonics(workload, dtype, isa)
    counts = Counter(instruction.mnemonic for instruction in body)
    assert counts == {add: each, subtract: each, "dec": 1, "jne": 1}
    for instruction in body[:-2]:
        assert "(" not in instruction.operands, "an operand lies in memory"
        if not (isa == "scalar" and dtype in INTEGER_SUFFIX):
            assert instruction.operands.count(VECTOR_REGISTER[isa]) == (
                3 if instruction.mnemonic.startswith("v") else 2
            )


@pytest.mark.parametrize("variant", X86_FLAVOURS)
@pytest.mark.parametrize(("workload", "dtype", "isa"), x86_kernels())
def test_x86_clock_chain(variant: str, workload: str, dtype: str, isa: str) -> None:
    integer_scalar = isa == "scalar" and dtype in INTEGER_SUFFIX
    name = "loop_add_chain" if integer_scalar else f"{workload}_{dtype}_{isa}_chain"
    body = loop(functions(variant)[name])
    counts = Counter(instruction.mnemonic for instruction in body)
    licence = {} if integer_scalar else {x86_mnemonics(workload, dtype, isa)[0]: 5}
    assert counts == {"add": CHAIN_CYCLES, "dec": 1, "jne": 1} | licence
    chains = {i.operands for i in body if i.mnemonic == "add"}
    assert len(chains) == 1, "the additions do not depend on one another"
    source, _ = chains.pop().split(",")
    assert source.startswith("%"), "Golden Cove removes additions of an immediate"


def aarch64_kernels() -> list[tuple[str, str, str]]:
    return [("fma", dtype, isa) for dtype in ("fp64", "fp32") for isa in ("scalar", "neon")] + [
        ("add_sub", dtype, isa)
        for dtype in ADVANCED_SIMD_SHAPE
        for isa in ("scalar", "neon")
        if (dtype, isa) not in {("int8", "scalar"), ("int16", "scalar")}
    ]


@pytest.mark.parametrize(("workload", "dtype", "isa"), aarch64_kernels())
def test_aarch64_loop(workload: str, dtype: str, isa: str) -> None:
    body = loop(functions("aarch64")[f"{workload}_{dtype}_{isa}_loop"])
    integer = dtype in INTEGER_SUFFIX
    each = PAIRS * (16 if integer and isa == "scalar" else 24)
    if workload == "fma":
        add, subtract = ("fmadd", "fmsub") if isa == "scalar" else ("fmla", "fmls")
    else:
        add, subtract = ("add", "sub") if integer else ("fadd", "fsub")
    counts = Counter(instruction.mnemonic for instruction in body)
    assert counts == {add: each, subtract: each, "subs": 1, "b.ne": 1}
    shape = ADVANCED_SIMD_SHAPE[dtype] if isa == "neon" else ""
    for instruction in body[:-2]:
        assert "[" not in instruction.operands, "an operand lies in memory"
        assert instruction.operands.count(shape) >= 3


def test_empty_loop_is_empty() -> None:
    for variant, branch in [("release", {"dec", "jne"}), ("aarch64", {"subs", "b.ne"})]:
        body = loop(functions(variant)["loop_empty"])
        assert {instruction.mnemonic for instruction in body} == branch
        assert len(body) == 2
