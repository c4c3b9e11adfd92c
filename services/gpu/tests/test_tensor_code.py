"""What the compiler made of the tensor kernels, for every architecture; no GPU is needed."""

import re
from collections import Counter

import pytest

from services.gpu.tests import sass
from services.gpu.tests.test_machine_code import needs_nvdisasm

# Kernel, instruction, how many of it in a turn of the loop, tiles: two steps of 2 x 4 tiles. On 7.5
# int8 has 4 x 4, from 9.0 on fp64 has 2 x 2.
FP16 = ("tensor_mma_m16n8k16_fp16", "HMMA.16816.F32", 16, 8)
BF16 = ("tensor_mma_m16n8k16_bf16", "HMMA.16816.F32.BF16", 16, 8)
TF32 = ("tensor_mma_m16n8k8_tf32", "HMMA.1688.F32.TF32", 16, 8)
INT8 = ("tensor_mma_m16n8k32_int8", "IMMA.16832.S8.S8", 16, 8)
FP8 = ("tensor_mma_m16n8k32_fp8", "QMMA.16832.F32.E4M3.E4M3", 16, 8)
FP64_AMPERE = ("tensor_mma_m8n8k4_fp64", "DMMA.884", 16, 8)
FP64_HOPPER = ("tensor_mma_m16n8k16_fp64", "DMMA.16x8x16", 8, 4)
# Eight instructions a product.
FP64_LATER = ("tensor_mma_m16n8k16_fp64", "DMMA.8x8x4", 64, 8)

MMA = {
    "sm_75": [
        ("tensor_mma_m16n8k8_fp16", "HMMA.1688.F32", 16, 8),
        ("tensor_mma_m8n8k16_int8", "IMMA.8816.S8.S8", 32, 16),
    ],
    "sm_80": [FP16, BF16, TF32, INT8, FP64_AMPERE],
    "sm_86": [FP16, BF16, TF32, INT8, FP64_AMPERE],
    "sm_89": [FP16, BF16, TF32, INT8, FP8, FP64_AMPERE],
    "sm_90": [FP16, BF16, TF32, INT8, FP64_HOPPER],
    "sm_100": [FP16, BF16, TF32, INT8, FP64_LATER],
    "sm_120": [FP16, BF16, TF32, INT8, FP8, FP64_LATER],
}
CASES = [(arch, *row) for arch, rows in MMA.items() for row in rows]

WGMMA = {
    "fp16": "HGMMA.64x256x16.F32",
    "bf16": "HGMMA.64x256x16.F32.BF16",
    "tf32": "HGMMA.64x256x8.F32.TF32",
    "fp8": "QGMMA.64x256x32.F32.E4M3.E4M3",
    "int8": "IGMMA.64x256x32.S8.S8",
}
# Opcode, and the instruction descriptor: m 128, n 256, formats of sums << 4, of operands << 7
# and << 10.
TCGEN05 = {
    "fp16": ("UTCHMMA", 0x8400010),
    "bf16": ("UTCHMMA", 0x8400010 | 1 << 7 | 1 << 10),
    "tf32": ("UTCHMMA", 0x8400010 | 2 << 7 | 2 << 10),
    "fp8": ("UTCQMMA", 0x8400010),
    "int8": ("UTCIMMA", 0x8400020 | 1 << 7 | 1 << 10),
}
BLACKWELL = [
    *(("sm_100a", dtype) for dtype in TCGEN05),
    *(("sm_103a", dtype) for dtype in TCGEN05 if dtype != "int8"),
]
STEPS = 8
SETS = [
    *(("mma", arch) for arch in MMA),
    ("wgmma", "sm_90a"),
    ("tcgen05", "sm_100a"),
    ("tcgen05", "sm_103a"),
]
LOADS = ("LDG", "LDS", "LDL", "LDC", "STG", "STS", "STL")


def products(code: tuple[sass.Instruction, ...]) -> list[sass.Instruction]:
    return [i for i in code if "MMA" in i.opcode]


def product_loop(code: sass.Kernel) -> tuple[sass.Instruction, ...]:
    (loop,) = [loop for loop in code.loops if products(loop)]
    return loop


def registers(instruction: sass.Instruction) -> tuple[str, ...]:
    """Result, A, B and the sum before, of an mma.sync."""
    return tuple(re.findall(r"\bU?R\d+", instruction.operands)[:4])


