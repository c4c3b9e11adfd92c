"""What a file system lies on: the disks below a block device, how they are attached, and what
those links carry at most. From sysfs; what is not known stays unknown and says why.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from hostbench import pcie
from hostbench.memorychannels import is_guest
from hostbench.models.host import BlockDevice, Disk, Virtualisation
from hostbench.smallfiles import read_number, read_text

# Far more than anybody stacks: encryption on LVM on RAID is three.
STACKED_MOST = 8
# Those that the name of the device tells: drivers that are no bus.
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
# Those that a directory on its path in sysfs tells, the first that fits.
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
# Serial ATA: 8b/10b.
_SATA_SHARE = 8 / 10
GUEST = "a hypervisor lies below, and what link a guest sees may be made up"


@dataclass(frozen=True)
class _Link:
    """What a disk is attached by; see Disk."""

    transport: str | None
    bytes_per_second: float | None = None
    duplex: bool = False
    source: str | None = None
    reason: str | None = None


def block_device(root: Path, number: str, virtualisation: Virtualisation) -> BlockDevice | None:
    """The device MAJ:MIN of the host whose files are below `root`; None: sysfs does not have it."""
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
    """MAJ:MIN of a device by its name in /dev, such as `vda1` or `mapper/root`."""
    blocks = root / "sys/class/block"
    if name.startswith("mapper/"):
        wanted = name.removeprefix("mapper/")
        named = (one for one in blocks.glob("dm-*") if read_text(one / "dm/name") == wanted)
        found = next(named, None)
        return None if found is None else read_text(found / "dev")
    return read_text(blocks / name / "dev") if re.fullmatch(r"[\w!.-]+", name) else None


def _disks(path: Path, depth: int) -> list[Path]:
    """The whole disks that a device is made of, in order: of a partition its disk, of LVM,
    encryption and RAID those below."""
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
        what = "nobody knows how it is attached" if transport is None else f"it is {transport}"
        return _Link(transport, reason=f"{path.name}: {what}, which has no link that is known")
    found = _sata(path) if transport == "sata" else _nvme(path)
    if found.bytes_per_second is not None and is_guest(virtualisation):
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
    """By the speed that the port has agreed on: sysfs-ata of the kernel's ABI."""
    port = next(one for one in path.parents if re.fullmatch(r"ata\d+", one.name))
    told = [read_text(one) or "" for one in port.glob("link*/ata_link/link*/sata_spd")]
    speeds = [float(match[1]) for text in told if (match := re.match(r"([\d.]+) Gbps", text))]
    if not speeds:
        return _Link("sata", reason=f"{path.name}: the port does not tell its speed (sata_spd)")
    # Behind a port multiplier there are several links; that of the port itself is the fastest.
    speed = max(speeds)
    return _Link(
        "sata",
        bytes_per_second=speed * 1e9 * _SATA_SHARE / 8,
        source=f"{path.name}: SATA {speed:g} Gbit/s (sata_spd), 8b/10b",
    )


def _nvme(path: Path) -> _Link:
    """By the PCI Express link of its controllers: with several paths to one disk, of all."""
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
        return _Link("nvme", reason=f"{path.name}: its PCIe link is not told ({files})")
    return _Link(
        "nvme",
        bytes_per_second=sum(value for value, _ in known),
        duplex=True,
        source=f"{path.name}: " + " + ".join(source for _, source in known),
    )


def _pcie(device: Path) -> tuple[float, str] | None:
    """What the link of a PCI device carries in byte/s in one direction, and in words."""
    found = pcie.speed_and_width(device)
    if found is None:
        return None
    transfers, width = found
    words = f"PCIe {transfers:g} GT/s x{width}, {pcie.coding(transfers)}"
    return pcie.bytes_per_second(transfers, width), words
