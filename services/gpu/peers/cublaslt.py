"""cuBLASLt: what NVIDIA's own library gets of the tensor cores in a product of large matrices,
through our gemm. Beside the pipe's rate it is context, never the same quantity."""

import json
from typing import Any

from hostbench.base.errors import ResourceError
from hostbench.host.gpu import ListedDevice
from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, BadOutput, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.program import find_program
from services.gpu.peers.device import NOT_NVIDIA, by_cuda, device

TOOL = "cublaslt"
PROGRAM = "gpu-bench"
N = 8192
DTYPES = frozenset({"fp16", "bf16", "tf32", "fp8", "fp64"})
OPERATIONS = "operations_per_second"


def peer(workload: str, params: Params) -> Peer | None:
    """Beside the tensor cores, where there is such a product."""
    dtype = str(params.get("dtype"))
    return CublasLt(dtype, params) if workload == "tensor" and dtype in DTYPES else None


class CublasLt(Peer):
    """A product of square matrices."""

    tool = TOOL
    package = "libcublas"
    title = f"gemm {N}"
    unit = "operation/s"
    overhead_s = 5.0

    def __init__(self, dtype: str, params: Params) -> None:
        self._dtype, self._params = dtype, params
        self._card: ListedDevice | None = None
        self.measures = (
            f"operations per second of a product of {dtype} matrices of {N} × {N} by cuBLASLt, "
            "median of windows by events of the device"
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """A library of no package of Debian's: the survey says what is missing."""
        return ()

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        try:
            missing = _gemm(ask((str(find_program("gpu")), "--list")))
        except ResourceError as error:
            missing = error.message
        self._card = device(ask, self._params)
        if missing is None and not by_cuda(self._card):
            missing = NOT_NVIDIA
        return Survey(version=None, unsupported=missing)

    def command(self, beside: Beside) -> Command:
        assert self._card is not None and self._card.uuid is not None, "the survey found it"
        options = ("gemm", "--dtype", self._dtype, "--n", str(N), "--device", self._card.uuid)
        timed = ("--duration-s", f"{beside.elapsed_s:g}")
        return Command(on_cpus(beside.cpus, str(find_program("gpu")), *options, *timed))

    def parse(self, output: str, beside: Beside) -> float:
        value = _last_event(output, "end").get("metrics", {}).get(OPERATIONS)
        if not isinstance(value, int | float):
            raise BadOutput(f"no {OPERATIONS} in its output")
        return float(value)


def _gemm(answer: str) -> str | None:
    """Why our gemm cannot run here; None: it can."""
    try:
        table = json.loads(answer)
        workloads = {one["name"]: one for one in table["workloads"]}
        reason = workloads["gemm"]["unsupported"]
    except (ValueError, KeyError, TypeError):
        return f"{PROGRAM} has no gemm"
    return None if reason is None else str(reason)


def _last_event(output: str, kind: str) -> dict[str, Any]:
    for line in reversed(output.splitlines()):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == kind:
            return event
    raise BadOutput(f"no {kind} in its output")
