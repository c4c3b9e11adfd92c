"""Memory devices in the tables of SMBIOS (DSP0134), types 16 and 17. Pure functions: bytes in,
devices out.

What a table does not state is None. A table that violates the standard raises SmbiosError.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER_BYTES = 4
ARRAY, DEVICE, END = 16, 17, 127
SYSTEM_MEMORY = 3
# Memory types that are not DRAM: EEPROM, flash, ROM and the like, logical non-volatile.
NO_DRAM = {8, 9, 10, 11, 12, 31}
_UNKNOWN_WORD, _IN_EXTENDED = 0xFFFF, 0x7FFF
_UNKNOWN_NAMES = {"", "not specified", "unknown", "to be filled by o.e.m."}


class SmbiosError(Exception):
    """The table is damaged; the message says where, in one line."""


@dataclass(frozen=True)
class Structure:
    """One structure. `data` begins with its header; `strings` are counted from 1."""

    kind: int
    handle: int
    data: bytes
    strings: tuple[str, ...]

    def byte(self, offset: int) -> int | None:
        """Return the byte at `offset`, or None if the structure is of an older, shorter form."""
        return self._number("<B", offset)

    def word(self, offset: int) -> int | None:
        """Return two bytes at `offset`, or None."""
        return self._number("<H", offset)

    def double_word(self, offset: int) -> int | None:
        """Return four bytes at `offset`, or None."""
        return self._number("<I", offset)

    def string(self, offset: int) -> str:
        """Return the string with the number at `offset`; empty when there is none."""
        index = self.byte(offset) or 0
        return self.strings[index - 1] if 0 < index <= len(self.strings) else ""

    def _number(self, form: str, offset: int) -> int | None:
        if offset + struct.calcsize(form) > len(self.data):
            return None
        value: int = struct.unpack_from(form, self.data, offset)[0]
        return value


@dataclass(frozen=True)
class MemoryDevice:
    """A socket for memory, or soldered memory; `size_bytes` 0: it is empty.

    `width_bits` is its data width, without error correction. `transfers_per_second` is what the
    firmware has configured, not its rating.
    """

    locator: str
    bank: str
    size_bytes: int | None
    width_bits: int | None
    transfers_per_second: float | None

    @property
    def is_populated(self) -> bool:
        """Whether it holds memory."""
        return self.size_bytes != 0

    @property
    def name(self) -> str:
        """The board's name for it."""
        return " ".join(word for word in (self.locator, self.bank) if word) or "without a name"


def memory_devices(table: bytes) -> list[MemoryDevice]:
    """Return the devices of the system's memory. Raise SmbiosError."""
    found = list(structures(table))
    # Arrays of flash, video memory and the like, if the table declares them.
    others = {one.handle for one in found if one.kind == ARRAY and one.byte(0x05) != SYSTEM_MEMORY}
    return [
        _device(one)
        for one in found
        if one.kind == DEVICE and one.word(0x04) not in others and one.byte(0x12) not in NO_DRAM
    ]


def structures(table: bytes) -> Iterator[Structure]:
    """Yield the structures in order, up to the one that is marked as the last. Raise
    SmbiosError."""
    at = 0
    while at < len(table):
        header = table[at : at + HEADER_BYTES]
        if len(header) < HEADER_BYTES:
            raise SmbiosError(f"a header at byte {at} is cut off")
        kind, length, handle = struct.unpack("<BBH", header)
        if length < HEADER_BYTES or at + length > len(table):
            raise SmbiosError(f"the structure at byte {at} has an impossible length of {length}")
        strings, after = _strings(table, at + length)
        yield Structure(kind, handle, table[at : at + length], strings)
        if kind == END:
            return
        at = after


def _strings(table: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """Return the strings after a structure, and where the next structure begins. Two zeros end the
    strings."""
    end = table.find(b"\0\0", at)
    if end < 0:
        raise SmbiosError(f"the strings at byte {at} have no end")
    words = table[at:end].split(b"\0") if end > at else []
    return tuple(word.decode("latin-1").strip() for word in words), end + 2


def _device(one: Structure) -> MemoryDevice:
    return MemoryDevice(
        locator=_name(one.string(0x10)),
        bank=_name(one.string(0x11)),
        size_bytes=_size_bytes(one),
        width_bits=_known(one.word(0x0A)),
        transfers_per_second=_configured(one),
    )


def _name(text: str) -> str:
    return "" if text.lower() in _UNKNOWN_NAMES else text


def _known(value: int | None) -> int | None:
    return None if value in (None, 0, _UNKNOWN_WORD) else value


def _size_bytes(one: Structure) -> int | None:
    size = one.word(0x0C)
    if size is None or size == _UNKNOWN_WORD:
        return None
    if size == _IN_EXTENDED:
        extended = one.double_word(0x1C)
        return None if extended is None else (extended & 0x7FFFFFFF) << 20
    # The highest bit: the size is in KiB instead of MiB.
    return (size & 0x7FFF) << (10 if size & 0x8000 else 20)


def _configured(one: Structure) -> float | None:
    """Return transfers per second; the table has millions of them."""
    speed = one.word(0x20)
    if speed == _UNKNOWN_WORD:
        speed = (one.double_word(0x58) or 0) & 0x7FFFFFFF
    return speed * 1e6 if speed else None
