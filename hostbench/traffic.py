"""How many bytes this host's disks and network interfaces have moved since boot.

Every byte counts once: partitions, and devices that are made of others (dm, md), are left out, and
so are those that live in memory or in a file (ram, zram, loop), and bridges beside the hardware.
"""

import contextlib
from pathlib import Path

# Documentation/block/stat.rst: whatever the device's own sectors are, these have 512 bytes.
SECTOR_BYTES = 512
_READ_SECTORS, _WRITTEN_SECTORS = 2, 6
_NOT_DISKS = ("loop", "ram", "zram")
# proc_pid_net(5): bytes received and transmitted of an interface.
_RECEIVED, _TRANSMITTED = 0, 8
_LOOPBACK = "lo"


def disk_bytes(sys: Path) -> int | None:
    """Read and written together; None where the kernel does not tell. `sys` stands for /sys."""
    moved = [
        sectors * SECTOR_BYTES
        for disk in (sys / "block").glob("*")
        if _is_disk(disk) and (sectors := _sectors(disk)) is not None
    ]
    return sum(moved) if moved else None


def _is_disk(disk: Path) -> bool:
    made_of_others = any((disk / "slaves").glob("*"))
    return not made_of_others and disk.name.rstrip("0123456789") not in _NOT_DISKS


def _sectors(disk: Path) -> int | None:
    # A device may vanish while it is looked at.
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = (disk / "stat").read_text().split()
        return int(fields[_READ_SECTORS]) + int(fields[_WRITTEN_SECTORS])
    return None


def network_bytes(proc: Path, sys: Path) -> int | None:
    """Received and sent together, by the interfaces of hardware; where there are none, as in a
    container, by all but the loopback. None where the kernel does not tell."""
    moved = _interfaces(proc)
    hardware = [name for name in moved if (sys / "class/net" / name / "device").exists()]
    return sum(moved[name] for name in hardware or moved) if moved else None


def _interfaces(proc: Path) -> dict[str, int]:
    moved = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (proc / "net/dev").read_text().splitlines()[2:]:
            # A name may hold a colon; the numbers may follow the last one without a space.
            name, _, rest = line.rpartition(":")
            fields = rest.split()
            if name.strip() != _LOOPBACK:
                moved[name.strip()] = int(fields[_RECEIVED]) + int(fields[_TRANSMITTED])
    return moved
