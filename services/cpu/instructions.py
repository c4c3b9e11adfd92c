"""How many instructions a case takes at least, to hold what the CPU counted against."""

from hostbench.host.microarchitecture import CpuIdentity, Unknown, identify
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseResult
from hostbench.report.grouping import resolved
from services.cpu.sequences import Kernel, sequence, workloads


def least_instructions(host: HostInventory, case: CaseResult) -> float | None:
    """Return the instructions for each operation of the case's loop, without those that count its
    passes. None: the loop's instructions or the micro-architecture are unknown."""
    name = case.workload.partition(".")[2]
    start = next((trial.start for trial in case.trials if trial.start), None)
    if start is None or name not in workloads():
        return None
    found = identify(CpuIdentity.of(host, start.placement.cpus))
    if isinstance(found, Unknown):
        return None
    kernel = Kernel.of(name, resolved(case), found.microarchitecture)
    instructions = sequence(kernel)
    if isinstance(instructions, Unknown) or not kernel.lanes:
        return None
    steps = sum(step.count for step in instructions.steps)
    return steps / (kernel.lanes * instructions.operations_per_lane)
