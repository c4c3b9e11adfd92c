"""A case as all parts of the GPU's section see it: its workload, its device, its words."""

from collections.abc import Sequence

from hostbench.model.result import CaseResult
from hostbench.report.cases import name_of

VECTOR = ("fma", "int_add", "int_mul_add", "dp4a")
TENSOR, GEMM = "tensor", "gemm"
MEMORY = ("read", "write", "copy", "triad")
CHASE, LAUNCHES = "pointer_chase", "launch_latency"
TRANSFERS = ("host_to_device", "device_to_host", "bidirectional")
PEER_TO_PEER = "peer_to_peer"
KNOWN = (*VECTOR, TENSOR, GEMM, *MEMORY, CHASE, LAUNCHES, *TRANSFERS, PEER_TO_PEER)

DTYPE, DEVICE, BACKEND, SIZE = "dtype", "device", "backend", "size_bytes"
HOST_MEMORY, INSTRUCTION, MODE = "host_memory", "instruction", "mode"
PATH, DIRECTION, CACHED_IN = "path", "direction", "cached_in"


def of_workloads(cases: Sequence[CaseResult], names: Sequence[str]) -> list[CaseResult]:
    """The cases of these workloads."""
    return [case for case in cases if name_of(case) in names]


def facts_of(case: CaseResult) -> dict[str, str]:
    """What its first trial that began found out about the device."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    return dict(start.facts) if start else {}
