"""A kernel that computes wrongly is an error, never a figure.

One instruction of a kernel's loop is taken out of a copy of the real program.
"""

import json
import subprocess
from pathlib import Path

import pytest

from services.cpu.tests.kernels import X86_KERNELS, Kernel
from tests.machine_code import ROOT, functions, loop, without

EXIT_WRONG = 5
PROGRAM = ROOT / "build" / "release" / "cpu-bench"


@pytest.mark.parametrize("kernel", X86_KERNELS, ids=lambda kernel: f"{kernel.dtype}:{kernel.name}")
def test_missing_instruction_exits_5(kernel: Kernel, tmp_path: Path) -> None:
    arguments = [*kernel.arguments, "--threads=1", "--work=1", "--warmup-s=0"]
    healthy = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if healthy.returncode == 4:
        pytest.skip(f"not on this CPU: {healthy.stderr.strip()}")
    assert healthy.returncode == 0, healthy.stderr
    broken = tmp_path / "cpu-bench"
    body = loop(functions("release", PROGRAM.name)[f"{kernel.name}_loop"])
    instructions = sum(kernel.instructions.values())
    # The first, some in between that are of every kind and on many accumulators, the last.
    victims = {0, 1, 2, 3, 4, 5, instructions // 2, instructions - 5, instructions - 1}
    if (kernel.workload, kernel.isa) == ("compare", "scalar") and not kernel.on_general_registers:
        victims = {0, 1, 2}  # a comparison that is false in the only lane adds nothing
    for which in sorted(victims):
        without([body[which]], PROGRAM, broken)
        result = subprocess.run([broken, *arguments], capture_output=True, text=True)
        assert result.returncode == EXIT_WRONG, f"instruction {which} is not missed"
        last = json.loads(result.stdout.splitlines()[-1])
        assert (last["event"], last["code"]) == ("error", "wrong_result")
        assert kernel.dtype in last["message"]
        assert kernel.isa in last["message"]
        assert len(result.stderr.splitlines()) == 1
