"""What the compiler made of the kernels, for every architecture: nothing here needs a GPU."""

import itertools
import re

import pytest

from services.gpu.tests import sass

ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]

# One FMA a clock and pipe: here every operand that the reuse cache holds counts.
FULL_RATE_FP32 = ["sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]

# Instructions of a loop, by the beginning of their name.
ARITHMETIC: dict[str, dict[str, int]] = {
    "fma_fp64": {"DFMA": 512},
    "fma_fp32": {"FFMA ": 512},
    "fma_fp32x2": {"FFMA2": 256},
    "fma_fp16": {"HFMA2": 512},
    "fma_bf16": {"HFMA2": 512},
    "int_add_int32": {"IADD3 ": 512},
    "int_add_int64": {"IADD": 512},
    "int_mul_add_int32": {"IMAD ": 512},
    "int_mul_add_int64": {"IMAD": 384, "IADD3": 128},
    "dp4a_int8": {"IDP.4A": 512},
}

# Where two pipes compute packed FMAs, each has to get half of them.
TWO_PIPES = {("sm_80", "fma_fp16"), ("sm_90", "fma_fp16"), ("sm_90", "fma_bf16")}

MEMORY = {"read": (8, 0), "write": (0, 8), "fill": (0, 8), "copy": (1, 1), "triad": (2, 1)}

needs_nvdisasm = pytest.mark.skipif(
    sass.nvdisasm() is None,
    reason="nvdisasm is not installed: its wheel, nvidia-cuda-nvdisasm, is in requirements/dev.txt",
)


def exists(arch: str, kernel: str) -> bool:
    if kernel == "fma_bf16":
        return arch not in ("sm_70", "sm_75")
    return kernel != "fma_fp32x2" or arch == "sm_100"


CASES = [(arch, kernel) for arch in ARCHS for kernel in ARITHMETIC if exists(arch, kernel)]


def named(instruction: sass.Instruction) -> str:
    """With a space behind, so that a beginning can be the whole name."""
    return instruction.opcode + " "


@needs_nvdisasm
@pytest.mark.parametrize(("arch", "kernel"), CASES)
@pytest.mark.sampled(7)
def test_loop_is_arithmetic(arch: str, kernel: str) -> None:
    loop = [i for i in sass.kernels(arch)[kernel].loop if i.opcode != "NOP"]
    arithmetic = 0
    for beginning, expected in ARITHMETIC[kernel].items():
        # The counter of a loop is an addition too, of an immediate.
        found = [i for i in loop if named(i).startswith(beginning) and ", -0x1" not in i.operands]
        moves = [i for i in found if i.opcode.startswith("IMAD.MOV")]
        assert len(found) - len(moves) == expected
        arithmetic += expected
    assert arithmetic / len(loop) >= 0.98, [i.opcode for i in loop if i.opcode[0] in "BCSM"]


@needs_nvdisasm
@pytest.mark.parametrize(("arch", "kernel"), CASES)
@pytest.mark.sampled(7)
def test_loop_fits_the_instruction_cache(arch: str, kernel: str) -> None:
    if (arch, kernel) == ("sm_120", "fma_fp64"):
        # The compiler puts four NOPs behind each DFMA; there is one in 64 clocks.
        pytest.skip("its pipe is slower than any instruction cache")
    loop = sass.kernels(arch)[kernel].loop
    assert loop[-1].address - loop[0].address < 9 * 1024


@needs_nvdisasm
@pytest.mark.parametrize(("arch", "kernel"), sorted(TWO_PIPES))
def test_both_pipes_get_half(arch: str, kernel: str) -> None:
    loop = sass.kernels(arch)[kernel].loop
    assert sum(i.opcode.startswith("HFMA2.MMA") for i in loop) == 256


@needs_nvdisasm
@pytest.mark.parametrize("arch", FULL_RATE_FP32)
def test_fp32_reads_one_register_an_instruction(arch: str) -> None:
    loop = sass.kernels(arch)["fma_fp32"].loop
    assert sum(i.reuses == 2 for i in loop) >= 0.9 * 512


@needs_nvdisasm
@pytest.mark.parametrize(
    ("arch", "kernel", "clocks", "words"),
    [
        *((arch, "fma_fp32", 1, 1) for arch in FULL_RATE_FP32),
        *((arch, "fma_fp32", 2, 1) for arch in ("sm_75", "sm_80")),
        *((arch, "fma_fp16", 1, 1) for arch in ("sm_80", "sm_90", "sm_100")),
        *((arch, "fma_bf16", 1, 1) for arch in ("sm_90", "sm_100")),
        *((arch, "fma_fp64", 2, 2) for arch in ("sm_90", "sm_100")),
        ("sm_80", "fma_fp64", 4, 2),
        ("sm_100", "fma_fp32x2", 2, 2),
        *((arch, "int_add_int32", 2, 1) for arch in ARCHS[:-1]),
        *((arch, "int_add_int64", 2, 1) for arch in ARCHS[:-1]),
        ("sm_120", "int_add_int32", 1, 1),
        *((arch, "int_mul_add_int32", 2, 1) for arch in ARCHS),
        *((arch, "dp4a_int8", 2, 1) for arch in ARCHS),
    ],
)
@pytest.mark.sampled(7)
def test_registers_keep_up(arch: str, kernel: str, clocks: int, words: int) -> None:
    """Each bank gives one register a clock; `clocks` is what the pipe takes for an instruction."""
    loop = sass.kernels(arch)[kernel].loop
    assert max(sass.bank_reads(loop, words)) <= clocks * len(loop)


@needs_nvdisasm
def test_no_fp64_instruction_reads_three_operands() -> None:
    """Three take a clock more than the pipe wherever the compiler lets go of the reuse caches."""
    for arch in ARCHS:
        loop = [i for i in sass.kernels(arch)["fma_fp64"].loop if i.opcode == "DFMA"]
        assert len(loop) == 512
        assert max(len(re.findall(r"\bR\d", i.operands)) for i in loop) == 3  # one is written


@needs_nvdisasm
@pytest.mark.parametrize("arch", ARCHS)
def test_nothing_is_spilled(arch: str) -> None:
    for name, kernel in sass.kernels(arch).items():
        assert kernel.count("LDL", "STL") == 0, name


@needs_nvdisasm
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", MEMORY)
@pytest.mark.sampled(7)
def test_memory_kernels_access_16_bytes(arch: str, kernel: str) -> None:
    code = sass.kernels(arch)[kernel]
    loads = [i.address for i in code.instructions if re.match(r"LDG\.E.*\.128", i.opcode)]
    stores = [i.address for i in code.instructions if re.match(r"STG\.E.*\.128", i.opcode)]
    assert (len(loads), len(stores)) == MEMORY[kernel]
    others = code.count("LDG", "STG") - len(loads) - len(stores)
    assert others <= (1 if kernel == "read" else 0)


@needs_nvdisasm
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("cached", ["ca", "cg"])
@pytest.mark.sampled(7)
def test_chase(arch: str, cached: str) -> None:
    kernel = sass.kernels(arch)[f"pointer_chase_{cached}"]
    loads = [i for i in kernel.loop if i.opcode.startswith("LDG")]
    assert len(loads) == 64
    assert {i.opcode.startswith("LDG.E.64.STRONG.GPU") for i in loads} == {cached == "cg"}
    assert len(kernel.loop) <= 64 + 6
    for before, after in itertools.pairwise(loads):
        to = re.match(r"(R\d+)", before.operands)
        assert to
        assert re.search(rf"\[{to[1]}\b", after.operands), "each load needs the one before"
    clocks = [i.address for i in kernel.instructions if "SR_CLOCKLO" in i.operands]
    timers = [i.address for i in kernel.instructions if "GLOBALTIMER" in i.operands]
    stores = [i.address for i in kernel.instructions if i.opcode.startswith("STG")]
    assert len(clocks) == len(timers) == 2
    assert timers[0] < clocks[0] < loads[0].address
    end = min(store for store in stores if store > loads[-1].address)
    assert loads[-1].address < end < clocks[1] < timers[1]


@needs_nvdisasm
@pytest.mark.parametrize("arch", ARCHS)
def test_vector_kernels_read_clocks_around_the_loop(arch: str) -> None:
    for name in ARITHMETIC:
        if not exists(arch, name):
            continue
        kernel = sass.kernels(arch)[name]
        clocks = [i.address for i in kernel.instructions if "SR_CLOCKLO" in i.operands]
        assert len(clocks) == 2
        assert clocks[0] < kernel.loop[0].address < kernel.loop[-1].address < clocks[1]


@needs_nvdisasm
def test_volta() -> None:
    """nvdisasm no longer knows 7.0; the opcodes' bits are those of 7.5."""
    counts = sass.old_counts("sm_70", like="sm_75")
    for name, kernel in sass.kernels("sm_75").items():
        assert counts[name]["LDL"] == counts[name]["STL"] == 0
        for beginning, expected in ARITHMETIC.get(name, {}).items():
            opcode = beginning.strip().split(".")[0]
            opcode = "IADD3" if opcode == "IADD" else opcode
            assert counts[name][opcode] >= expected
            assert abs(counts[name][opcode] - kernel.count(opcode)) <= 40
        for opcode in ("LDG", "STG"):
            assert counts[name][opcode] == kernel.count(opcode), name


@pytest.mark.parametrize("arch", ["sm_70", *ARCHS])
def test_every_kernel_is_there(arch: str) -> None:
    names = set(sass.sections(sass.cubin(arch)))
    others = {"fill", "read", "write", "copy", "fill_float", "triad", "check", "check_triad"}
    others |= {"chase_link", "pointer_chase_ca", "pointer_chase_cg", "empty"}
    assert names == others | {kernel for kernel in ARITHMETIC if exists(arch, kernel)}
