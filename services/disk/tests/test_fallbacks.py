"""What a host lacks is done another way, or reported in one line; what fails is never a figure."""

import ctypes
import errno
import mmap
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from services.disk.tests.loop_disk import loop_disk, names_in
from services.disk.tests.program import (
    MOMENT,
    PROGRAM,
    call,
    measure,
    on_disk,
    program_for_all,
    running,
    scratch_file,
    table,
)
from services.disk.tests.shim import shim, shimmed
from tests.benchmark import FAILED, MIB, RESOURCE, WRONG, refused
from tests.seccomp import refusing

__all__ = ["shim"]  # a fixture

OTHER_USER = 65534


# ---- a disk that loses a write ---------------------------------------------------------------


@pytest.mark.parametrize("workload", ["seq_write", "rand_write", "rand_rw"])
def test_a_write_that_was_lost_is_found(shim: str, workload: str) -> None:
    file = ("--warmup-s=0", f"--file-bytes={MIB}", f"--total-bytes={2 * MIB}", "--verify=on")
    engine = ("--engine=psync", "--block-bytes=4096")
    environment = shimmed(shim, lost_write=200)
    refused(call(workload, *file, *engine, env=environment), WRONG, "the last write is lost")


# ---- another way -----------------------------------------------------------------------------


def test_a_file_system_without_unnamed_files(shim: str) -> None:
    with tempfile.TemporaryDirectory(dir=on_disk()) as directory:
        environment = shimmed(shim, no_tmpfile=1, names_taken=3)
        environment["HOSTBENCH_SCRATCH"] = directory
        trial = measure("rand_rw", *MOMENT, "--verify=on", env=environment)
        assert trial.metrics["verified_blocks"] > 0
        assert names_in(Path(directory)) == []


def test_a_file_system_with_a_journal_of_all_data() -> None:
    """ext4 takes O_DIRECT then, and goes through the page cache all the same."""
    with loop_disk(128 * MIB) as directory:
        image = directory.parent / "image"
        subprocess.run(["umount", directory], check=True)
        mount = ["mount", "-o", "loop,data=journal", str(image), str(directory)]
        subprocess.run(mount, check=True)
        environment = os.environ | {
            "HOSTBENCH_SCRATCH": str(directory),
            "HOSTBENCH_DISK_RESERVE_BYTES": "0",
        }
        read = measure("rand_read", *MOMENT, env=environment)
        write = measure("seq_write", *MOMENT, "--cache-mode=direct+dsync", env=environment)
        synced = measure("seq_write", *MOMENT, "--cache-mode=direct+sync", env=environment)
    assert read.params["cache_mode"] == "buffered"
    assert "refuses O_DIRECT" in read.warnings["direct_unavailable"]
    assert write.params["cache_mode"] == "buffered+dsync"
    assert "direct+dsync" in write.warnings["direct_unavailable"]
    assert synced.params["cache_mode"] == "buffered+sync"


def test_a_file_system_that_takes_o_direct_and_ignores_it(shim: str) -> None:
    once = (f"--file-bytes={16 * MIB}", f"--total-bytes={16 * MIB}", "--warmup-s=0")
    environment = shimmed(shim, no_direct=1)
    write = measure("seq_write", *once, env=environment)
    assert write.metrics["cached_ratio_after"] > 0.9
    assert "afterwards" in write.warnings["page_cache_measured"]
    again = measure("seq_read", *once[:1], f"--total-bytes={32 * MIB}", env=environment)
    assert "cache_contaminated" in again.warnings


@pytest.mark.parametrize("workload", ["seq_read", "rand_write"])
def test_a_little_that_goes_through_the_cache(shim: str, workload: str) -> None:
    """Far less than the file, yet all that was moved."""
    some = (f"--file-bytes={128 * MIB}", f"--total-bytes={MIB}", "--warmup-s=0")
    trial = measure(workload, *some, env=shimmed(shim, no_direct=1))
    assert "afterwards" in trial.warnings["page_cache_measured"]


@pytest.mark.parametrize("workload", ["seq_read", "rand_write"])
def test_a_kernel_that_tells_nothing_of_the_page_cache(shim: str, workload: str) -> None:
    environment = shimmed(shim, no_accounts=1, no_mincore=1)
    trial = measure(workload, *MOMENT, env=environment, preexec_fn=refusing("cachestat"))
    assert trial.metrics["cached_ratio_before"] is None
    assert trial.metrics["device_read_ratio"] is None
    assert set(trial.warnings) == ({"no_cache_evidence"} if workload == "seq_read" else set())


