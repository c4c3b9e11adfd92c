"""Which disks lie below a file system, and what their links carry, over recorded trees of sysfs."""

from pathlib import Path

import pytest

from hostbench.host.disk import GUEST, block_device, device_number
from hostbench.model.host import BlockDevice, Disk, Virtualisation
from tests.unit import block_devices as made

METAL = Virtualisation(hypervisor=False)
NVME = f"{made.PCI}/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1"


def found(root: Path, number: str, virtualisation: Virtualisation = METAL) -> BlockDevice:
    device = block_device(root, number, virtualisation)
    assert device is not None
    return device


def only_disk(root: Path, number: str, virtualisation: Virtualisation = METAL) -> Disk:
    (disk,) = found(root, number, virtualisation).disks
    return disk


@pytest.mark.parametrize(
    ("speed", "width", "gigabytes"),
    [
        ("2.5 GT/s PCIe", "1", 0.25),
        ("5.0 GT/s PCIe", "4", 2.0),
        # The figures that data sheets name: 3.94, 7.88 and 15.76 GB/s.
        ("8.0 GT/s PCIe", "4", 3.938),
        ("16.0 GT/s PCIe", "4", 7.877),
        ("32.0 GT/s PCIe", "4", 15.754),
        ("64.0 GT/s PCIe", "4", 30.25),
    ],
)
def test_the_link_of_an_nvme_disk(tmp_path: Path, speed: str, width: str, gigabytes: float) -> None:
    made.nvme(tmp_path, speed, width)
    disk = only_disk(tmp_path, "259:0")
    assert disk.link_bytes_per_second == pytest.approx(gigabytes * 1e9, rel=1e-3)
    assert (disk.name, disk.transport, disk.rotational) == ("nvme0n1", "nvme", False)
    assert disk.model == "Samsung SSD 980 PRO 1TB"
    assert disk.link_duplex and disk.link_reason is None
    assert speed.partition(" ")[0].rstrip(".0") in (disk.link_source or "")


def test_a_partition_lies_on_its_disk(tmp_path: Path) -> None:
    made.nvme(tmp_path)
    device = found(tmp_path, "259:2")
    assert (device.number, device.name) == ("259:2", "nvme0n1p2")
    assert [disk.name for disk in device.disks] == ["nvme0n1"]
    assert device.link_bytes_per_second == pytest.approx(7.877e9, rel=1e-3)


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "4"), ("16.0 GT/s PCIe", "0")])
def test_a_link_that_is_not_reported(tmp_path: Path, speed: str, width: str) -> None:
    made.nvme(tmp_path, speed, width)
    disk = only_disk(tmp_path, "259:0")
    assert disk.link_bytes_per_second is None
    assert "current_link_speed" in (disk.link_reason or "")


def test_nvme_over_a_network(tmp_path: Path) -> None:
    made.nvme(tmp_path, transport="tcp")
    disk = only_disk(tmp_path, "259:0")
    assert (disk.transport, disk.link_bytes_per_second) == ("nvme-tcp", None)
    assert "over tcp" in (disk.link_reason or "")


def test_nvme_with_two_paths(tmp_path: Path) -> None:
    """The disk belongs to a subsystem; its controllers stand beside it."""
    subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    for number in (0, 1):
        device = f"{made.PCI}/0000:0{number}:00.0"
        made.files(
            tmp_path,
            {
                f"{device}/current_link_speed": "8.0 GT/s PCIe\n",
                f"{device}/current_link_width": "2\n",
                f"{device}/nvme/nvme{number}/transport": "pcie\n",
            },
        )
        made.link(tmp_path, f"{device}/nvme/nvme{number}/device", device)
        made.link(tmp_path, f"{subsystem}/nvme{number}", f"{device}/nvme/nvme{number}")
    made.block(tmp_path, f"{subsystem}/nvme0n1", "259:0")
    made.link(tmp_path, f"{subsystem}/nvme0n1/device", subsystem)
    disk = only_disk(tmp_path, "259:0")
    assert disk.link_bytes_per_second == pytest.approx(3.938e9, rel=1e-3)
    assert (disk.link_source or "").count("x2") == 2


@pytest.mark.parametrize(
    ("speed", "megabytes"), [("1.5 Gbps", 150), ("3.0 Gbps", 300), ("6.0 Gbps", 600)]
)
def test_the_link_of_a_sata_disk(tmp_path: Path, speed: str, megabytes: float) -> None:
    made.sata(tmp_path, "sda", "8:0", 3, speed)
    disk = only_disk(tmp_path, "8:0")
    assert disk.link_bytes_per_second == pytest.approx(megabytes * 1e6)
    assert (disk.transport, disk.rotational, disk.link_duplex) == ("sata", True, False)
    assert disk.model == "ST8000NM0055-1RM"


def test_a_sata_port_that_does_not_tell(tmp_path: Path) -> None:
    made.sata(tmp_path, "sda", "8:0", 3, "<unknown>")
    assert "sata_spd" in (only_disk(tmp_path, "8:0").link_reason or "")


