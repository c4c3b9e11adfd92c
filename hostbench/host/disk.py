"""Where this host's disk workloads have their files, and the user's ratings of that disk, for the
inventory. What cannot be read is None, never an error."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.files import read_number, read_text
from hostbench.base.rating import Rating
from hostbench.host import pcie
from hostbench.host.scratch import (
    MEMORY_FILE_SYSTEMS,
    MOUNTS,
    Mount,
    mount_of,
    nearest,
    parse_mounts,
    scratch_directory,
)
from hostbench.model.host import BlockDevice, Disk, ScratchPlace, Virtualisation

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
# Files that container runtimes bind into every container from files of their own. These lie on the
# same file system as the container's layers, unless the operator has moved them.
RUNTIME_FILES = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
# The beginning of the text for a guessed device, which gives no limit.
INFERRED = "inferred: "


@dataclass(frozen=True)
class _Found:
    """The device and how it was found, or why it is unknown."""

    device: BlockDevice | None = None
    source: str | None = None
    reason: str | None = None


def scratch_place(root: Path, virtualisation: Virtualisation) -> ScratchPlace:
    """Return the scratch directory of this process. The kernel's files are read below `root`.

    Raise UsageError when a rating of the disk makes no sense.
    """
    directory = scratch_directory()
    # The directory is only created for a measurement; it will lie on the same file system.
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
        user_bytes_per_second=BANDWIDTH.value(),
        user_operations_per_second=OPERATIONS.value(),
    )


def _space(place: Path) -> tuple[int | None, int | None]:
    """Return the size of the file system, and how much unprivileged users may still write there."""
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
    """Return MAJ:MIN and how it was found, or None and why it was not."""
    if os.major(st_dev):
        return f"{os.major(st_dev)}:{os.minor(st_dev)}", "st_dev"
    # An anonymous device: the file system has no block device, has several, or lies over another
    # one.
    if mount is None:
        return None, f"its mount is not listed in {MOUNTS}"
    if mount.kind in MEMORY_FILE_SYSTEMS:
        return None, f"{mount.kind} is memory"
    if mount.source.startswith("/dev/"):
        return _mounted_from(root, mount)
    if mount.kind == "overlay":
        return _below_overlay(mounts)
    return None, f"{mount.kind} does not show which disk it lies on"


def _mounted_from(root: Path, mount: Mount) -> tuple[str | None, str]:
    """Return the one device that a mount names, which may be one of several."""
    number = device_number(root, mount.source.removeprefix("/dev/"))
    source = f"{mount.kind} is mounted from {mount.source}"
    if mount.kind != "btrfs" or number is None:
        return number, f"{INFERRED}{source}"
    several = _btrfs_devices(root, number)
    if len(several) > 1:
        return None, f"btrfs spreads over {len(several)} devices ({', '.join(several)})"
    return number, source if several else f"{INFERRED}{source}"


def _btrfs_devices(root: Path, number: str) -> list[str]:
    """Return the names of all devices of the btrfs with this device; empty if sysfs does not list
    them."""
    for devices in (root / "sys/fs/btrfs").glob("*/devices"):
        found = {one.name: read_text(one / "dev") for one in devices.glob("*")}
        if number in found.values():
            return sorted(found)
    return []


def _below_overlay(mounts: Sequence[Mount]) -> tuple[str | None, str]:
    """Return the disk below a container's own layer, which does not show it, from the files that
    the container's runtime binds into it."""
    for mount in mounts:
        if mount.point in RUNTIME_FILES and not mount.device.startswith("0:"):
            return mount.device, f"{INFERRED}where the runtime of this container has {mount.point}"
    return None, "overlay does not show which disk it lies on"


# Far more than anybody stacks: encryption on LVM on RAID has three.
STACKED_MOST = 8
# Drivers without a bus: the device's name shows them.
_NAMES = {
    "loop": "loop",
    "zram": "memory",
    "ram": "memory",
    "pmem": "pmem",
    "nbd": "nbd",
    "rbd": "rbd",
    "drbd": "drbd",
    "mmcblk": "mmc",
    "nvme": "nvme",
}
# Buses: a directory on the device's path in sysfs shows them; the first match counts.
_BUSES = (
    (r"virtio\d+", "virtio"),
    (r"usb\d+", "usb"),
    (r"end_device-.*", "sas"),
    (r"ata\d+", "sata"),
    (r"vbd-\d+", "xen"),
    (r"VMBUS:.*", "hyperv"),
    (r"mmc\d+", "mmc"),
    (r"host\d+", "scsi"),
)
# Serial ATA uses 8b/10b coding.
_SATA_SHARE = 8 / 10
GUEST = "this is a virtual machine, and the link that it sees may not be real"


@dataclass(frozen=True)
class _Link:
    """How a disk is attached; see Disk."""

    transport: str | None
    bytes_per_second: float | None = None
    duplex: bool = False
    source: str | None = None
    reason: str | None = None


