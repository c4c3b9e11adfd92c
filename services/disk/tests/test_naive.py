"""The naive workloads: they really move what they say, out of the page cache, by the calls they
name, and leave nothing behind that a sound trial would stumble over."""

import fcntl
import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.disk.tests.program import (
    MOMENT,
    NAIVE,
    call,
    measure,
    on_disk,
    running,
    scratch_file,
    table,
)
from services.disk.tests.shim import shim, shimmed
from tests.benchmark import MIB, OK, RESOURCE, USAGE, WRONG, Trial, refused

__all__ = ["shim"]  # a fixture

SIZE = MIB
CALLS = ("stdio", "unbuffered", "syscalls")
WRITING = ("naive_write", "naive_rw")
READING = ("naive_read", "naive_rw")
AT_ONCE = ("--warmup-s=0", f"--file-bytes={SIZE}")
LONG = ("--warmup-s=0", f"--file-bytes={16 * MIB}", "--sample-interval-s=0.1")


@pytest.fixture
def handed() -> Iterator[int]:
    """The unnamed file of a job."""
    descriptor = scratch_file(on_disk())
    yield descriptor
    os.close(descriptor)


def on(handed: int, workload: str, *arguments: str) -> Trial:
    return measure(workload, *AT_ONCE, *arguments, f"--scratch-fd={handed}", pass_fds=(handed,))


def blocks(handed: int, block_bytes: int) -> list[bytes]:
    """The file as it is now."""
    return [os.pread(handed, block_bytes, at) for at in range(0, SIZE, block_bytes)]


def changed(before: list[bytes], after: list[bytes]) -> list[int]:
    """The numbers of the blocks that differ."""
    return [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]


# ---- what they are -------------------------------------------------------------------------------


def test_the_table_calls_them_naive_and_no_other() -> None:
    assert {name for name, workload in table().items() if workload.get("naive")} == set(NAIVE)


@pytest.mark.parametrize("workload", NAIVE)
def test_every_metric_of_the_table_has_a_figure_or_a_reason(workload: str) -> None:
    trial = measure(workload, *MOMENT)
    names = [metric["name"] for metric in table()[workload]["metrics"]]
    assert set(trial.metrics) == set(names)
    for name, value in trial.metrics.items():
        assert (value is None) == (f"metrics.{name}" in trial.end["reasons"]), name


@pytest.mark.parametrize(("workload", "threads"), [*itertools.product(NAIVE, (1, 3))])
def test_the_figure_is_bytes_over_the_time_of_all(workload: str, threads: int) -> None:
    given = (f"--threads={threads}", "--block-bytes=4096", "--duration-s=0.15")
    trial = measure(workload, *AT_ONCE, *given)
    metrics = trial.metrics
    assert metrics["work_bytes"] % 4096 == 0
    taken_s = metrics["work_bytes"] / metrics["bytes_per_second"]
    assert 0.14 < taken_s < trial.end["elapsed_s"] + 0.01
    assert metrics["operations_per_second"] * 4096 == pytest.approx(metrics["bytes_per_second"])