def test_what_is_not_known_is_not_reported(shim: str) -> None:
    twice = (f"--file-bytes={16 * MIB}", f"--total-bytes={32 * MIB}", "--cache-mode=buffered")
    environment = shimmed(shim, no_mincore=1)
    trial = measure("seq_read", *twice, env=environment, preexec_fn=refusing("cachestat"))
    assert trial.warnings["cache_contaminated"].startswith("50 % of the bytes read came from")
    assert "nan" not in trial.warnings["cache_contaminated"]


@pytest.mark.parametrize("workload", ["seq_read", "rand_rw"])
def test_without_the_calls_that_a_filter_may_refuse(workload: str) -> None:
    refuse = refusing("fsetxattr", "fallocate", "cachestat")
    trial = measure(workload, *MOMENT, "--verify=on", preexec_fn=refuse)
    assert trial.metrics["cached_ratio_before"] == 0
    assert trial.metrics["device_read_ratio"] == pytest.approx(1, abs=0.05)


def test_both_ways_of_counting_cached_pages_agree() -> None:
    size = 16 * MIB
    handed = scratch_file(on_disk())
    arguments = ("seq_read", f"--file-bytes={size}", f"--scratch-fd={handed}")
    once = (*arguments, f"--total-bytes={size}", "--cache-mode=buffered")
    measure(*once, pass_fds=(handed,))
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(handed, size) as kept:
        address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(kept)))
        if libc.mlock(address, ctypes.c_size_t(size // 4)):
            pytest.skip(f"no memory may be locked here: {os.strerror(ctypes.get_errno())}")
        looked_up = measure(*once, pass_fds=(handed,))
        counted = measure(*once, pass_fds=(handed,), preexec_fn=refusing("cachestat"))
        libc.munlock(address, ctypes.c_size_t(size // 4))
        del address
    os.close(handed)
    for trial in (looked_up, counted):
        assert trial.metrics["cached_ratio_before"] == pytest.approx(0.25, abs=0.001)
        assert trial.metrics["cached_ratio_after"] == 1


def test_without_attributes_each_trial_fills() -> None:
    handed = scratch_file(on_disk())
    for _ in range(2):
        trial = measure(
            "seq_read",
            *MOMENT,
            f"--scratch-fd={handed}",
            pass_fds=(handed,),
            preexec_fn=refusing("fsetxattr"),
        )
        assert trial.metrics["prefilled_bytes"] == 16 * MIB
    os.close(handed)


@pytest.mark.parametrize("call_name", ["io_uring_setup", "io_setup"])
def test_the_table_says_which_engines_are_not_here(call_name: str) -> None:
    lacking = table(preexec_fn=refusing(call_name))["seq_read"]["params"]
    (engine,) = (param for param in lacking if param["name"] == "engine")
    expected = {"io_uring", "io_uring_fixed"} if call_name == "io_uring_setup" else {"libaio"}
    assert expected <= set(engine["unsupported"])
    assert not {"auto", "psync", "mmap"} & set(engine["unsupported"])


# ---- the default directory -------------------------------------------------------------------


def test_the_default_directory_is_made_and_must_be_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    directory = Path(f"/var/tmp/hostbench-{OTHER_USER}")
    if directory.exists():
        pytest.skip(f"{directory} is there already")
    monkeypatch.delenv("HOSTBENCH_SCRATCH", raising=False)
    other_user: dict[str, Any] = {"user": OTHER_USER, "group": OTHER_USER, "cwd": "/"}
    with program_for_all() as program:
        measure("seq_read", *MOMENT, program=program, **other_user)
        try:
            status = directory.stat()
            assert status.st_uid == OTHER_USER and status.st_mode & 0o7777 == 0o700
            os.chown(directory, 0, 0)
            directory.chmod(0o1777)
            result = call("seq_read", *MOMENT, program=program, **other_user)
            refused(result, RESOURCE, str(directory), "user 0")
        finally:
            directory.rmdir()


# ---- what fails ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "parts"),
    [
        (errno.ENOSPC, RESOURCE, ["ENOSPC", "no space is left", "--file-bytes"]),
        (errno.EDQUOT, RESOURCE, ["EDQUOT", "quota"]),
        (errno.EROFS, RESOURCE, ["EROFS", "read-only", "dmesg"]),
        (errno.EIO, FAILED, ["EIO", "the device failed", "smartctl"]),
        (errno.EINVAL, FAILED, ["EINVAL", "refuses", "4096"]),
        (errno.ENXIO, FAILED, ["ENXIO", "dmesg"]),
    ],
)
def test_a_write_that_fails_while_the_file_is_filled(
    shim: str, error: int, code: int, parts: list[str]
) -> None:
    environment = shimmed(shim, write_errno=error, from_byte=8 * MIB)
    result = call("seq_read", *MOMENT, env=environment)
    refused(result, code, f"writing {MIB} bytes at offset {8 * MIB}", *parts)


@pytest.mark.parametrize("engine", ["psync", "io_uring"])
def test_a_sync_that_fails(shim: str, engine: str) -> None:
    environment = shimmed(shim, fsync_errno=errno.EIO)
    refused(call("seq_read", *MOMENT, env=environment), FAILED, "fsync", "EIO", "smartctl")
    arguments = (*MOMENT, f"--engine={engine}", "--cache-mode=buffered+fsync_end")
    environment = shimmed(shim, fdatasync_errno=errno.ENOSPC)
    refused(call("seq_write", *arguments, env=environment), RESOURCE, "fdatasync", "ENOSPC")


@pytest.mark.parametrize(("error", "code"), [(errno.EIO, FAILED), (errno.ENOSPC, RESOURCE)])
def test_writing_back_that_fails(shim: str, error: int, code: int) -> None:
    environment = shimmed(shim, range_errno=error)
    result = call("seq_read", *MOMENT, env=environment)
    refused(result, code, "sync_file_range", errno.errorcode[error])


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM, errno.ESPIPE])
def test_writing_back_in_pieces_that_cannot_be_had(shim: str, error: int) -> None:
    arguments = (f"--total-bytes={16 * MIB}", "--cache-mode=buffered+fsync_end")
    environment = shimmed(shim, range_errno=error)
    trial = measure("seq_write", f"--file-bytes={16 * MIB}", *arguments, env=environment)
    assert trial.metrics["device_write_ratio"] == pytest.approx(1, abs=0.05)


def test_a_file_that_is_only_read_is_synced_before(shim: str) -> None:
    """Its user before may have left pages that cannot be dropped."""
    handed = scratch_file(on_disk())
    arguments = (*MOMENT, f"--scratch-fd={handed}")
    measure("seq_read", *arguments, pass_fds=(handed,))
    environment = shimmed(shim, fsync_errno=errno.EIO)
    result = call("seq_read", *arguments, pass_fds=(handed,), env=environment)
    os.close(handed)
    refused(result, FAILED, "fsync", "EIO")


# ---- ending by a signal ------------------------------------------------------------------------


LONG = ("--duration-s=60", "--warmup-s=0")
AT_THE_END = (f"--total-bytes={128 * MIB}", "--cache-mode=buffered+fsync_end")


@pytest.mark.parametrize(
    ("arguments", "slow"),
    [
        (["seq_read", *LONG], {"write_ms": 300}),
        (["seq_read", *LONG], {"range_ms": 100}),
        (["seq_write", *AT_THE_END], {"range_ms": 100}),
    ],
    ids=["filling", "syncing", "the last sync"],
)
def test_a_signal_is_obeyed_however_slow_the_disk(
    shim: str, arguments: list[str], slow: dict[str, int]
) -> None:
    process = subprocess.Popen(
        [PROGRAM, *arguments, f"--file-bytes={128 * MIB}"],
        env=shimmed(shim, **slow),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        time.sleep(1.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        signalled_s = time.monotonic()
        output, messages = process.communicate(timeout=20)
        assert time.monotonic() - signalled_s < 1
    assert process.returncode == FAILED and "ended by SIGTERM" in messages, output


def test_the_end_is_reported_while_the_kernel_keeps_a_thread(shim: str) -> None:
    with running("rand_read", *MOMENT[:1], env=shimmed(shim, join_s=30)) as (process, _):
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=10)
    assert process.returncode == FAILED and '"interrupted"' in output
