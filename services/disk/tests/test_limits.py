"""The limits of a disk trial: their values, their sources, and when there is none."""

from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import UsageError
from hostbench.host.disk import BANDWIDTH, OPERATIONS, block_device
from hostbench.judge.trial import above_limit
from hostbench.model.host import BlockDevice, Disk, ScratchPlace, Virtualisation
from hostbench.model.limit import NAIVE_REASON, Limit
from services.disk.limits import limits
from tests.unit import block_devices
from tests.unit.records import end, host, start

SATA = Disk(name="sda", transport="sata", link_bytes_per_second=6e8, link_source="sda: SATA")
NVME = Disk(
    name="nvme0n1",
    transport="nvme",
    link_bytes_per_second=8e9,
    link_duplex=True,
    link_source="nvme0n1: PCIe 16 GT/s x4",
)
VIRTIO = Disk(name="vda", transport="virtio", link_reason="vda: it is virtio")
DIRECTIONS = ["seq_read", "seq_write", "seq_rw", "rand_read", "rand_write", "rand_rw"]


def place(*disks: Disk, **changes: Any) -> ScratchPlace:
    device = BlockDevice(number="8:0", name="a", disks=disks) if disks else None
    return ScratchPlace(**{"directory": "/scratch", "device": device} | changes)


def found(
    scratch: ScratchPlace | None,
    workload: str = "seq_read",
    metrics: dict[str, Any] | None = None,
    **params: Any,
) -> dict[str, Limit]:
    given = {"cache_mode": "direct", "block_bytes": 4096, "compressible": 0.0} | params
    trial = start(workload=workload, params=given)
    ended = end().model_copy(update={"metrics": metrics or {}})
    return limits(host(scratch=scratch), trial, ended)


def value(limit: Limit) -> float:
    assert limit.value is not None, limit.reason
    return limit.value


def reasons(limit_by_metric: dict[str, Limit]) -> str:
    assert {name: one.value for name, one in limit_by_metric.items()} == {
        "bytes_per_second": None,
        "operations_per_second": None,
    }
    (reason,) = {one.reason for one in limit_by_metric.values()}
    assert reason is not None
    return reason


@pytest.mark.parametrize("workload", DIRECTIONS)
def test_the_link_bounds_bytes_and_operations(workload: str) -> None:
    limit = found(place(SATA), workload)
    assert (limit["bytes_per_second"].value, limit["bytes_per_second"].unit) == (6e8, "byte/s")
    rate = limit["operations_per_second"]
    assert value(rate) == pytest.approx(6e8 / 4096) and rate.unit == "operation/s"
    assert [one.name for one in rate.factors] == ["link_ceiling", "operations_per_byte"]
    assert all(factor.source for one in limit.values() for factor in one.factors)


def test_a_time_has_no_limit() -> None:
    assert found(place(SATA), "fsync_latency") == {}


@pytest.mark.parametrize("workload", ["naive_read", "naive_write", "naive_rw"])
def test_what_is_naive_is_held_against_no_limit(workload: str) -> None:
    assert reasons(found(place(SATA), workload)) == NAIVE_REASON


def test_several_disks_add_up() -> None:
    limit = found(place(SATA, SATA.model_copy(update={"name": "sdb"})))["bytes_per_second"]
    assert limit.value == 1.2e9
    assert found(place(SATA, VIRTIO))["bytes_per_second"].value is None


@pytest.mark.parametrize(
    ("workload", "read_share", "expected"),
    [
        ("seq_rw", 0.5, 16e9),
        ("rand_rw", 0.8, 10e9),
        ("rand_rw", 0.2, 10e9),
        ("rand_rw", 1, 8e9),
        ("seq_rw", 0, 8e9),
        ("seq_read", 0.5, 8e9),
    ],
)
def test_a_link_that_carries_both_ways_at_once(
    workload: str, read_share: float, expected: float
) -> None:
    limit = found(place(NVME), workload, read_share=read_share)["bytes_per_second"]
    assert value(limit) == pytest.approx(expected)
    assert found(place(SATA), workload, read_share=read_share)["bytes_per_second"].value == 6e8


def test_what_the_user_tells_comes_first() -> None:
    rated = place(NVME, user_bytes_per_second=3.5e9)
    limit = found(rated, "rand_read")["bytes_per_second"]
    (factor,) = limit.factors
    assert (limit.value, factor.source) == (3.5e9, "set by HOSTBENCH_DISK_BANDWIDTH")
    assert found(place(VIRTIO, user_bytes_per_second=3.5e9))["bytes_per_second"].value == 3.5e9
    assert found(place(user_bytes_per_second=3.5e9))["bytes_per_second"].value == 3.5e9


def test_a_rate_that_the_user_tells_is_one_of_random_blocks() -> None:
    rated = place(NVME, user_operations_per_second=5e5)
    rate = found(rated, "rand_read")["operations_per_second"]
    assert (rate.value, rate.factors[0].source) == (5e5, "set by HOSTBENCH_DISK_IOPS")
    # Neighbouring blocks may be one request of the disk.
    assert value(found(rated, "seq_read")["operations_per_second"]) == pytest.approx(8e9 / 4096)
    # Of large blocks the link carries fewer.
    large = found(rated, "rand_read", block_bytes=1 << 20)["operations_per_second"]
    assert value(large) == pytest.approx(8e9 / (1 << 20))
    alone = found(place(VIRTIO, user_operations_per_second=5e5), "rand_write")
    assert alone["operations_per_second"].value == 5e5
    assert alone["bytes_per_second"].value is None


