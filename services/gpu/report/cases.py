"""A case as all parts of the GPU's section see it: its workload, its device, its words."""

from collections.abc import Sequence

from hostbench.models.result import CaseResult
from hostbench.report.cases import name_of
from hostbench.report.grouping import word
from hostbench.units import binary_bytes

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
# What a case has of them where nobody asked for more is no news.
_PLAIN = {
    DEVICE: "auto",
    BACKEND: "auto",
    SIZE: "auto",
    INSTRUCTION: "auto",
    CACHED_IN: "auto",
}


def param_word(name: str, value: object) -> str:
    """How a value is called among those of other cases; what is plain is not."""
    if value is None or _PLAIN.get(name) == value:
        return ""
    if name == SIZE and isinstance(value, int):
        return binary_bytes(value)
    if name == HOST_MEMORY:
        return f"{value} memory"
    if name == DEVICE:
        return f"device {value}"
    if name == PATH:
        return "by the driver" if value == "driver" else f"by a {value}"
    if name == CACHED_IN:
        return f"cached in {str(value).upper()}"
    if name == MODE:
        return str(value).replace("_", " ")
    return word(name, value)


def of_workloads(cases: Sequence[CaseResult], names: Sequence[str]) -> list[CaseResult]:
    """The cases of these workloads."""
    return [case for case in cases if name_of(case) in names]


def facts_of(case: CaseResult) -> dict[str, str]:
    """What its first trial that began found out about the device."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    return dict(start.facts) if start else {}
