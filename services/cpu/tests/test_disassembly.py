"""Every kernel's loop holds exactly the instructions that its figure counts, and nothing else."""

import json
import platform
import re
import subprocess
from collections import Counter

import pytest

from services.cpu.tests.kernels import (
    ARM_KERNELS,
    PLAIN_CHAIN,
    WIDTH,
    X86_KERNELS,
    Kernel,
    x86_kernels_of_this_cpu,
)
from tests.builds import builds
from tests.each import each
from tests.machine_code import ROOT, Instruction, functions, loop

PROGRAM = "cpu-bench"
CHAIN_CYCLES = 80
VECTOR_REGISTER = {
    "scalar": "%xmm",
    "sse2": "%xmm",
    "avx2": "%ymm",
    "avx512": "%zmm",
    "amx": "%tmm",
}
# They need all sixteen registers for their accumulators and other constants.
CONSTANTS_IN_MEMORY = {"int_mul_int32_sse2", "int_mul_int32_avx2"} | {
    kernel.name for kernel in X86_KERNELS if kernel.workload == "mul_add" and kernel.vendor
}
QEMU = ["qemu-aarch64", "-cpu", f"max,sve-default-vector-length={WIDTH['sve'] // 8}"]


def mnemonics(body: list[Instruction]) -> Counter[str]:
    return Counter(instruction.mnemonic for instruction in body)


def name(kernel: Kernel) -> str:
    return f"{kernel.dtype}:{kernel.name}"


@pytest.mark.parametrize("variant", builds("release", "clang"))
@each("kernel", X86_KERNELS, name)
def test_x86_loop(variant: str, kernel: Kernel) -> None:
    body = loop(functions(variant, PROGRAM)[f"{kernel.name}_loop"])
    assert mnemonics(body) == kernel.instructions | {"dec": 1, "jne": 1}
    for instruction in body[:-2]:
        if kernel.name not in CONSTANTS_IN_MEMORY:
            assert "(" not in instruction.operands, "an operand lies in memory"
        if not kernel.on_general_registers:
            others = {"%xmm", "%ymm", "%zmm", "%tmm"} - {VECTOR_REGISTER[kernel.isa]}
            assert VECTOR_REGISTER[kernel.isa] in instruction.operands
            assert not any(other in instruction.operands for other in others)


@pytest.mark.parametrize("variant", builds("release", "clang"))
@each("kernel", X86_KERNELS, name)
def test_x86_clock_chain(variant: str, kernel: Kernel) -> None:
    general = kernel.on_general_registers
    chain = PLAIN_CHAIN if general else f"{kernel.name}_chain"
    whole = functions(variant, PROGRAM).get(chain, [])
    if variant == "release" and len(whole) < CHAIN_CYCLES:
        # gcc has folded it with an equal one, which is looked at under its own name; clang has not.
        assert not whole or re.search(r"<\w+_chain>", whole[0].operands)
        return
    body = loop(whole)
    counts = mnemonics(body)
    licence = set(counts) - {"add", "dec", "jne"}
    assert counts["add"] == CHAIN_CYCLES
    assert (counts["dec"], counts["jne"]) == (1, 1)
    assert len(licence) == (0 if general else 1)
    assert licence <= set(kernel.instructions), "the chain carries another instruction"
    expected = 1 if kernel.isa == "amx" else CHAIN_CYCLES // 16
    assert all(counts[mnemonic] == expected for mnemonic in licence)
    chains = {i.operands for i in body if i.mnemonic == "add"}
    assert len(chains) == 1, "the additions do not depend on one another"
    source, _ = chains.pop().split(",")
    assert source.startswith("%"), "Golden Cove removes additions of an immediate"


@pytest.mark.exhaustive
@each("kernel", ARM_KERNELS, name)
def test_aarch64_loop(kernel: Kernel) -> None:
    body = loop(functions("aarch64", PROGRAM)[f"{kernel.name}_loop"])
    assert mnemonics(body) == kernel.instructions | {"subs": 1, "b.ne": 1}
    for instruction in body[:-2]:
        assert "[" not in instruction.operands, "an operand lies in memory"


@pytest.mark.exhaustive
@each("kernel", ARM_KERNELS, name)
def test_aarch64_clock_chain(kernel: Kernel) -> None:
    general = kernel.on_general_registers or (kernel.workload, kernel.isa) == ("compare", "scalar")
    chain = PLAIN_CHAIN if general else f"{kernel.name}_chain"
    whole = functions("aarch64", PROGRAM).get(chain, [])
    if len(whole) < CHAIN_CYCLES:
        assert not whole or re.search(r"<\w+_chain>", whole[0].operands)
        return
    counts = mnemonics(loop(whole))
    licence = {key: counts[key] for key in set(counts) - {"subs", "b.ne"} if key != "add"}
    integer_vectors = counts["add"] - CHAIN_CYCLES
    assert (counts["subs"], counts["b.ne"]) == (1, 1)
    assert sum(licence.values()) + integer_vectors == (0 if general else CHAIN_CYCLES // 16)
    assert set(licence) <= set(kernel.instructions)


def run(command: list[str]) -> dict[str, object]:
    """The last event of one unit of work."""
    result = subprocess.run(command, capture_output=True, text=True)
    event: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return event


def work_of(kernel: Kernel, emulator: list[str], variant: str) -> float:
    """Operations that the program counts for one loop iteration."""
    program = str(ROOT / "build" / variant / PROGRAM)
    # An error would be a wrong result; a skip, an instruction set that is not there.
    options = ["--threads=1", "--work=1", "--warmup-s=0"]
    event = run([*emulator, program, *kernel.arguments, *options])
    if event["event"] == "skip":
        pytest.skip(f"not on this CPU: {event['reason']}")
    assert event["event"] == "end", event
    metrics = event["metrics"]
    assert isinstance(metrics, dict)
    return float(metrics["work_operations"])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs the x86-64 program")
@each("kernel", x86_kernels_of_this_cpu(), name)
def test_figure_counts_what_the_loop_does(kernel: Kernel) -> None:
    assert work_of(kernel, [], "release") == kernel.operations


@pytest.mark.exhaustive
@each("kernel", ARM_KERNELS, name)
def test_figure_counts_what_the_loop_does_on_aarch64(kernel: Kernel) -> None:
    assert work_of(kernel, QEMU, "aarch64") == kernel.operations


@pytest.mark.parametrize("variant", builds("release", "aarch64"))
def test_empty_loop_is_empty(variant: str) -> None:
    body = loop(functions(variant, PROGRAM)["loop_empty"])
    branch = {"subs", "b.ne"} if variant == "aarch64" else {"dec", "jne"}
    assert {instruction.mnemonic for instruction in body} == branch
    assert len(body) == 2
