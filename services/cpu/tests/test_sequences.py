"""What the limits take for the instructions of a kernel is what its loop holds."""

import re

import pytest

from services.cpu import sequences
from services.cpu.microarchitecture import ARM, X86
from services.cpu.sequences import Sequence, sequence
from services.cpu.tests.kernels import ARM_KERNELS, WIDTH, X86_KERNELS, Kernel

# The first pattern that fits names the class.
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


def counts_of(kernel: Kernel) -> dict[str, int]:
    """Instructions of one loop iteration, by class."""
    counts: dict[str, int] = {}
    for mnemonic, count in kernel.instructions.items():
        name = class_of(mnemonic, kernel)
        counts[name] = counts.get(name, 0) + count
    return counts


@pytest.mark.parametrize(
    ("architecture", "kernel"),
    [
        pytest.param(architecture, kernel, id=f"{kernel.dtype}:{kernel.name}")
        for architecture, kernels in ((X86, X86_KERNELS), (ARM, ARM_KERNELS))
        for kernel in kernels
    ],
)
def test_sequence_times_passes_is_the_loop(architecture: str, kernel: Kernel) -> None:
    wanted = sequences.Kernel(
        kernel.workload, kernel.dtype, kernel.isa, architecture, kernel.mix, sve_bits=WIDTH["sve"]
    )
    found = sequence(wanted)
    assert isinstance(found, Sequence), found
    passes = kernel.operations / (wanted.lanes * found.operations_per_lane)
    assert passes.is_integer()
    steps = {step.instruction: step.count * int(passes) for step in found.steps}
    assert counts_of(kernel) == steps


def test_every_workload_with_a_sequence_has_kernels() -> None:
    assert {kernel.workload for kernel in X86_KERNELS} == sequences.WORKLOADS
