"""The file that a job keeps between its trials: filled once, grown, never somebody's own."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.disk.tests.program import (
    MOMENT,
    READING,
    WORKLOADS,
    call,
    measure,
    on_disk,
    running,
    scratch_file,
)
from tests.benchmark import MIB, RESOURCE, USAGE, WRONG, Trial, refused

SIZE = 16 * MIB


@pytest.fixture
def handed() -> Iterator[int]:
    descriptor = scratch_file(on_disk())
    yield descriptor
    os.close(descriptor)


def on(handed: int, workload: str, *arguments: str) -> Trial:
    """A short trial with this file."""
    return measure(workload, *MOMENT, f"--scratch-fd={handed}", *arguments, pass_fds=(handed,))


def filled(trial: Trial) -> int:
    """Bytes that were missing of the file."""
    found: int = trial.metrics["prefilled_bytes"]
    return found


def test_it_is_filled_once(handed: int) -> None:
    assert filled(on(handed, "seq_read")) == SIZE
    for workload in WORKLOADS:
        assert filled(on(handed, workload)) == 0, workload
    assert os.fstat(handed).st_size == SIZE


def test_it_is_really_written(handed: int) -> None:
    on(handed, "seq_read")
    assert os.fstat(handed).st_blocks * 512 >= SIZE
    pages = {os.pread(handed, 4096, at) for at in range(0, SIZE, 4096)}
    assert len(pages) == SIZE // 4096
    assert not any(page.count(0) > 100 for page in pages)


def test_it_grows(handed: int) -> None:
    on(handed, "seq_read")
    arguments = ("--duration-s=0.05", f"--scratch-fd={handed}")
    more = measure("rand_read", f"--file-bytes={SIZE + 5000}", *arguments, pass_fds=(handed,))
    assert filled(more) == 4096 and more.metrics["covered_bytes"] == SIZE + 4096
    assert filled(on(handed, "seq_read")) == 0
    # What was filled by the larger trial is still known to be there.
    again = measure("rand_read", f"--file-bytes={SIZE + 5000}", *arguments, pass_fds=(handed,))
    assert filled(again) == 0


def test_what_compresses_is_not_read_for_what_does_not(handed: int) -> None:
    assert filled(on(handed, "seq_read", "--compressible=0.5")) == SIZE
    zeros = os.pread(handed, 4096, 8192).count(0)
    assert 2048 <= zeros < 2148
    assert filled(on(handed, "seq_read", "--compressible=0.5")) == 0
    assert filled(on(handed, "seq_write")) == 0  # … but it may be written over …
    assert filled(on(handed, "seq_read")) == SIZE  # … and is then of two kinds.


def test_each_kind_of_content_that_is_verified_is_filled_once(handed: int) -> None:
    assert filled(on(handed, "rand_read", "--verify=on")) == SIZE
    for workload in ("rand_read", "rand_rw", "rand_read"):
        trial = on(handed, workload, "--verify=on")
        assert filled(trial) == 0 and trial.metrics["verified_blocks"] > 0
    # Blocks of another size have other headers.
    assert filled(on(handed, "rand_read", "--verify=on", "--block-bytes=8192")) == SIZE
    # What is written without headers cannot be verified.
    assert filled(on(handed, "rand_write")) == 0
    assert filled(on(handed, "rand_read", "--verify=on", "--block-bytes=8192")) == SIZE


@pytest.mark.parametrize("workload", READING)
def test_a_killed_trial_leaves_nothing_to_rely_on(handed: int, workload: str) -> None:
    arguments = (f"--file-bytes={SIZE}", "--verify=on", f"--scratch-fd={handed}")
    with running("rand_write", *arguments, pass_fds=(handed,)) as (process, _):
        process.kill()
        process.wait()
    trial = on(handed, workload, "--verify=on", "--block-bytes=4096")
    assert filled(trial) == SIZE


# ---- verification ------------------------------------------------------------------------------

BLOCK = 4096
VERIFIED = ("--verify=on", f"--block-bytes={BLOCK}")


def flip(handed: int, offset: int) -> None:
    """Another bit in that byte, and no trace of who did it: as a disk that goes bad."""
    before = os.fstat(handed)
    (byte,) = os.pread(handed, 1, offset)
    os.pwrite(handed, bytes([byte ^ 4]), offset)
    os.fsync(handed)
    os.utime(handed, ns=(before.st_atime_ns, before.st_mtime_ns))


# In the header, right behind it, in the middle, the last byte of all.
@pytest.mark.parametrize("offset", [5 * BLOCK, 5 * BLOCK + 20, 41, 7 * BLOCK + 2000, SIZE - 1])
def test_a_flipped_bit_is_found(handed: int, offset: int) -> None:
    on(handed, "seq_read", *VERIFIED)
    flip(handed, offset)
    arguments = (f"--file-bytes={SIZE}", f"--total-bytes={SIZE}", f"--scratch-fd={handed}")
    result = call("seq_read", *VERIFIED, *arguments, pass_fds=(handed,))
    start = offset // BLOCK * BLOCK
    refused(result, WRONG, f"at offset {start}", "read back wrong", "smartctl")


def test_a_block_in_the_wrong_place_is_found(handed: int) -> None:
    on(handed, "seq_read", *VERIFIED)
    before = os.fstat(handed)
    os.pwrite(handed, os.pread(handed, BLOCK, 3 * BLOCK), 9 * BLOCK)
    os.fsync(handed)
    os.utime(handed, ns=(before.st_atime_ns, before.st_mtime_ns))
    arguments = (f"--file-bytes={SIZE}", f"--total-bytes={SIZE}", f"--scratch-fd={handed}")
    result = call("seq_read", *VERIFIED, *arguments, pass_fds=(handed,))
    refused(result, WRONG, f"at offset {9 * BLOCK}", "another block of this file")


def test_a_bit_that_flips_during_the_trial_is_found(handed: int) -> None:
    on(handed, "seq_read", *VERIFIED)
    arguments = (*VERIFIED, f"--file-bytes={SIZE}", f"--scratch-fd={handed}")
    with running("seq_read", *arguments, pass_fds=(handed,)) as (process, _):
        flip(handed, 11 * BLOCK + 100)
        assert process.wait(timeout=30) == WRONG


def test_without_verify_no_block_is_checked(handed: int) -> None:
    on(handed, "seq_read", *VERIFIED)
    flip(handed, 41)
    assert on(handed, "seq_read", f"--block-bytes={BLOCK}").metrics["verified_blocks"] is None


def test_what_somebody_else_has_written_is_filled_again_and_not_held_against_the_disk(
    handed: int,
) -> None:
    on(handed, "seq_read", *VERIFIED)
    os.pwrite(handed, b"fio was here", 3 * BLOCK)
    assert filled(on(handed, "seq_read", *VERIFIED)) == SIZE


def test_what_somebody_else_has_written_is_filled_once_more_before_it_is_read(handed: int) -> None:
    """It may compress."""
    on(handed, "seq_read")
    for _ in range(2):
        os.pwrite(handed, bytes(BLOCK), 3 * BLOCK)
        assert filled(on(handed, "seq_write")) == 0
        assert filled(on(handed, "seq_read")) == SIZE
        assert filled(on(handed, "seq_read")) == 0


@pytest.mark.parametrize(
    "damage", [["truncate", f"--size={SIZE // 2}"], ["fallocate", "-p", f"-l{SIZE // 2}"]]
)
def test_what_somebody_else_has_taken_out_is_filled_again(handed: int, damage: list[str]) -> None:
    on(handed, "seq_read")
    before = os.fstat(handed)
    subprocess.run([*damage, f"/proc/{os.getpid()}/fd/{handed}"], check=True)
    os.utime(handed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert filled(on(handed, "rand_write")) == SIZE
    assert os.fstat(handed).st_blocks * 512 >= SIZE


def test_a_full_file_needs_no_room(handed: int) -> None:
    on(handed, "seq_read")
    environment = os.environ | {"HOSTBENCH_DISK_RESERVE_BYTES": str(1 << 60)}
    arguments = (*MOMENT, f"--scratch-fd={handed}")
    trial = measure("seq_read", *arguments, pass_fds=(handed,), env=environment)
    assert filled(trial) == 0


# ---- what is no such file ----------------------------------------------------------------------


def refuse(descriptor: int, *parts: str, code: int = USAGE) -> None:
    result = call("seq_write", *MOMENT, f"--scratch-fd={descriptor}", pass_fds=(descriptor,))
    refused(result, code, f"--scratch-fd {descriptor}", *parts)


def test_a_file_with_a_name_is_never_written_to() -> None:
    with tempfile.NamedTemporaryFile(dir=on_disk()) as file:
        file.write(b"precious")
        file.flush()
        refuse(file.fileno(), "has a name", "unnamed file")
        assert Path(file.name).read_bytes() == b"precious"


def test_a_device_or_pipe_is_never_written_to() -> None:
    reading, writing = os.pipe()
    refuse(writing, "not a regular file")
    os.close(reading)
    os.close(writing)
    null = os.open("/dev/null", os.O_RDWR)
    refuse(null, "not a regular file")
    os.close(null)


def test_a_descriptor_that_cannot_be_written_or_is_not_there(handed: int) -> None:
    reading = os.open(f"/proc/self/fd/{handed}", os.O_RDONLY)
    refuse(reading, "reading and writing")
    os.close(reading)
    result = call("seq_write", *MOMENT, "--scratch-fd=1000")
    refused(result, USAGE, "--scratch-fd 1000", "not open")


def test_memory_is_no_disk() -> None:
    descriptor = os.memfd_create("scratch")
    refuse(descriptor, "in memory (tmpfs)", code=RESOURCE)
    os.close(descriptor)