def test_a_virtual_disk_has_no_link(tmp_path: Path) -> None:
    made.virtio(tmp_path)
    disk = only_disk(tmp_path, "254:0", Virtualisation(hypervisor=True))
    assert (disk.transport, disk.link_bytes_per_second) == ("virtio", None)
    assert disk.rotational is True, "as it is reported, which means nothing"
    assert "it is virtio" in (disk.link_reason or "")


@pytest.mark.parametrize(
    "virtualisation",
    [
        Virtualisation(hypervisor=True),
        Virtualisation(hypervisor=None, vendor="QEMU"),
        Virtualisation(hypervisor=None, vendor="Amazon EC2", product="c7g.large"),
    ],
)
def test_the_link_that_a_guest_sees_is_not_believed(
    tmp_path: Path, virtualisation: Virtualisation
) -> None:
    made.nvme(tmp_path, "2.5 GT/s PCIe", "1")
    disk = only_disk(tmp_path, "259:0", virtualisation)
    assert disk.link_bytes_per_second is None and GUEST in (disk.link_reason or "")


def test_links_of_several_disks_add_up(tmp_path: Path) -> None:
    """Encryption on LVM on a RAID of two disks."""
    for name, number, port in (("sda", "8:0", 1), ("sdb", "8:16", 2)):
        made.sata(tmp_path, name, number, port)
    disks = [
        f"{made.PCI}/0000:00:17.0/ata{n}/host{n}/target{n}:0:0/{n}:0:0:0/block" for n in (1, 2)
    ]
    made.mapped(tmp_path, "md0", "9:0", "", f"{disks[0]}/sda", f"{disks[1]}/sdb")
    made.mapped(tmp_path, "dm-0", "253:0", "vg-home", "sys/devices/virtual/block/md0")
    made.mapped(tmp_path, "dm-1", "253:1", "crypt", "sys/devices/virtual/block/dm-0")
    device = found(tmp_path, "253:1")
    assert (device.name, [disk.name for disk in device.disks]) == ("dm-1", ["sda", "sdb"])
    assert device.link_bytes_per_second == pytest.approx(1.2e9)


def test_one_unknown_link_of_several_leaves_all_unknown(tmp_path: Path) -> None:
    made.sata(tmp_path, "sda", "8:0", 1)
    made.virtio(tmp_path)
    sda = f"{made.PCI}/0000:00:17.0/ata1/host1/target1:0:0/1:0:0:0/block/sda"
    made.mapped(tmp_path, "dm-0", "253:0", "vg", sda, f"{made.PCI}/0000:00:02.0/virtio1/block/vda")
    device = found(tmp_path, "253:0")
    assert device.link_bytes_per_second is None
    assert (device.link_reason or "").startswith("vda: ")


def test_two_partitions_of_one_disk_are_one_disk(tmp_path: Path) -> None:
    made.nvme(tmp_path)
    made.block(tmp_path, f"{NVME}/nvme0n1p3", "259:3", partition="3\n")
    made.mapped(tmp_path, "dm-0", "253:0", "vg", f"{NVME}/nvme0n1p2", f"{NVME}/nvme0n1p3")
    assert [disk.name for disk in found(tmp_path, "253:0").disks] == ["nvme0n1"]


@pytest.mark.parametrize(
    ("directory", "transport"),
    [
        ("sys/devices/virtual/block/loop0", "loop"),
        ("sys/devices/virtual/block/zram0", "memory"),
        ("sys/devices/vbd-51712/block/xvda", "xen"),
        (f"{made.PCI}/0000:00:14.0/usb2/2-1/2-1:1.0/host4/target4:0:0/4:0:0:0/block/sdc", "usb"),
        (f"{made.PCI}/0000:01:00.0/host0/port-0:0/end_device-0:0/target0:0:0/block/sdd", "sas"),
        (f"{made.PCI}/0000:02:00.0/host2/target2:2:0/2:2:0:0/block/sde", "scsi"),
        ("sys/devices/platform/soc/fe340000.mmc/mmc_host/mmc0/mmc0:0001/block/mmcblk0", "mmc"),
        ("sys/devices/virtual/block/other7", None),
    ],
)
def test_other_ways_to_a_disk(tmp_path: Path, directory: str, transport: str | None) -> None:
    made.block(tmp_path, directory, "7:0")
    disk = only_disk(tmp_path, "7:0")
    assert (disk.transport, disk.link_bytes_per_second) == (transport, None)
    assert disk.link_reason and disk.name in disk.link_reason
    assert (disk.model, disk.rotational) == (None, None)


def test_a_loop_of_stacked_devices_ends(tmp_path: Path) -> None:
    made.mapped(tmp_path, "dm-0", "253:0", "a", "sys/devices/virtual/block/dm-0")
    assert [disk.name for disk in found(tmp_path, "253:0").disks] == ["dm-0"]


def test_a_device_that_sysfs_does_not_have(tmp_path: Path) -> None:
    assert block_device(tmp_path, "8:0", METAL) is None


def test_numbers_by_name(tmp_path: Path) -> None:
    made.nvme(tmp_path)
    made.mapped(tmp_path, "dm-0", "253:0", "vg-home")
    assert device_number(tmp_path, "nvme0n1p2") == "259:2"
    assert device_number(tmp_path, "mapper/vg-home") == "253:0"
    assert device_number(tmp_path, "mapper/other") is None
    assert device_number(tmp_path, "../../etc") is None
