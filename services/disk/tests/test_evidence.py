"""Each figure says by itself whether it was the disk's."""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.disk.tests.program import MOMENT, WORKLOADS, measure, on_disk, scratch_file, table
from tests.benchmark import MIB, Trial

SIZE = 16 * MIB
ONCE = (f"--file-bytes={SIZE}", f"--total-bytes={SIZE}")
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
LIBC.mlock.argtypes = LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


@pytest.fixture
def handed() -> Iterator[int]:
    descriptor = scratch_file(on_disk())
    yield descriptor
    os.close(descriptor)


@contextmanager
def kept_in_memory(descriptor: int, size_bytes: int) -> Iterator[None]:
    """The first bytes of the file are locked in the page cache, and no process can drop them."""
    address = LIBC.mmap(None, size_bytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    try:
        if LIBC.mlock(address, size_bytes):
            pytest.skip(f"no memory may be locked here: {os.strerror(ctypes.get_errno())}")
        yield
    finally:
        LIBC.munmap(address, size_bytes)


def on(handed: int, workload: str, *arguments: str) -> Trial:
    return measure(workload, *arguments, f"--scratch-fd={handed}", pass_fds=(handed,))


# ---- reads -----------------------------------------------------------------------------------


def test_what_was_left_in_memory_is_flagged_every_time(handed: int) -> None:
    on(handed, "seq_read", *ONCE)
    with kept_in_memory(handed, SIZE):
        for _ in range(10):
            trial = on(handed, "seq_read", *ONCE, "--cache-mode=buffered")
            assert "cache_contaminated" in trial.warnings
            assert trial.metrics["device_read_ratio"] < 0.01
            assert trial.metrics["cached_ratio_before"] > 0.99


def test_a_small_part_in_memory_is_flagged(handed: int) -> None:
    on(handed, "seq_read", *ONCE)
    with kept_in_memory(handed, SIZE // 10):
        trial = on(handed, "seq_read", *ONCE, "--cache-mode=buffered")
    assert "cache_contaminated" in trial.warnings
    assert trial.metrics["cached_ratio_before"] == pytest.approx(0.1, abs=0.01)
    assert trial.metrics["device_read_ratio"] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("mode", ["direct", "buffered"])
def test_what_comes_from_the_disk_is_never_flagged(handed: int, mode: str) -> None:
    for _ in range(10):
        # Warm on purpose: a trial drops what others have left.
        for at in range(0, SIZE, MIB):
            os.pread(handed, MIB, at)
        trial = on(handed, "seq_read", *ONCE, f"--cache-mode={mode}")
        assert "cache_contaminated" not in trial.warnings
        assert trial.metrics["cached_ratio_before"] <= 0.01
        assert trial.metrics["device_read_ratio"] == pytest.approx(1, abs=0.05)


def test_a_file_that_is_read_twice_is_flagged(handed: int) -> None:
    arguments = (f"--file-bytes={SIZE}", f"--total-bytes={2 * SIZE}", "--cache-mode=buffered")
    trial = on(handed, "seq_read", *arguments)
    assert trial.metrics["device_read_ratio"] == pytest.approx(0.5, abs=0.05)
    assert "larger --file-bytes" in trial.warnings["cache_contaminated"]
    direct = on(handed, "seq_read", *arguments[:2])
    assert direct.metrics["device_read_ratio"] == pytest.approx(1, abs=0.05)
    assert not direct.warnings


def test_the_warm_up_does_not_warm_the_cache(handed: int) -> None:
    on(handed, "seq_read", *ONCE)
    trial = on(handed, "seq_read", *ONCE, "--cache-mode=buffered", "--warmup-s=0.5")
    assert trial.metrics["device_read_ratio"] > 0.95
    assert not trial.warnings


# ---- writes ----------------------------------------------------------------------------------


def test_direct_writes_reach_the_device(handed: int) -> None:
    trial = on(handed, "rand_write", *MOMENT)
    assert trial.metrics["device_write_ratio"] == pytest.approx(1, abs=0.05)
    assert trial.metrics["device_read_ratio"] is None
    assert not trial.warnings


def test_writes_without_a_sync_are_the_page_caches(handed: int) -> None:
    trial = on(handed, "seq_write", *ONCE, "--cache-mode=buffered")
    assert "page_cache_measured" in trial.warnings
    assert trial.metrics["cached_ratio_after"] > 0.99
    assert trial.metrics["fsync_s"] is None


@pytest.mark.parametrize("mode", ["buffered+fsync_end", "direct+fsync_end"])
def test_the_fsync_at_the_end_is_part_of_the_time(handed: int, mode: str) -> None:
    trial = on(handed, "seq_write", *ONCE, f"--cache-mode={mode}")
    assert 0 < trial.metrics["fsync_s"] < trial.end["elapsed_s"]
    assert trial.metrics["device_write_ratio"] == pytest.approx(1, abs=0.05)
    assert not trial.warnings


def test_overwriting_before_the_fsync_is_the_page_caches(handed: int) -> None:
    arguments = (f"--file-bytes={SIZE}", f"--total-bytes={8 * SIZE}")
    trial = on(handed, "seq_write", *arguments, "--cache-mode=buffered+fsync_end")
    assert trial.metrics["device_write_ratio"] < 0.9
    assert "overwritten" in trial.warnings["page_cache_measured"]


def test_what_the_device_says(handed: int) -> None:
    trial = on(handed, "seq_write", *ONCE)
    if trial.metrics["diskstats_write_bytes"] is None:
        assert "block device" in trial.end["reasons"]["metrics.diskstats_write_bytes"]
        pytest.skip("the file system here has no block device of its own")
    assert trial.metrics["diskstats_write_bytes"] >= SIZE
    # The kernel counts in ticks of up to 10 ms: a trial on a fast disk may be shorter than one.
    # Other processes may use the disk too.
    elapsed_s = trial.end["elapsed_s"]
    assert 0 <= trial.metrics["device_busy_ratio"] * elapsed_s <= 1.1 * elapsed_s + 0.02


@pytest.mark.parametrize(
    ("share", "missing"), [(0, "device_read_ratio"), (1, "device_write_ratio")]
)
def test_mixes_of_one_kind(share: int, missing: str) -> None:
    trial = measure("rand_rw", *MOMENT, f"--read-share={share}")
    assert trial.metrics[missing] is None
    assert "no such operation" in trial.end["reasons"][f"metrics.{missing}"]
    assert not trial.warnings


# ---- the rest --------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_metric_of_the_table_has_a_figure_or_a_reason(workload: str) -> None:
    trial = measure(workload, *MOMENT)
    names = [metric["name"] for metric in table()[workload]["metrics"]]
    assert set(trial.metrics) == set(names)
    for name, value in trial.metrics.items():
        assert (value is None) == (f"metrics.{name}" in trial.end["reasons"]), name


@pytest.mark.parametrize(
    ("threads", "block_bytes", "covered"),
    [(1, 4096, SIZE), (3, 4096, 3 * 4096 * 1365), (1, 3 * MIB, 15 * MIB), (2, 3 * MIB, 12 * MIB)],
)
def test_the_bytes_covered_are_whole_blocks(threads: int, block_bytes: int, covered: int) -> None:
    trial = measure("seq_read", *MOMENT, f"--threads={threads}", f"--block-bytes={block_bytes}")
    assert trial.metrics["covered_bytes"] == covered


# As slow as this, any disk is steady; the machine that other lanes load is not, now and then.
@pytest.mark.flaky(reruns=3)
def test_a_steady_rate() -> None:
    arguments = ("--rate=500", "--steady-state=on", "--duration-s=2", f"--file-bytes={SIZE}")
    trial = measure("rand_read", *arguments)
    assert trial.metrics["steady_state_range_ratio"] < 0.2
    assert trial.metrics["steady_state_slope_ratio"] < 0.1
    assert "not_steady" not in trial.warnings


def test_a_rate_that_is_not_steady(handed: int) -> None:
    # Two passes from the disk and all others from memory: the rate rises. The file is so small that
    # a slow disk has both done within the time.
    arguments = ("--cache-mode=buffered", "--block-bytes=4096", "--duration-s=1")
    trial = on(handed, "rand_read", f"--file-bytes={SIZE // 8}", "--steady-state=on", *arguments)
    assert trial.metrics["steady_state_range_ratio"] > 0.2
    assert "five rounds" in trial.warnings["not_steady"]


def test_steadiness_is_judged_when_requested() -> None:
    trial = measure("rand_read", *MOMENT)
    assert trial.metrics["steady_state_range_ratio"] is None
    assert "off" in trial.end["reasons"]["metrics.steady_state_range_ratio"]
