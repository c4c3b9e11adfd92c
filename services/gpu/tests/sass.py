"""What the tests read in the machine code of GPU kernels: nvdisasm's listing of a CUBIN."""

import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BUILD = Path(__file__).parents[3] / "build" / "gpu"


@dataclass(frozen=True)
class Instruction:
    """One instruction."""

    address: int
    opcode: str  # "HFMA2.BF16_V2"
    operands: str  # "R8, R0.reuse, R5.reuse, R8"
    target: int | None  # address that a branch goes to

    @property
    def reuses(self) -> int:
        """How many operands the next instruction finds in the reuse cache."""
        return self.operands.count(".reuse")


@dataclass(frozen=True)
class Kernel:
    """A kernel's instructions in order."""

    instructions: tuple[Instruction, ...]

    @property
    def loops(self) -> list[tuple[Instruction, ...]]:
        """Every loop that has no other inside: from a branch's target to the branch."""
        loops = []
        for branch in self.instructions:
            if branch.target is None or branch.target > branch.address:
                continue
            body = [i for i in self.instructions if branch.target <= i.address <= branch.address]
            back = [i for i in body if i.target is not None and i.target <= i.address]
            if back == [branch]:
                loops.append(tuple(body))
        return loops

    @property
    def loop(self) -> tuple[Instruction, ...]:
        """The longest of them."""
        return max(self.loops, key=len)

    def count(self, *prefixes: str) -> int:
        """How many instructions begin with one of these."""
        return sum(i.opcode.startswith(prefixes) for i in self.instructions)


def bank_reads(loop: tuple[Instruction, ...], words: int = 1) -> tuple[int, int]:
    """Reads of the register file's two banks, even and odd registers, in one turn of a loop.

    An operand that the instruction before left in the reuse cache, in the same place, is not read.
    Operands of two words take one of each bank.
    """
    reads = [0, 0]
    kept: dict[int, str] = {}
    for instruction in loop:
        operands = [part.strip() for part in instruction.operands.split(",")][1:]
        left = dict(kept)
        kept = {}
        for place, operand in enumerate(operands):
            match = re.search(r"\bR(\d+)", operand)
            if not match:
                continue
            if left.get(place) != match[0]:
                for word in range(words):
                    reads[(int(match[1]) + word) % 2] += 1
            if ".reuse" in operand:
                kept[place] = match[0]
    return reads[0], reads[1]


def nvdisasm() -> str | None:
    """The disassembler: from its wheel, else from the path; None: there is none."""
    for directory in sys.path:
        found = Path(directory) / "nvidia" / "cu13" / "bin" / "nvdisasm"
        if found.is_file():
            return str(found)
    return shutil.which("nvdisasm")


def cubin(arch: str, name: str = "shared") -> Path:
    """The file of an architecture; AssertionError when the programs were not built."""
    path = BUILD / f"{name}_{arch}.cubin"
    assert path.exists(), f"{path} is missing: make programs builds it"
    return path


@cache
def kernels(arch: str, name: str = "shared") -> dict[str, Kernel]:
    """Every kernel of a CUBIN, disassembled."""
    program = nvdisasm()
    assert program is not None
    listing = subprocess.run(
        [program, "-c", cubin(arch, name)], check=True, capture_output=True, text=True
    ).stdout
    parts = re.split(r"^\.text\.(\w+):$", listing, flags=re.MULTILINE)
    return {
        kernel: Kernel(tuple(_instructions(text)))
        for kernel, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def _instructions(text: str) -> list[Instruction]:
    labels: dict[str, int] = {}
    waiting: list[str] = []
    found: list[tuple[int, str, str]] = []
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            waiting.append(label[1])
        elif match := re.match(r"\s+/\*([0-9a-f]+)\*/\s+(?:@\S+\s+)?([A-Z0-9_.x]+)\s*(.*?);", line):
            address = int(match[1], 16)
            labels.update(dict.fromkeys(waiting, address))
            waiting.clear()
            found.append((address, match[2], match[3].strip()))
    return [
        Instruction(address, opcode, operands, labels.get(_label(opcode, operands)))
        for address, opcode, operands in found
    ]


def _label(opcode: str, operands: str) -> str:
    match = re.search(r"`\((\.L_x_\d+)\)", operands)
    return match[1] if match and opcode.startswith("BRA") else ""


def sections(path: Path) -> dict[str, bytes]:
    """The machine code of each kernel, 16 bytes an instruction."""
    code = path.read_bytes()
    (headers,) = struct.unpack_from("<Q", code, 40)
    size, count, names_index = struct.unpack_from("<HHH", code, 58)
    rows = [struct.unpack_from("<I20xQQ", code, headers + n * size) for n in range(count)]
    names = rows[names_index][1]
    found = {}
    for name_at, offset, length in rows:
        start = names + name_at
        name = code[start : code.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[name.removeprefix(".text.")] = code[offset : offset + length]
    return found


def opcode_bits(code: bytes, address: int) -> int:
    """The 12 bits that say, from 7.0 on, what an instruction is."""
    (word,) = struct.unpack_from("<Q", code, address)
    return int(word) & 0xFFF


def old_counts(arch: str, like: str) -> dict[str, Counter[str]]:
    """Opcodes of each kernel of an architecture that nvdisasm no longer knows.

    By the bits that a later one of the same encoding has for them; "?" where it has none such.
    """
    words: dict[int, str] = {}
    for name, code in sections(cubin(like)).items():
        for instruction in kernels(like)[name].instructions:
            bits = opcode_bits(code, instruction.address)
            words[bits] = instruction.opcode.split(".")[0]
    return {
        name: Counter(words.get(opcode_bits(code, at), "?") for at in range(0, len(code), 16))
        for name, code in sections(cubin(arch)).items()
    }