@pytest.mark.parametrize("workload", ["seq_rw", "rand_rw"])
def test_what_the_user_tells_is_of_one_direction(workload: str) -> None:
    rated = place(VIRTIO, user_bytes_per_second=3.5e9)
    reason = reasons(found(rated, workload, read_share=0.5))
    assert "HOSTBENCH_DISK_BANDWIDTH" in reason and "mix" in reason
    for share in (0, 1):
        assert found(rated, workload, read_share=share)["bytes_per_second"].value == 3.5e9


def test_a_rate_that_the_user_tells_is_of_one_direction() -> None:
    rated = place(VIRTIO, user_operations_per_second=5e5)
    limit = found(rated, "rand_rw", read_share=0.7)["operations_per_second"]
    assert limit.value is None and "HOSTBENCH_DISK_IOPS" in (limit.reason or "")
    assert found(rated, "rand_rw", read_share=1)["operations_per_second"].value == 5e5
    # The link carries what it carries.
    linked = found(place(SATA, user_operations_per_second=5e2), "rand_rw", read_share=0.7)
    assert value(linked["operations_per_second"]) == pytest.approx(6e8 / 4096)


def test_a_disk_that_was_guessed_bounds_nothing() -> None:
    source = "inferred: where the runtime of this container has /etc/hosts"
    assert f"not known for certain ({source})" in reasons(found(place(SATA, device_source=source)))
    assert found(place(SATA, device_source="st_dev"))["bytes_per_second"].value == 6e8
    rated = place(SATA, device_source=source, user_bytes_per_second=3e8)
    assert found(rated)["bytes_per_second"].value == 3e8


@pytest.mark.parametrize(
    ("scratch", "part"),
    [
        (None, "before hostbench looked"),
        (place(device_reason="overlay does not tell"), "overlay does not tell; set the disk"),
        (place(VIRTIO), "vda: it is virtio; set the disk"),
    ],
)
def test_a_disk_that_is_not_known(scratch: ScratchPlace | None, part: str) -> None:
    assert part in reasons(found(scratch))


@pytest.mark.parametrize("workload", DIRECTIONS)
def test_the_page_cache_has_no_limit(workload: str) -> None:
    assert "page cache" in reasons(found(place(SATA), workload, cache_mode="buffered"))


@pytest.mark.parametrize("mode", ["buffered+dsync", "buffered+fsync_end"])
def test_syncing_is_about_what_is_written(mode: str) -> None:
    written = {"device_write_ratio": 1.0}
    assert "what is read" in reasons(found(place(SATA), "rand_rw", written, cache_mode=mode))
    assert "what is read" in reasons(found(place(SATA), "seq_read", cache_mode=mode))
    limit = found(place(SATA), "seq_write", written, cache_mode=mode)
    assert limit["bytes_per_second"].value == 6e8


@pytest.mark.parametrize("ratio", [None, 0.3])
def test_what_the_cache_kept_back_has_no_limit(ratio: float | None) -> None:
    """A file that is written ten times over before it is synced goes to the disk once."""
    written = {"device_write_ratio": ratio}
    limit = found(place(SATA), "seq_write", written, cache_mode="buffered+fsync_end")
    assert "device_write_ratio" in reasons(limit)
    limit = found(place(SATA), "seq_write", written, cache_mode="buffered+dsync")
    assert limit["bytes_per_second"].value == 6e8


@pytest.mark.parametrize("mode", ["direct", "direct+dsync"])
def test_past_the_page_cache(mode: str) -> None:
    assert found(place(SATA), "rand_rw", cache_mode=mode)["bytes_per_second"].value == 6e8


def test_what_can_be_compressed() -> None:
    assert "compressible" in reasons(found(place(SATA), "seq_write", compressible=0.5))
    rated = place(SATA, user_bytes_per_second=5e8)
    assert found(rated, "seq_write", compressible=0.5)["bytes_per_second"].value == 5e8


def test_a_block_that_is_not_reported() -> None:
    limit = found(place(SATA), block_bytes=None)
    assert limit["bytes_per_second"].value == 6e8
    assert "block_bytes" in (limit["operations_per_second"].reason or "")


def test_a_figure_above_the_link_is_named(tmp_path: Path) -> None:
    """From a recorded tree of sysfs to the verdict: an HDD does not read 6.3 GB/s."""
    block_devices.sata(tmp_path, "sda", "8:0", 1)
    device = block_device(tmp_path, "8:0", Virtualisation(hypervisor=False))
    limit = found(ScratchPlace(directory="/scratch", device=device))
    (reason,) = above_limit({"bytes_per_second": 6.3e9}, limit, ())
    assert reason.code == "above_limit"
    assert above_limit({"bytes_per_second": 5.6e8}, limit, ()) == ()


@pytest.mark.parametrize("rating", [BANDWIDTH, OPERATIONS])
@pytest.mark.parametrize("text", ["0", "-1", "fast", "nan", "1e30", "500k"])
def test_a_rating_that_makes_no_sense(
    monkeypatch: pytest.MonkeyPatch, rating: Any, text: str
) -> None:
    monkeypatch.setenv(rating.variable, text)
    with pytest.raises(UsageError) as raised:
        rating.value()
    message = raised.value.message
    assert rating.variable in message and repr(text) in message and "unset it" in message


def test_a_rating_that_makes_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_DISK_BANDWIDTH", "3.5e9")
    monkeypatch.setenv("HOSTBENCH_DISK_IOPS", "")
    assert (BANDWIDTH.value(), OPERATIONS.value()) == (3.5e9, None)
