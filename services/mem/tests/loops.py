"""What the loops of a bandwidth kernel do to memory, read from its machine code."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.machine_code import Instruction

# Bytes that a register of each kind holds, by how objdump writes it.
X86_BYTES = {"%zmm": 64, "%ymm": 32, "%xmm": 16, "%r": 8}
SCALAR_X86 = re.compile(r"^v?(mov|add|mul|fmadd\d+)sd$")
ARM_BYTES = {"q": 16, "d": 8, "x": 8}
MEMORY = {"x86_64": re.compile(r"\([^)]*\)"), "aarch64": re.compile(r"\[[^]]*\]")}
CALLS = {"call", "callq", "bl", "blr"}
BRANCHES = {"x86_64": re.compile(r"^j"), "aarch64": re.compile(r"^(b\.|b$|cbn?z|tbn?z)")}


@dataclass
class Traffic:
    """Of one iteration of an innermost loop: bytes moved, by which instructions and registers."""

    body: list[Instruction]
    loaded: int = 0
    stored: int = 0
    stores: Counter[str] = field(default_factory=Counter)
    registers: set[str] = field(default_factory=set)

    @property
    def step(self) -> int:
        """What the loop's counter grows by."""
        for instruction in reversed(self.body):
            if found := re.match(r"^\$0x([0-9a-f]+),%r", instruction.operands):
                return int(found[1], 16)
            if instruction.mnemonic == "sub" and "$0x" in instruction.operands:
                return int(instruction.operands.partition("$0x")[2].partition(",")[0], 16)
            if found := re.match(r"^x\d+, x\d+, #0x([0-9a-f]+)$", instruction.operands):
                return int(found[1], 16)
        raise AssertionError("the loop's counter stands still")


def innermost_loops(body: list[Instruction], machine: str) -> Iterator[list[Instruction]]:
    """Every backward branch's loop that holds no other one."""
    spans = []
    for end, instruction in enumerate(body):
        target = re.search(r"\b([0-9a-f]+) <", instruction.operands)
        if not target or not BRANCHES[machine].match(instruction.mnemonic):
            continue
        starts = [i for i, one in enumerate(body[:end]) if one.address == int(target[1], 16)]
        spans += [(start, end) for start in starts]
    for start, end in spans:
        if not any(start <= s and e <= end and (s, e) != (start, end) for s, e in spans):
            yield body[start : end + 1]


def traffic(loop: list[Instruction], machine: str) -> Traffic:
    """What one iteration moves; address arithmetic and prefetches move nothing."""
    found = Traffic(loop)
    count = _count_x86 if machine == "x86_64" else _count_arm
    for instruction in loop:
        if MEMORY[machine].search(instruction.operands):
            count(found, instruction)
    return found


def _count_x86(found: Traffic, instruction: Instruction) -> None:
    if instruction.mnemonic.startswith(("lea", "prefetch", "nop", "data16", "cs")):
        return
    outside = MEMORY["x86_64"].sub("", instruction.operands)
    register = next((one for one in X86_BYTES if re.search(rf"{one}\w+\b", outside)), "")
    # Parts of registers belong to what is left over behind whole elements.
    size = 8 if SCALAR_X86.match(instruction.mnemonic) else X86_BYTES.get(register, 1)
    found.registers.add(register)
    if instruction.operands.endswith(")"):
        assert "mov" in instruction.mnemonic, "memory is changed in place"
        found.stored += size
        found.stores[instruction.mnemonic] += 1
    else:
        found.loaded += size


def _count_arm(found: Traffic, instruction: Instruction) -> None:
    if instruction.mnemonic.startswith("prfm"):
        return
    registers = re.findall(r"\b([qdxw])\d+", instruction.operands.partition("[")[0])
    size = sum(ARM_BYTES.get(register, 1) for register in registers)
    found.registers.update(registers)
    if instruction.mnemonic.startswith("st"):
        found.stored += size
        found.stores[instruction.mnemonic] += 1
    else:
        found.loaded += size
