"""A kernel that computes wrongly is an error, never a figure.

One instruction of a kernel's loop is taken out of a copy of the real program.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cpu.tests.kernels import Kernel, x86_kernels_of_this_cpu
from tests.each import each
from tests.machine_code import ROOT, functions, loop, without

EXIT_WRONG = 5
PROGRAM = ROOT / "build" / "release" / "cpu-bench"


def misses_no_instruction(
    kernel: Kernel, positions: Callable[[int], set[int]], folder: Path
) -> None:
    """Without the instruction at each of these positions of the loop, the program says that its
    result is wrong. `positions` has the number of the loop's instructions."""
    arguments = [*kernel.arguments, "--threads=1", "--work=1", "--warmup-s=0"]
    healthy = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if healthy.returncode == 4:
        pytest.skip(f"not on this CPU: {healthy.stderr.strip()}")
    assert healthy.returncode == 0, healthy.stderr
    broken = folder / "cpu-bench"
    body = loop(functions("release", PROGRAM.name)[f"{kernel.name}_loop"])
    for which in sorted(positions(sum(kernel.instructions.values()))):
        without([body[which]], PROGRAM, broken)
        result = subprocess.run([broken, *arguments], capture_output=True, text=True)
        assert result.returncode == EXIT_WRONG, f"instruction {which} is not missed"
        last = json.loads(result.stdout.splitlines()[-1])
        assert (last["event"], last["code"]) == ("error", "wrong_result")
        assert kernel.dtype in last["message"]
        assert kernel.isa in last["message"]
        assert len(result.stderr.splitlines()) == 1


@each("kernel", x86_kernels_of_this_cpu(), lambda kernel: f"{kernel.dtype}:{kernel.name}")
def test_one_missing_instruction_exits_5(kernel: Kernel, tmp_path: Path) -> None:
    misses_no_instruction(kernel, lambda instructions: {1}, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@each("kernel", x86_kernels_of_this_cpu(), lambda kernel: f"{kernel.dtype}:{kernel.name}")
def test_missing_instruction_exits_5(kernel: Kernel, tmp_path: Path) -> None:
    """The first, some in between that are of every kind and on many accumulators, the last."""

    def positions(instructions: int) -> set[int]:
        if (kernel.workload, kernel.isa, kernel.on_general_registers) == (
            "compare",
            "scalar",
            False,
        ):
            return {0, 1, 2}  # a comparison that is false in the only lane adds nothing
        return {0, 1, 2, 3, 4, 5, instructions // 2, instructions - 5, instructions - 1}

    misses_no_instruction(kernel, positions, tmp_path)