def block_device(root: Path, number: str, virtualisation: Virtualisation) -> BlockDevice | None:
    """Return the device MAJ:MIN of the host whose files are below `root`, or None if sysfs does not
    have it."""
    path = (root / "sys/dev/block" / number).resolve()
    if not path.is_dir():
        return None
    disks = dict.fromkeys(_disks(path, STACKED_MOST))
    return BlockDevice(
        number=number,
        name=path.name,
        disks=tuple(_disk(disk, virtualisation) for disk in disks),
    )


def device_number(root: Path, name: str) -> str | None:
    """Return MAJ:MIN of a device by its name in /dev, such as `vda1` or `mapper/root`."""
    blocks = root / "sys/class/block"
    if name.startswith("mapper/"):
        wanted = name.removeprefix("mapper/")
        named = (one for one in blocks.glob("dm-*") if read_text(one / "dm/name") == wanted)
        found = next(named, None)
        return None if found is None else read_text(found / "dev")
    return read_text(blocks / name / "dev") if re.fullmatch(r"[\w!.-]+", name) else None


def _disks(path: Path, depth: int) -> list[Path]:
    """Return the whole disks that a device consists of, in order: the disk of a partition, and
    those below LVM, encryption and RAID."""
    if (path / "partition").exists():
        path = path.parent
    below = sorted((path / "slaves").glob("*")) if depth else []
    if not below:
        return [path]
    return [disk for one in below for disk in _disks(one.resolve(), depth - 1)]


def _disk(path: Path, virtualisation: Virtualisation) -> Disk:
    rotational = read_number(path / "queue/rotational")
    link = _link(path, virtualisation)
    return Disk(
        name=path.name,
        model=read_text(path / "device/model"),
        transport=link.transport,
        rotational=None if rotational is None else rotational == 1,
        link_bytes_per_second=link.bytes_per_second,
        link_duplex=link.duplex,
        link_source=link.source,
        link_reason=link.reason,
    )


def _link(path: Path, virtualisation: Virtualisation) -> _Link:
    transport = _transport(path)
    if transport not in ("nvme", "sata"):
        what = "how it is attached is unknown" if transport is None else f"it is {transport}"
        return _Link(transport, reason=f"{path.name}: {what}, which has no link that is known")
    found = _sata(path) if transport == "sata" else _nvme(path)
    if found.bytes_per_second is not None and virtualisation.is_guest:
        return _Link(found.transport, reason=f"{path.name}: {GUEST}")
    return found


def _transport(path: Path) -> str | None:
    kind = re.match(r"[a-z]+", path.name)
    if kind and kind[0] in _NAMES:
        return _NAMES[kind[0]]
    for pattern, transport in _BUSES:
        if any(re.fullmatch(pattern, part) for part in path.parts):
            return transport
    return None


def _sata(path: Path) -> _Link:
    """Return the link by the speed that the port has negotiated: sysfs-ata of the kernel's ABI."""
    port = next(one for one in path.parents if re.fullmatch(r"ata\d+", one.name))
    texts = [read_text(one) or "" for one in port.glob("link*/ata_link/link*/sata_spd")]
    speeds = [float(match[1]) for text in texts if (match := re.match(r"([\d.]+) Gbps", text))]
    if not speeds:
        return _Link("sata", reason=f"{path.name}: the port does not report its speed (sata_spd)")
    # Behind a port multiplier there are several links; the port's own is the fastest.
    speed = max(speeds)
    return _Link(
        "sata",
        bytes_per_second=speed * 1e9 * _SATA_SHARE / 8,
        source=f"{path.name}: SATA {speed:g} Gbit/s (sata_spd), 8b/10b",
    )


def _nvme(path: Path) -> _Link:
    """Return the sum of the PCI Express links of all controllers: a disk may have several paths."""
    device = (path / "device").resolve()
    controllers = [
        one for one in (device, *sorted(device.glob("nvme*"))) if (one / "transport").exists()
    ]
    ways = {read_text(one / "transport") or "" for one in controllers}
    if ways - {"pcie"}:
        way = ", ".join(sorted(ways - {"pcie"}))
        return _Link(f"nvme-{way}", reason=f"{path.name}: it is reached over {way}, not PCIe")
    links = [_pcie((one / "device").resolve()) for one in controllers]
    known = [link for link in links if link is not None]
    if not known or len(known) < len(links):
        files = "current_link_speed, current_link_width"
        return _Link("nvme", reason=f"{path.name}: its PCIe link is unknown ({files})")
    return _Link(
        "nvme",
        bytes_per_second=sum(value for value, _ in known),
        duplex=True,
        source=f"{path.name}: " + " + ".join(source for _, source in known),
    )


def _pcie(device: Path) -> tuple[float, str] | None:
    """Return what the link of a PCI device carries in one direction, in byte/s and in words."""
    found = pcie.speed_and_width(device)
    if found is None:
        return None
    transfers, width = found
    words = f"PCIe {transfers:g} GT/s x{width}, {pcie.coding(transfers)}"
    return pcie.bytes_per_second(transfers, width), words
