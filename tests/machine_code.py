"""Reads the kernels of the programs back from their machine code, and breaks them on purpose."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
OBJDUMP = {"aarch64": "aarch64-linux-gnu-objdump"}
# `{vex}` says which encoding the code bytes are; the instruction follows it.
NOP = b"\x90"
LINE = re.compile(
    r"^\s*([0-9a-f]+):\s+((?:[0-9a-f]{2,8} )+)\s*(?:\{vex\} )?(\S+)\s*(.*?)\s*(?:\s(?:# |//).*)?$"
)


@dataclass(frozen=True)
class Instruction:
    address: int
    code: bytes
    mnemonic: str
    operands: str


@cache
def functions(variant: str, program: str) -> dict[str, list[Instruction]]:
    """The functions of build/VARIANT/PROGRAM by symbol."""
    text = subprocess.run(
        [
            OBJDUMP.get(variant, "objdump"),
            "-d",
            "--insn-width=16",
            ROOT / "build" / variant / program,
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: dict[str, list[Instruction]] = {}
    body: list[Instruction] = []
    for line in text.splitlines():
        if symbol := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            body = found.setdefault(symbol[1], [])
        elif match := LINE.match(line):
            code = bytes.fromhex(match[2].replace(" ", ""))
            body.append(Instruction(int(match[1], 16), code, match[3], match[4]))
    return found


def loop(body: list[Instruction]) -> list[Instruction]:
    """The instructions of a function's one backward branch, from its target to itself."""
    loops = []
    for end, instruction in enumerate(body):
        branch = re.match(r"^([0-9a-f]+) <", instruction.operands)
        if not branch or instruction.mnemonic in ("call", "callq", "bl"):
            continue
        target = int(branch[1], 16)
        starts = [i for i, other in enumerate(body[:end]) if other.address == target]
        if starts:
            loops.append(body[starts[0] : end + 1])
    assert len(loops) == 1, f"expected one loop, found {len(loops)}"
    return loops[0]


def without(victims: Iterable[Instruction], program: Path, copy: Path) -> None:
    """Copy an x86-64 program with some instructions overwritten by no-operations: what a broken
    CPU, build or kernel would look like."""
    code = bytearray(program.read_bytes())
    for victim in victims:
        at = _file_offset(program, victim.address)
        assert code[at : at + len(victim.code)] == victim.code
        code[at : at + len(victim.code)] = NOP * len(victim.code)
    copy.write_bytes(code)
    shutil.copymode(program, copy)


def _file_offset(program: Path, address: int) -> int:
    """Where a virtual address of the program lies in its file."""
    for offset, start, size in _segments(program):
        if start <= address < start + size:
            return offset + address - start
    raise AssertionError(f"{address:#x} is in no segment")


@cache
def _segments(program: Path) -> list[tuple[int, int, int]]:
    """Offset, virtual address and size in the file of what is loaded."""
    headers = subprocess.run(
        ["readelf", "-lW", program], check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split() for line in headers.splitlines() if line.split()[:1] == ["LOAD"]]
    return [(int(row[1], 16), int(row[2], 16), int(row[4], 16)) for row in rows]