# ---- what they move --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "pattern", "block_bytes"),
    [*itertools.product(CALLS, ("sequential", "random"), (8, 1000, 4096, SIZE // 4))],
)
@pytest.mark.sampled(5)
def test_reads_leave_the_file_as_it_is(
    handed: int, calls: str, pattern: str, block_bytes: int
) -> None:
    given = (f"--calls={calls}", f"--pattern={pattern}", f"--block-bytes={block_bytes}")
    total = SIZE // block_bytes // 4 * 4 * block_bytes
    on(handed, "naive_read", *given, f"--total-bytes={total}")
    before = blocks(handed, SIZE)
    trial = on(handed, "naive_read", *given, f"--total-bytes={total}", "--threads=4")
    assert trial.metrics["work_bytes"] == total
    assert trial.metrics["prefilled_bytes"] == 0 and trial.metrics["verified_blocks"] == 4
    assert blocks(handed, SIZE) == before


@pytest.mark.parametrize(
    ("workload", "calls", "block_bytes"),
    [*itertools.product(WRITING, CALLS, (512, 1000, 4096, SIZE // 4))],
)
@pytest.mark.sampled(5)
def test_a_pass_in_order_writes_every_block(
    handed: int, workload: str, calls: str, block_bytes: int
) -> None:
    on(handed, "naive_read", "--total-bytes=4096", "--block-bytes=4096")
    before = blocks(handed, block_bytes)
    given = (f"--calls={calls}", f"--block-bytes={block_bytes}")
    whole = SIZE // block_bytes
    trial = on(handed, workload, *given, f"--total-bytes={whole * block_bytes}")
    assert trial.metrics["work_bytes"] == whole * block_bytes
    assert changed(before, blocks(handed, block_bytes)) == list(range(whole))


@pytest.mark.parametrize(("workload", "calls"), [*itertools.product(WRITING, CALLS)])
def test_threads_have_parts_of_their_own(handed: int, workload: str, calls: str) -> None:
    """Two threads, each in its half, each with half of it to write."""
    on(handed, "naive_read", "--total-bytes=4096", "--block-bytes=4096")
    before = blocks(handed, 65536)
    given = (f"--calls={calls}", "--threads=2", "--block-bytes=65536")
    on(handed, workload, *given, f"--total-bytes={SIZE // 2}")
    assert changed(before, blocks(handed, 65536)) == [*range(4), *range(8, 12)]


@pytest.mark.parametrize(("workload", "calls"), [*itertools.product(WRITING, CALLS)])
def test_random_writes_stay_in_the_file(handed: int, workload: str, calls: str) -> None:
    on(handed, "naive_read", "--total-bytes=4096", "--block-bytes=4096")
    before = blocks(handed, 4096)
    given = (f"--calls={calls}", "--pattern=random", "--block-bytes=4096")
    on(handed, workload, *given, f"--total-bytes={16 * 4096}")
    found = changed(before, blocks(handed, 4096))
    assert 8 < len(found) <= 16 and found != list(range(len(found)))
    assert os.fstat(handed).st_size == SIZE


def test_what_is_read_and_written_back_is_the_same_but_for_a_word_of_each_page(handed: int) -> None:
    """So nothing in the file becomes what a device could compress, or find twice."""
    on(handed, "naive_read", "--total-bytes=4096", "--block-bytes=4096")
    before = blocks(handed, 4096)
    on(handed, "naive_rw", "--block-bytes=8192", f"--total-bytes={SIZE}")
    after = blocks(handed, 4096)
    assert [page[8:] for page in after] == [page[8:] for page in before]
    assert changed(before, after) == list(range(SIZE // 4096))
    assert len({page[:8] for page in after}) == SIZE // 4096


# ---- the page cache --------------------------------------------------------------------------


@pytest.mark.parametrize("workload", READING)
def test_the_file_is_in_the_page_cache_after_any_trial(handed: int, workload: str) -> None:
    for before in (None, "rand_read", "seq_write"):
        if before:
            on(handed, before, "--total-bytes=1048576")
        trial = on(handed, workload, "--total-bytes=1048576", "--block-bytes=8192")
        assert trial.metrics["cached_ratio_before"] > 0.99
        assert trial.metrics["device_read_ratio"] == 0
        assert not trial.warnings


@pytest.mark.parametrize("workload", NAIVE)
def test_a_sound_trial_behind_it_reads_from_the_disk(handed: int, workload: str) -> None:
    on(handed, workload, "--total-bytes=1048576")
    trial = on(handed, "seq_read", "--total-bytes=1048576")
    # What was overwritten is as incompressible as before: nothing needs to be filled.
    assert trial.metrics["prefilled_bytes"] == 0
    assert trial.metrics["cached_ratio_before"] < 0.01
    assert trial.metrics["device_read_ratio"] > 0.95 and not trial.warnings


def test_a_file_that_memory_does_not_hold_is_there_in_part(handed: int) -> None:
    """As after it was made: what was made last."""
    size, given = 128 * MIB, (f"--scratch-fd={handed}", "--total-bytes=1048576")
    measure("seq_read", f"--file-bytes={size}", *given, pass_fds=(handed,))
    trial = measure(
        *("naive_read", f"--file-bytes={size}", *given, "--warmup-s=0", "--block-bytes=8192"),
        pass_fds=(handed,),
        prefix=("prlimit", f"--as={80 * MIB}"),
        env={
            "MALLOC_ARENA_MAX": "1"
        },  # a second one takes 64 MiB of that, where addresses allow it
    )
    # What is in front of the last part comes from the disk: the trial read the first of it.
    assert 0.2 < trial.metrics["cached_ratio_before"] < 0.8
    assert trial.metrics["device_read_ratio"] > 0.95


def test_what_the_clock_left_out_stands_beside_the_figure(handed: int) -> None:
    trial = on(handed, "naive_write", "--duration-s=0.1", "--block-bytes=65536")
    metrics = trial.metrics
    assert metrics["sync_after_s"] > 0
    taken_s = metrics["work_bytes"] / metrics["bytes_per_second"] + metrics["sync_after_s"]
    expected = metrics["work_bytes"] / taken_s
    assert metrics["synced_bytes_per_second"] == pytest.approx(expected)
    reads = on(handed, "naive_read", "--total-bytes=1048576")
    assert reads.metrics["synced_bytes_per_second"] is None


# ---- the calls -------------------------------------------------------------------------------


def io_of(process: Any) -> dict[str, int]:
    """What the kernel counted of the process: bytes requested, and calls."""
    lines = Path(f"/proc/{process.pid}/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def bytes_a_call(workload: str, *arguments: str) -> float:
    """Of the reads, or of the writes, while it runs."""
    chars, calls = ("rchar", "syscr") if workload == "naive_read" else ("wchar", "syscw")
    with running(workload, *LONG, *arguments) as (process, _):
        assert process.stdout is not None
        process.stdout.readline()  # a sample: it is under way
        first = io_of(process)
        time.sleep(0.2)
        second = io_of(process)
    return (second[chars] - first[chars]) / (second[calls] - first[calls])


@pytest.mark.parametrize("workload", ["naive_read", "naive_write"])
@pytest.mark.parametrize(("calls", "bytes_each"), [("stdio", 4096), ("unbuffered", 64)])
def test_the_library_puts_small_blocks_together(workload: str, calls: str, bytes_each: int) -> None:
    given = (f"--calls={calls}", "--block-bytes=64")
    assert bytes_a_call(workload, *given) == pytest.approx(bytes_each, rel=0.1)


@pytest.mark.parametrize("workload", ["naive_read", "naive_write"])
def test_system_calls_are_of_a_block(workload: str) -> None:
    found = bytes_a_call(workload, "--calls=syscalls", "--block-bytes=1000")
    assert found == pytest.approx(1000, rel=0.1)


@pytest.mark.parametrize(("calls", "sync"), [*itertools.product(CALLS, ("none", "each"))])
def test_sync_is_a_flag_of_the_open_file(calls: str, sync: str) -> None:
    with running("naive_rw", *LONG, f"--calls={calls}", f"--sync={sync}") as (process, _):
        assert process.stdout is not None
        process.stdout.readline()
        infos = Path(f"/proc/{process.pid}/fdinfo")
        synced = [
            path.name
            for path in infos.iterdir()
            if int(path.read_text().split("flags:")[1].split()[0], 8) & os.O_SYNC == os.O_SYNC
        ]
    # The job's own descriptor of these flags, and one each to read and to write with.
    assert len(synced) == (3 if sync == "each" else 0)


def test_synced_writes_owe_the_disk_nothing(handed: int) -> None:
    given = ("--block-bytes=4096", "--duration-s=0.2")
    each = on(handed, "naive_write", *given, "--sync=each").metrics
    none = on(handed, "naive_write", *given).metrics
    assert each["bytes_per_second"] < none["bytes_per_second"] / 2
    if each["diskstats_write_bytes"] is None:
        pytest.skip("the file system reports no block device of its own")
    assert each["diskstats_write_bytes"] > 0.95 * each["work_bytes"]
    # Each block was overwritten many times in memory before the disk saw it once.
    assert none["diskstats_write_bytes"] < none["work_bytes"]


# ---- what is wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WRITING)
def test_a_write_that_was_lost_is_found(shim: str, workload: str) -> None:
    environment = shimmed(shim, lost_write=1)
    given = ("--calls=syscalls", "--total-bytes=1048576", "--block-bytes=4096")
    result = call(workload, *AT_ONCE, *given, env=environment)
    refused(result, WRONG, "4096 bytes at offset 1044480", "written")


def test_a_read_that_was_wrong_is_found(shim: str) -> None:
    given = ("--calls=syscalls", "--total-bytes=1048576", "--block-bytes=4096")
    result = call("naive_read", *AT_ONCE, *given, env=shimmed(shim, bad_read=1))
    refused(result, WRONG, "4096 bytes at offset 1044480", "read")


@pytest.mark.parametrize("workload", NAIVE)
def test_each_thread_needs_a_block(workload: str) -> None:
    result = call(workload, *AT_ONCE, "--threads=4", f"--block-bytes={SIZE // 2}")
    refused(result, USAGE, f"--file-bytes {SIZE}", f"at least --file-bytes {2 * SIZE}")


@pytest.mark.parametrize("workload", WRITING)
def test_the_write_budget_holds(workload: str) -> None:
    environment = os.environ | {"HOSTBENCH_DISK_WRITE_BUDGET_BYTES": str(2 * SIZE)}
    result = call(workload, *AT_ONCE, f"--total-bytes={2 * SIZE}", env=environment)
    refused(result, RESOURCE, f"{3 * SIZE} bytes would be written", "WRITE_BUDGET")
    result = call(workload, *AT_ONCE, "--duration-s=30", "--block-bytes=4096", env=environment)
    refused(result, RESOURCE, f"{SIZE // 4096} writes", "WRITE_BUDGET")


def test_a_total_that_takes_longer_than_the_time_is_sampled() -> None:
    given = ("--duration-s=0.1", "--block-bytes=1", f"--total-bytes={10 << 30}")
    trial = measure("naive_read", *AT_ONCE, *given)
    assert trial.warnings["sampled"].startswith(f"{trial.metrics['work_bytes']} of {10 << 30} ")


@pytest.mark.parametrize("workload", NAIVE)
def test_it_ends_when_it_must(workload: str) -> None:
    with running(workload, *LONG, "--block-bytes=1") as (process, _):
        assert process.stdout is not None
        process.stdout.readline()
        began_s = time.monotonic()
        process.terminate()
        process.wait(timeout=20)
        assert time.monotonic() - began_s < 3


def test_samples_tell_the_rate_as_it_goes() -> None:
    given = ("--duration-s=0.6", "--sample-interval-s=0.1", "--block-bytes=8192", "--threads=2")
    result = call("naive_read", *AT_ONCE, *given)
    assert result.returncode == OK
    events = [json.loads(line) for line in result.stdout.splitlines()]
    rates = [one["metrics"]["bytes_per_second"] for one in events if one["event"] == "sample"]
    assert len(rates) >= 4
    whole = events[-1]["metrics"]["bytes_per_second"]
    assert sum(rates) / len(rates) == pytest.approx(whole, rel=0.5)


def test_the_descriptor_of_the_job_stays_as_it_was(handed: int) -> None:
    before = fcntl.fcntl(handed, fcntl.F_GETFL)
    on(handed, "naive_rw", "--total-bytes=65536", "--sync=each")
    assert fcntl.fcntl(handed, fcntl.F_GETFL) == before
