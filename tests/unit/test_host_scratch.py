"""Where disk workloads have their files: which device that is and how it was found."""

import os
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.host.disk import scratch_place
from hostbench.host.inventory import inventory, merged_inventory
from hostbench.host.scratch import mount_of, parse_mounts
from hostbench.model.host import ScratchPlace, Virtualisation
from tests.unit import block_devices as made
from tests.unit.records import host

METAL = Virtualisation(hypervisor=False)
ANONYMOUS = os.makedev(0, 60)
# /proc/self/mountinfo of a container: its own layer, and what Docker binds into it.
CONTAINER = """\
1010 900 0:60 / / rw,relatime master:300 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
1011 1010 0:63 / /proc rw,nosuid - proc proc rw
1020 1010 259:2 /var/lib/docker/containers/4f/resolv.conf /etc/resolv.conf rw - ext4 /dev/root rw
1021 1010 259:2 /var/lib/docker/containers/4f/hostname /etc/hostname rw - ext4 /dev/root rw
1022 1010 259:2 /var/lib/docker/volumes/a\\040b/_data /scratch rw - ext4 /dev/root rw
"""


def with_mounts(root: Path, text: str) -> Path:
    made.files(root, {"proc/self/mountinfo": text})
    return root


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The scratch directory: its mounts and its device are what a test says."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setenv("HOSTBENCH_SCRATCH", str(place))
    return place


def pretend(monkeypatch: pytest.MonkeyPatch, st_dev: int) -> None:
    """The kernel says that the directory is of this device."""
    real = os.stat_result

    class Stat:
        def __init__(self, status: os.stat_result) -> None:
            self._status = status
            self.st_dev = st_dev

        def __getattr__(self, name: str) -> object:
            return getattr(self._status, name)

    def stat(path: Path, **options: bool) -> object:
        found = os.stat(path, **options)  # noqa: PTH116
        assert isinstance(found, real)
        return Stat(found) if path.name == "scratch" else found

    monkeypatch.setattr(Path, "stat", stat)


def test_by_the_device_of_the_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path
) -> None:
    made.nvme(tmp_path)
    pretend(monkeypatch, os.makedev(259, 2))
    root = with_mounts(tmp_path, "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n")
    found = scratch_place(root, METAL)
    assert found.device is not None
    assert (found.directory, found.file_system) == (str(at), "ext4")
    assert (found.device.name, found.device_source) == ("nvme0n1p2", "st_dev")
    assert found.device.link_bytes_per_second == pytest.approx(7.877e9, rel=1e-3)


def test_a_file_system_with_a_device_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path
) -> None:
    """btrfs: the directory's device is anonymous, its mount names one."""
    made.nvme(tmp_path)
    pretend(monkeypatch, ANONYMOUS)
    root = with_mounts(tmp_path, "22 1 0:33 /@ / rw - btrfs /dev/nvme0n1p2 rw,subvol=/@\n")
    found = scratch_place(root, METAL)
    assert found.device is not None and found.device.number == "259:2"
    assert found.device_source == "inferred: btrfs is mounted from /dev/nvme0n1p2"


def btrfs_over(root: Path, *names: str) -> None:
    """What sysfs says of a btrfs: links to all that it lies on."""
    for name in names:
        target = os.path.relpath((root / "sys/class/block" / name).resolve(), root)
        made.link(root, f"sys/fs/btrfs/0e8f/devices/{name}", target)


def test_a_btrfs_on_one_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path) -> None:
    made.nvme(tmp_path)
    btrfs_over(tmp_path, "nvme0n1p2")
    pretend(monkeypatch, ANONYMOUS)
    root = with_mounts(tmp_path, "22 1 0:33 /@ / rw - btrfs /dev/nvme0n1p2 rw,subvol=/@\n")
    found = scratch_place(root, METAL)
    assert found.device is not None
    assert found.device_source == "btrfs is mounted from /dev/nvme0n1p2"


def test_a_btrfs_on_several_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path
) -> None:
    made.sata(tmp_path, "sda", "8:0", 1)
    made.sata(tmp_path, "sdb", "8:16", 2)
    btrfs_over(tmp_path, "sda", "sdb")
    pretend(monkeypatch, ANONYMOUS)
    root = with_mounts(tmp_path, "22 1 0:33 /@ / rw - btrfs /dev/sda rw,subvol=/@\n")
    found = scratch_place(root, METAL)
    assert found.device is None
    assert found.device_reason == "btrfs spreads over 2 devices (sda, sdb)"


