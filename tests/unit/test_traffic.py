"""Every byte of disks and network once."""

from pathlib import Path

import pytest

from hostbench.host.idle import disk_bytes, network_bytes

NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0
"""


def disk(sys: Path, name: str, read: int, written: int, slaves: tuple[str, ...] = ()) -> None:
    path = sys / "block" / name
    (path / "slaves").mkdir(parents=True)
    for slave in slaves:
        (path / "slaves" / slave).mkdir()
    (path / "stat").write_text(f"    7  0  {read}  1  8  0  {written}  1  0  1  1\n")


def interfaces(proc: Path, **moved: tuple[int, int]) -> None:
    (proc / "net").mkdir(parents=True)
    lines = [
        f"{name:>6}:{received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"
        for name, (received, sent) in moved.items()
    ]
    (proc / "net/dev").write_text(NET + "".join(lines))


def test_whole_disks_count_once(tmp_path: Path) -> None:
    disk(tmp_path, "vda", 10, 20)
    (tmp_path / "block/vda/vda1").mkdir()
    (tmp_path / "block/vda/vda1/stat").write_text("1 1 999 1 1 1 999 1 1 1 1")
    disk(tmp_path, "nvme0n1", 1, 2)
    disk(tmp_path, "loop0", 1000, 1000)
    disk(tmp_path, "ram0", 1000, 1000)
    disk(tmp_path, "zram0", 1000, 1000)
    disk(tmp_path, "dm-0", 1000, 1000, slaves=("vda",))
    disk(tmp_path, "md127", 1000, 1000, slaves=("vda", "nvme0n1"))
    assert disk_bytes(tmp_path) == (10 + 20 + 1 + 2) * 512


@pytest.mark.parametrize("stat", ["", "1 2 3", "a b c d e f g h", None])
def test_a_disk_that_does_not_tell(tmp_path: Path, stat: str | None) -> None:
    disk(tmp_path, "vda", 10, 20)
    disk(tmp_path, "vdb", 10, 20)
    if stat is None:
        (tmp_path / "block/vdb/stat").unlink()
    else:
        (tmp_path / "block/vdb/stat").write_text(stat)
    assert disk_bytes(tmp_path) == 30 * 512


def test_no_disks(tmp_path: Path) -> None:
    assert disk_bytes(tmp_path) is None


def test_hardware_counts_and_what_is_bridged_over_it_does_not(tmp_path: Path) -> None:
    interfaces(tmp_path, eth0=(100, 10), docker0=(70, 7), veth1=(70, 7))
    (tmp_path / "class/net/eth0/device").mkdir(parents=True)
    assert network_bytes(tmp_path, tmp_path) == 110


def test_in_a_container_all_but_the_loopback_counts(tmp_path: Path) -> None:
    interfaces(tmp_path, eth0=(100, 10), eth1=(1, 1))
    assert network_bytes(tmp_path, tmp_path) == 112


def test_no_network(tmp_path: Path) -> None:
    assert network_bytes(tmp_path, tmp_path) is None
    interfaces(tmp_path)
    assert network_bytes(tmp_path, tmp_path) is None
    (tmp_path / "net/dev").write_text("nonsense\n\n:\n")
    assert network_bytes(tmp_path, tmp_path) is None


def test_this_host() -> None:
    """Whatever it has: nothing raises, and counters do not fall."""
    before = disk_bytes(Path("/sys")), network_bytes(Path("/proc"), Path("/sys"))
    after = disk_bytes(Path("/sys")), network_bytes(Path("/proc"), Path("/sys"))
    for one, other in zip(before, after, strict=True):
        assert (one is None) == (other is None)
        assert one is None or other is None or one <= other
