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


def plant(workload: str, dtype: str, isa: str, which: int, copy: Path) -> None:
    """Copies the program with one instruction of a kernel's loop taken out."""
    victim = loop(functions("release")[f"{workload}_{dtype}_{isa}_loop"])[which]
    code = bytearray(PROGRAM.read_bytes())
    at = file_offset(victim.address)
    assert code[at : at + len(victim.code)] == victim.code
    code[at : at + len(victim.code)] = NOP * len(victim.code)
    copy.write_bytes(code)
    shutil.copymode(PROGRAM, copy)


@pytest.mark.parametrize(
    ("workload", "dtype", "isa", "which"),
    [
        ("fma", "fp64", "scalar", 0),
        ("fma", "fp32", "avx2", 50),
        ("fma", "fp64", "avx512", 191),
        ("add_sub", "int64", "scalar", 7),
        ("add_sub", "int8", "sse2", 11),
        ("add_sub", "fp32", "avx2", 95),
        ("add_sub", "int16", "avx512", 100),
    ],
)
def test_missing_instruction_exits_5(
    workload: str, dtype: str, isa: str, which: int, tmp_path: Path
) -> None:
    broken = tmp_path / "cpu-bench"
    plant(workload, dtype, isa, which, broken)
    arguments = ["--dtype", dtype, "--isa", isa, "--duration-s", "0.05", "--warmup-s", "0.01"]
    healthy = subprocess.run([PROGRAM, workload, *arguments], capture_output=True, text=True)
    if healthy.returncode == 4:
        pytest.skip(f"this CPU lacks {isa}: {healthy.stderr.strip()}")
    assert healthy.returncode == 0, healthy.stderr
    result = subprocess.run([broken, workload, *arguments], capture_output=True, text=True)
    assert result.returncode == EXIT_WRONG
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["event"] == "error"
    assert last["code"] == "wrong_result"
    assert dtype in last["message"]
    assert isa in last["message"]
    assert len(result.stderr.splitlines()) == 1
