"""Reads the kernels of cpu-bench back from its machine code."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
OBJDUMP = {"aarch64": "aarch64-linux-gnu-objdump"}
# `{vex}` says which encoding the code bytes are; the instruction follows it.
LINE = re.compile(
    r"^\s*([0-9a-f]+):\s+((?:[0-9a-f]{2,8} )+)\s*(?:\{vex\} )?(\S+)\s*(.*?)\s*(?:[#/].*)?$"
)


@dataclass(frozen=True)
class Instruction:
    address: int
    code: bytes
    mnemonic: str
    operands: str


@cache
def functions(variant: str) -> dict[str, list[Instruction]]:
    """The functions of build/VARIANT/cpu-bench by symbol."""
    program = ROOT / "build" / variant / "cpu-bench"
    text = subprocess.run(
        [OBJDUMP.get(variant, "objdump"), "-d", "--insn-width=16", program],
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
