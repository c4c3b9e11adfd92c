"""Tables of SMBIOS made byte by byte, as in DSP0134, for machines we do not have."""

import struct
from pathlib import Path
from typing import Any

TABLE = "sys/firmware/dmi/tables/DMI"
ARRAY_HANDLE = 0x1000


def structure(kind: int, handle: int, body: bytes, *strings: str) -> bytes:
    """A structure with its header and its strings, which two zeros end."""
    header = struct.pack("<BBH", kind, 4 + len(body), handle)
    words = b"".join(string.encode("latin-1") + b"\0" for string in strings)
    return header + body + (words or b"\0") + b"\0"


def array(handle: int = ARRAY_HANDLE, use: int = 3) -> bytes:
    """Type 16: a physical memory array; use 3 is system memory."""
    body = struct.pack("<BBBIHHQ", 3, use, 6, 0x80000000, 0xFFFE, 16, 0)
    return structure(16, handle, body)


def device(
    locator: str,
    bank: str = "",
    megabytes: int = 32768,
    configured: int = 4800,
    *,
    width: int = 64,
    rated: int = 5600,
    kind: int = 0x22,
    array_handle: int = ARRAY_HANDLE,
    handle: int = 0x1100,
    length: int = 0x5C,
) -> bytes:
    """Type 17 of SMBIOS 3.3: a memory device of DDR5, cut to `length` bytes for older forms.

    A size of 32 GiB - 1 MiB and more stands in the extended field, a speed of 65535 and more too.
    """
    body = bytearray(0x5C - 4)

    def put(form: str, offset: int, *values: Any) -> None:
        struct.pack_into(form, body, offset - 4, *values)

    size = megabytes if megabytes < 0x7FFF else 0x7FFF
    speed = configured if configured < 0xFFFF else 0xFFFF
    names = [name for name in (locator, bank) if name]
    total = width if width in (0, 0xFFFF) else width + 16
    put("<HHHHH", 0x04, array_handle, 0xFFFE, total, width, size)
    put("<BBBBBH", 0x0E, 9, 0, 1 if locator else 0, len(names) if bank else 0, kind, 0x80)
    put("<H", 0x15, rated)
    put("<I", 0x1C, megabytes)
    put("<H", 0x20, speed)
    put("<I", 0x58, configured if speed == 0xFFFF else 0)
    return structure(17, handle, bytes(body[: length - 4]), *names)


def table(*structures: bytes) -> bytes:
    """With a BIOS structure before and the end after, as every real table has them."""
    bios = structure(0, 0, bytes(20), "A maker", "1.0")
    return b"".join((bios, array(), *structures, structure(127, 0xFEFF, b"")))


def supermicro_12_channels() -> bytes:
    """One socket with twelve channels, two DIMMs in front of each; every second one is empty."""
    return table(
        *(
            device(f"P1-DIMM{letter}{slot}", f"P0_Node0_Channel{index}_Dimm{slot - 1}",
                   32768 if slot == 1 else 0, 4800 if slot == 1 else 0)
            for index, letter in enumerate("ABCDEFGHIJKL")
            for slot in (1, 2)
        )
    )  # fmt: skip


def eight_channels_full() -> bytes:
    """One socket with eight channels, two DIMMs in front of each, which slows them down."""
    return table(
        *(
            device(f"DIMM {slot}", f"P0 CHANNEL {letter}", 65536, 2933, rated=3200)
            for letter in "ABCDEFGH"
            for slot in (0, 1)
        )
    )


def qemu() -> bytes:
    """What QEMU makes up (hw/smbios/smbios.c): no width, no speed."""
    return table(device("DIMM 0", "", 16384, 0, width=0xFFFF, rated=0, kind=7, length=0x28))


def written(root: Path, content: bytes) -> Path:
    """A root directory whose host has this table."""
    path = root / TABLE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return root