@needs_nvdisasm
@pytest.mark.parametrize(("arch", "kernel", "opcode", "count", "tiles"), CASES)
@pytest.mark.sampled(7)
def test_mma(arch: str, kernel: str, opcode: str, count: int, tiles: int) -> None:
    code = sass.kernels(arch, "mma")[kernel]
    inside = products(product_loop(code))
    assert {i.opcode for i in inside} == {opcode}
    assert len(inside) == count
    assert len(products(code.instructions)) == count, "some are outside of the loop"
    loop = [i for i in product_loop(code) if i.opcode != "NOP"]
    assert len(loop) <= count + 6
    assert not [i for i in loop if i.opcode.startswith(LOADS)]


@needs_nvdisasm
@pytest.mark.parametrize(("arch", "kernel", "opcode", "count", "tiles"), CASES)
@pytest.mark.sampled(7)
def test_no_chain_is_merged_with_another(
    arch: str, kernel: str, opcode: str, count: int, tiles: int
) -> None:
    inside = [registers(i) for i in products(product_loop(sass.kernels(arch, "mma")[kernel]))]
    assert all(result == before for result, _, _, before in inside)
    chains = Counter(result for result, _, _, _ in inside)
    assert len(chains) == tiles and set(chains.values()) == {count // tiles}
    assert len({(a, b) for _, a, b, _ in inside}) == count, "products of the same operands"


@needs_nvdisasm
def test_volta() -> None:
    """nvdisasm no longer knows 7.0. Its HMMA has these bits, four steps make a product."""
    hmma = 0x236
    code = sass.sections(sass.cubin("sm_70", "mma"))["tensor_mma_m8n8k4_fp16"]
    opcodes = Counter(sass.opcode_bits(code, at) for at in range(0, len(code), 16))
    assert opcodes[hmma] == 4 * 16
    assert opcodes[0x983] == opcodes[0x387] == 0, "LDL and STL"


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_fp8_is_not_made_of_fp16(arch: str) -> None:
    assert not [name for name in sass.kernels(arch, "mma") if "fp8" in name]


@needs_nvdisasm
@pytest.mark.parametrize(("dtype", "opcode"), WGMMA.items())
def test_wgmma(dtype: str, opcode: str) -> None:
    code = sass.kernels("sm_90a", "wgmma")[f"tensor_wgmma_m64n256_{dtype}"]
    loop = product_loop(code)
    inside = products(loop)
    assert [i.opcode for i in inside] == [opcode] * STEPS
    assert len(products(code.instructions)) == STEPS
    assert not [i for i in loop if i.opcode.startswith((*LOADS, "R2UR"))]
    # A round is under way while the next is issued; all are done only behind the loop.
    waits = [i.operands for i in loop if i.opcode == "WARPGROUP.DEPBAR.LE"]
    assert waits == ["gsb0, 0x1"]
    # Rows of 128 bytes, swizzled, eight of them 1024 bytes from the next eight.
    assert [i for i in code.instructions if i.operands.endswith(", 0x40000040")]


@needs_nvdisasm
@pytest.mark.parametrize(("arch", "dtype"), BLACKWELL)
@pytest.mark.sampled(7)
def test_tcgen05(arch: str, dtype: str) -> None:
    opcode, descriptor = TCGEN05[dtype]
    code = sass.kernels(arch, "tcgen05")[f"tensor_tcgen05_m128n256_{dtype}"]
    loop = product_loop(code)
    inside = products(loop)
    assert [i.opcode for i in inside] == [opcode] * STEPS
    assert len(products(code.instructions)) == STEPS
    assert all("gdesc" in i.operands and "tmem" in i.operands for i in inside)
    assert not [i for i in loop if i.opcode.startswith((*LOADS, "R2UR"))]
    assert [i for i in code.instructions if i.operands.endswith(f", {descriptor:#x}")]
    assert [i for i in code.instructions if i.operands.endswith(", 0x40004040")]
    # The tile is waited for, and read from tensor memory.
    assert code.count("UTCBAR") == 1 and code.count("SYNCS.PHASECHK") >= 1
    assert code.count("LDTM.x32") == 1


@needs_nvdisasm
@pytest.mark.parametrize(("name", "arch"), SETS)
def test_nothing_is_spilled(name: str, arch: str) -> None:
    for kernel, code in sass.kernels(arch, name).items():
        assert code.count("LDL", "STL") == 0, kernel


@needs_nvdisasm
@pytest.mark.parametrize(("name", "arch"), SETS)
def test_clocks_are_read_around_the_products(name: str, arch: str) -> None:
    for kernel, code in sass.kernels(arch, name).items():
        clocks = [i.address for i in code.instructions if "SR_CLOCKLO" in i.operands]
        inside = [i.address for i in products(code.instructions)]
        assert len(clocks) == 2, kernel
        assert clocks[0] < min(inside) <= max(inside) < clocks[1], kernel
