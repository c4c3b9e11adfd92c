"""Trees of /sys as machines with disks have them: real directories, and links that lead there."""

import os
from pathlib import Path

PCI = "sys/devices/pci0000:00"


def files(root: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def link(root: Path, name: str, target: str) -> None:
    """A relative link, as sysfs has them."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(root / target, path.parent))


def block(root: Path, directory: str, number: str, **content: str) -> None:
    """A block device with its number, and with files whose names have dots for slashes."""
    files(root, {f"{directory}/dev": f"{number}\n"})
    files(root, {f"{directory}/{name.replace('__', '/')}": text for name, text in content.items()})
    link(root, f"sys/dev/block/{number}", directory)
    link(root, f"sys/class/block/{directory.rsplit('/', 1)[1]}", directory)


def nvme(
    root: Path, speed: str = "16.0 GT/s PCIe", width: str = "4", transport: str = "pcie"
) -> None:
    """nvme0n1 with a second partition, 259:0 and 259:2, as Linux 6.1 shows a Samsung 980 PRO."""
    device = f"{PCI}/0000:00:1d.0/0000:03:00.0"
    controller = f"{device}/nvme/nvme0"
    files(
        root,
        {
            f"{device}/current_link_speed": f"{speed}\n",
            f"{device}/current_link_width": f"{width}\n",
            f"{controller}/transport": f"{transport}\n",
            f"{controller}/model": "Samsung SSD 980 PRO 1TB                 \n",
        },
    )
    link(root, f"{controller}/device", device)
    disk = f"{controller}/nvme0n1"
    block(root, disk, "259:0", queue__rotational="0\n")
    link(root, f"{disk}/device", controller)
    block(root, f"{disk}/nvme0n1p2", "259:2", partition="2\n")


def sata(root: Path, name: str, number: str, port: int, speed: str = "6.0 Gbps") -> None:
    """A disk at a port of a controller of the chipset, as Linux 6.1 shows it."""
    ata = f"{PCI}/0000:00:17.0/ata{port}"
    files(root, {f"{ata}/link{port}/ata_link/link{port}/sata_spd": f"{speed}\n"})
    target = f"{ata}/host{port}/target{port}:0:0/{port}:0:0:0"
    files(root, {f"{target}/model": "ST8000NM0055-1RM\n"})
    block(root, f"{target}/block/{name}", number, queue__rotational="1\n")
    link(root, f"{target}/block/{name}/device", target)


def virtio(root: Path) -> None:
    """vda, 254:0, of a Firecracker or QEMU machine: rotational, whatever it lies on."""
    disk = f"{PCI}/0000:00:02.0/virtio1/block/vda"
    block(root, disk, "254:0", queue__rotational="1\n", queue__scheduler="[none] mq-deadline\n")


def mapped(root: Path, name: str, number: str, called: str, *slaves: str) -> None:
    """dm-0 or md0 over devices that are named by their directories."""
    directory = f"sys/devices/virtual/block/{name}"
    block(root, directory, number, dm__name=f"{called}\n")
    for slave in slaves:
        link(root, f"{directory}/slaves/{slave.rsplit('/', 1)[1]}", slave)
