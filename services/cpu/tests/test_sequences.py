"""What the limits take for the instructions of a kernel is what its loop holds."""

from hostbench.host.microarchitecture import ARM, X86
from services.cpu import sequences
from services.cpu.sequences import Sequence, sequence
from services.cpu.tests.kernels import ARM_KERNELS, WIDTH, X86_KERNELS, Kernel, class_of
from tests.each import each


def counts_of(kernel: Kernel) -> dict[str, int]:
    """Instructions of one loop iteration, by class."""
    counts: dict[str, int] = {}
    for mnemonic, count in kernel.instructions.items():
        name = class_of(mnemonic, kernel)
        counts[name] = counts.get(name, 0) + count
    return counts


@each(
    ("architecture", "kernel"),
    [(X86, kernel) for kernel in X86_KERNELS] + [(ARM, kernel) for kernel in ARM_KERNELS],
)
def test_sequence_times_passes_is_the_loop(architecture: str, kernel: Kernel) -> None:
    wanted = sequences.Kernel(
        kernel.workload,
        kernel.dtype,
        kernel.isa,
        architecture,
        kernel.mix,
        sve_bits=WIDTH["sve"],
        vendor=kernel.vendor,
    )
    found = sequence(wanted)
    assert isinstance(found, Sequence), found
    passes = kernel.operations / (wanted.lanes * found.operations_per_lane)
    assert passes.is_integer()
    steps = {step.instruction: step.count * int(passes) for step in found.steps}
    assert counts_of(kernel) == steps


def test_every_workload_with_a_sequence_has_kernels() -> None:
    assert {kernel.workload for kernel in X86_KERNELS} == sequences.workloads()