def test_a_containers_own_layer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path) -> None:
    made.nvme(tmp_path)
    pretend(monkeypatch, ANONYMOUS)
    found = scratch_place(with_mounts(tmp_path, CONTAINER), METAL)
    assert found.file_system == "overlay" and found.device is not None
    assert found.device.name == "nvme0n1p2"
    assert (found.device_source or "").startswith("inferred: ")
    assert "/etc/resolv.conf" in (found.device_source or "")


@pytest.mark.parametrize(
    ("mounts", "part"),
    [
        ("22 1 0:60 / / rw - overlay overlay rw\n", "overlay does not show"),
        ("22 1 0:44 / / rw - tmpfs tmpfs rw\n", "tmpfs is memory"),
        ("22 1 0:45 / / rw - nfs4 server:/export rw\n", "nfs4 does not show"),
        ("22 1 0:45 / / rw - btrfs /dev/gone rw\n", "/dev/gone"),
        ("", "not listed"),
    ],
)
def test_an_unknown_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path, mounts: str, part: str
) -> None:
    pretend(monkeypatch, ANONYMOUS)
    found = scratch_place(with_mounts(tmp_path, mounts), METAL)
    assert (found.device, found.device_source) == (None, None)
    assert part in (found.device_reason or "")


def test_a_device_that_sysfs_does_not_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: Path
) -> None:
    pretend(monkeypatch, os.makedev(8, 1))
    found = scratch_place(with_mounts(tmp_path, ""), METAL)
    assert found.device_reason == "/sys/dev/block has no 8:1 (st_dev)"


def test_a_directory_that_is_not_made_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It will lie where the nearest directory above it does; nothing is made."""
    monkeypatch.setenv("HOSTBENCH_SCRATCH", str(tmp_path / "a" / "b"))
    found = scratch_place(Path("/"), METAL)
    assert found.directory == str(tmp_path / "a" / "b")
    assert found.size_bytes == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
    assert list(tmp_path.iterdir()) == []


def test_on_this_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOSTBENCH_SCRATCH", str(tmp_path))
    found = inventory().scratch
    assert found is not None and found.free_bytes and found.size_bytes
    assert found.free_bytes <= found.size_bytes
    assert (found.device is None) != (found.device_reason is None)
    st_dev = tmp_path.stat().st_dev
    if os.major(st_dev):
        assert found.device is not None
        assert found.device.number == f"{os.major(st_dev)}:{os.minor(st_dev)}"
    assert inventory(scratch=False).scratch is None


def test_the_users_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_DISK_BANDWIDTH", "3.5e9")
    monkeypatch.setenv("HOSTBENCH_DISK_IOPS", "5e5")
    found = scratch_place(Path("/"), METAL)
    assert (found.user_bytes_per_second, found.user_operations_per_second) == (3.5e9, 5e5)
    monkeypatch.setenv("HOSTBENCH_DISK_IOPS", "many")
    with pytest.raises(UsageError, match="HOSTBENCH_DISK_IOPS 'many' is not a rate"):
        scratch_place(Path("/"), METAL)


def test_of_several_services_one_knows_the_disk() -> None:
    place = ScratchPlace(directory="/scratch")
    cpu, disk = host(hostname="a"), host(hostname="a", scratch=place)
    assert merged_inventory([cpu, disk]).scratch == place
    assert merged_inventory([disk, cpu]).scratch == place
    assert merged_inventory([cpu]).scratch is None


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    mounts = parse_mounts(CONTAINER + "nonsense\n1 2 3\n")
    assert [one.number for one in mounts] == [1010, 1011, 1020, 1021, 1022]
    scratch = mount_of(mounts, Path("/scratch/below"))
    assert scratch is not None
    assert scratch.inside == "/var/lib/docker/volumes/a b/_data"
    assert mount_of(mounts, Path("/scratchy")) == mounts[0]
    # What is mounted later covers what was there.
    over = parse_mounts("1 0 8:1 / /a rw - ext4 /dev/sda1 rw\n2 0 8:2 / /a rw - xfs /dev/sdb rw\n")
    covering = mount_of(over, Path("/a"))
    assert covering is not None and covering.kind == "xfs"
