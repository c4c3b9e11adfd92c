"""A kernel that computes wrongly is an error, never a figure.

One instruction of a kernel's loop is overwritten with no-operations in a copy of the real program:
what a broken CPU, build or kernel would look like.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from services.cpu.tests.disassembly import ROOT, functions, loop
from services.cpu.tests.kernels import X86_KERNELS, Kernel

EXIT_WRONG = 5
NOP = b"\x90"
PROGRAM = ROOT / "build" / "release" / "cpu-bench"


def file_offset(address: int) -> int:
    """Where a virtual address of the program lies in its file."""
    headers = subprocess.run(
        ["readelf", "-lW", PROGRAM], check=True, capture_output=True, text=True
    ).stdout
    for line in headers.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            offset, start, size = (int(words[i], 16) for i in (1, 2, 4))
            if start <= address < start + size:
                return offset + address - start
    raise AssertionError(f"{address:#x} is in no segment")


def plant(kernel: Kernel, which: int, copy: Path) -> None:
    """Copies the program with one instruction of a kernel's loop taken out."""
    victim = loop(functions("release")[f"{kernel.name}_loop"])[which]
    code = bytearray(PROGRAM.read_bytes())
    at = file_offset(victim.address)
    assert code[at : at + len(victim.code)] == victim.code
    code[at : at + len(victim.code)] = NOP * len(victim.code)
    copy.write_bytes(code)
    shutil.copymode(PROGRAM, copy)


@pytest.mark.parametrize("kernel", X86_KERNELS, ids=lambda kernel: f"{kernel.dtype}:{kernel.name}")
def test_missing_instruction_exits_5(kernel: Kernel, tmp_path: Path) -> None:
    arguments = [*kernel.arguments, "--threads=1", "--work=1", "--warmup-s=0"]
    healthy = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if healthy.returncode == 4:
        pytest.skip(f"not on this CPU: {healthy.stderr.strip()}")
    assert healthy.returncode == 0, healthy.stderr
    broken = tmp_path / "cpu-bench"
    instructions = sum(kernel.instructions.values())
    # The first, some in between that are of every kind and on many accumulators, the last.
    victims = {0, 1, 2, 3, 4, 5, instructions // 2, instructions - 5, instructions - 1}
    if (kernel.workload, kernel.isa) == ("compare", "scalar") and not kernel.on_general_registers:
        victims = {0, 1, 2}  # a comparison that is false in the only lane adds nothing
    for which in sorted(victims):
        plant(kernel, which, broken)
        result = subprocess.run([broken, *arguments], capture_output=True, text=True)
        assert result.returncode == EXIT_WRONG, f"instruction {which} is not missed"
        last = json.loads(result.stdout.splitlines()[-1])
        assert (last["event"], last["code"]) == ("error", "wrong_result")
        assert kernel.dtype in last["message"]
        assert kernel.isa in last["message"]
        assert len(result.stderr.splitlines()) == 1
