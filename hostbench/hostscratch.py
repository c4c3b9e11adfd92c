"""Where this host's disk workloads have their files, for the inventory, and what the user knows of
the disk there. What cannot be read is None, never an error.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hostbench.blockdevice import block_device, device_number
from hostbench.models.host import BlockDevice, ScratchPlace, Virtualisation
from hostbench.mounts import MOUNTS, Mount, mount_of, nearest, parse_mounts
from hostbench.rating import Rating
from hostbench.scratch import MEMORY_FILE_SYSTEMS, scratch_directory
from hostbench.smallfiles import read_text

BANDWIDTH = Rating(
    variable="HOSTBENCH_DISK_BANDWIDTH",
    what="a bandwidth",
    unit="byte/s",
    most=1e15,
    example="3.5e9, from the data sheet",
)
OPERATIONS = Rating(
    variable="HOSTBENCH_DISK_IOPS",
    what="a rate",
    unit="operation/s",
    most=1e12,
    example="500e3, from the data sheet",
)
# What container runtimes bind into every container from files of their own, which lie beside the
# container's layers on one file system, unless somebody has moved them apart.
RUNTIME_FILES = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
# How a device begins to be told that was guessed: it bounds nothing.
INFERRED = "inferred: "


@dataclass(frozen=True)
class _Found:
    """The device and how it was found, or why nobody knows."""

    device: BlockDevice | None = None
    source: str | None = None
    reason: str | None = None


def check_ratings() -> None:
    """Raises UsageError when a rating of the disk makes no sense."""
    BANDWIDTH.told()
    OPERATIONS.told()


def scratch_place(root: Path, virtualisation: Virtualisation) -> ScratchPlace:
    """The scratch directory of this process; the kernel's files are read below `root`.

    Raises UsageError, see check_ratings().
    """
    directory = scratch_directory()
    # It is only made when something is measured; it will lie on the same file system.
    place = nearest(directory).resolve()
    mounts = parse_mounts(read_text(root / MOUNTS.lstrip("/")) or "")
    mount = mount_of(mounts, place)
    size_bytes, free_bytes = _space(place)
    found = _device(root, place.stat().st_dev, mount, mounts, virtualisation)
    return ScratchPlace(
        directory=str(directory),
        file_system=mount.kind if mount is not None else None,
        size_bytes=size_bytes,
        free_bytes=free_bytes,
        device=found.device,
        device_source=found.source,
        device_reason=found.reason,
        user_bytes_per_second=BANDWIDTH.told(),
        user_operations_per_second=OPERATIONS.told(),
    )


def _space(place: Path) -> tuple[int | None, int | None]:
    """Size of the file system, and what users without rights may still write there."""
    try:
        space = os.statvfs(place)
    except OSError:
        return None, None
    return space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize


def _device(
    root: Path,
    st_dev: int,
    mount: Mount | None,
    mounts: Sequence[Mount],
    virtualisation: Virtualisation,
) -> _Found:
    number, source = _number(root, st_dev, mount, mounts)
    if number is None:
        return _Found(reason=source)
    device = block_device(root, number, virtualisation)
    if device is None:
        return _Found(reason=f"/sys/dev/block has no {number} ({source})")
    return _Found(device, source)


def _number(
    root: Path, st_dev: int, mount: Mount | None, mounts: Sequence[Mount]
) -> tuple[str | None, str]:
    """MAJ:MIN and how it was found, or None and why it was not."""
    if os.major(st_dev):
        return f"{os.major(st_dev)}:{os.minor(st_dev)}", "st_dev"
    # An anonymous device: the file system has no block device, several, or is laid over another.
    if mount is None:
        return None, f"its mount is not listed in {MOUNTS}"
    if mount.kind in MEMORY_FILE_SYSTEMS:
        return None, f"{mount.kind} is memory"
    if mount.source.startswith("/dev/"):
        return _mounted_from(root, mount)
    if mount.kind == "overlay":
        return _below_overlay(mounts)
    return None, f"{mount.kind} does not tell which disk it lies on"


def _mounted_from(root: Path, mount: Mount) -> tuple[str | None, str]:
    """The one device that a mount names, which may be one of several."""
    number = device_number(root, mount.source.removeprefix("/dev/"))
    source = f"{mount.kind} is mounted from {mount.source}"
    if mount.kind != "btrfs" or number is None:
        return number, f"{INFERRED}{source}"
    several = _btrfs_devices(root, number)
    if len(several) > 1:
        return None, f"btrfs spreads over {len(several)} devices ({', '.join(several)})"
    return number, source if several else f"{INFERRED}{source}"


def _btrfs_devices(root: Path, number: str) -> list[str]:
    """The names of all devices of the btrfs that has this one; none where sysfs does not tell."""
    for devices in (root / "sys/fs/btrfs").glob("*/devices"):
        found = {one.name: read_text(one / "dev") for one in devices.glob("*")}
        if number in found.values():
            return sorted(found)
    return []


def _below_overlay(mounts: Sequence[Mount]) -> tuple[str | None, str]:
    """A container's own layer does not tell its disk; what its runtime binds into it may."""
    for mount in mounts:
        if mount.point in RUNTIME_FILES and not mount.device.startswith("0:"):
            return mount.device, f"{INFERRED}where the runtime of this container has {mount.point}"
    return None, "overlay does not tell which disk it lies on"
