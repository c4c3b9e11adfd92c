"""PyTorch: torch.matmul of square matrices, where the python3 of the host has it."""

import json
from pathlib import Path

from hostbench.host.gpu import ListedDevice
from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, BadOutput, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import expect, version
from services.gpu.peers.device import NOT_NVIDIA, by_cuda, device, on_card

TOOL = "pytorch"
INTERPRETER = "python3"
PROGRAM = Path(__file__).with_name("matmul.py")
DTYPES = frozenset({"fp16", "bf16", "tf32", "fp32", "fp64"})
OPERATIONS = "operations_per_second"
VERSION = "import torch; print('torch', torch.__version__)"


def peer(workload: str, params: Params) -> Peer | None:
    """Beside our product of matrices."""
    dtype, n = str(params.get("dtype")), params.get("n", 8192)
    fits = workload == "gemm" and dtype in DTYPES and isinstance(n, int)
    return PyTorch(dtype, int(n), params) if fits else None


class PyTorch(Peer):
    """A product of square matrices."""

    tool = TOOL
    package = "python3-torch"
    title = "matmul"
    unit = "operation/s"
    metric = OPERATIONS
    # It takes seconds to load.
    overhead_s = 15.0

    def __init__(self, dtype: str, n: int, params: Params) -> None:
        self._dtype, self._n, self._params = dtype, n, params
        self._card: ListedDevice | None = None
        self.measures = (
            f"operations per second of torch.matmul of {dtype} matrices of {n} × {n}, median of "
            "its products, by events of the device"
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """The interpreter alone; the survey says whether it has the library."""
        return (INTERPRETER,)

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((INTERPRETER, "-c", VERSION)), r"torch (\S+)")
        if found is None:
            reason = f"{INTERPRETER} has no PyTorch (pytorch.org says how to install it)"
            return Survey(version=None, unsupported=reason)
        self._card = device(ask, self._params)
        return Survey(version=found, unsupported=None if by_cuda(self._card) else NOT_NVIDIA)

    def command(self, beside: Beside) -> Command:
        assert self._card is not None, "the survey found it"
        what = (self._dtype, str(self._n), f"{beside.elapsed_s:g}")
        command = on_card(self._card, INTERPRETER, PROGRAM.name, *what)
        files = {PROGRAM.name: PROGRAM.read_text()}
        return Command(on_cpus(beside.cpus, *command), files)

    def parse(self, output: str, beside: Beside) -> float:
        for line in reversed(output.splitlines()):
            try:
                text = json.loads(line)
                value, n = float(text[OPERATIONS]), int(text["n"])
            except (ValueError, KeyError, TypeError):
                continue
            expect("matrices of", n, self._n)
            return value
        raise BadOutput(f"no {OPERATIONS} in its output")
