"""What a file system has room for, and that nothing is left there whatever happens."""

import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from services.disk.tests.loop_disk import free_bytes, loop_disk, names_in
from services.disk.tests.program import PROGRAM, call, measure, on_disk
from tests.benchmark import FAILED, MIB, RESOURCE, refused

Process = subprocess.Popen[str]
Result = subprocess.CompletedProcess[str]

GIB = 1024 * MIB
WAIT_S = 20.0
# A file system without extents cannot set space aside: it is taken while the file is filled.
LAZY = ("-O", "^extent,^64bit,^has_journal")


def environment(directory: Path, reserve_bytes: int | None = 0) -> dict[str, str]:
    """With the file there, and so many bytes kept free; None: the default."""
    given = os.environ | {"HOSTBENCH_SCRATCH": str(directory)}
    if reserve_bytes is not None:
        given["HOSTBENCH_DISK_RESERVE_BYTES"] = str(reserve_bytes)
    return given


@pytest.fixture(scope="module")
def small_disk() -> Iterator[Path]:
    with loop_disk(64 * MIB) as directory:
        yield directory


def fill(directory: Path, size_bytes: int, reserve_bytes: int | None = 0) -> Result:
    """A short trial with a file of this size."""
    arguments = ("seq_read", "--duration-s=0.05", f"--file-bytes={size_bytes}")
    return call(*arguments, env=environment(directory, reserve_bytes))


# ---- room before the trial -------------------------------------------------------------------


def test_a_file_that_fits(small_disk: Path) -> None:
    before = free_bytes(small_disk)
    trial = measure(
        "seq_read", "--duration-s=0.05", f"--file-bytes={32 * MIB}", env=environment(small_disk)
    )
    assert trial.metrics["prefilled_bytes"] == 32 * MIB
    assert free_bytes(small_disk) == before
    assert names_in(small_disk) == ["lost+found"]


def test_a_file_that_does_not_fit(small_disk: Path) -> None:
    before = free_bytes(small_disk)
    refused(
        fill(small_disk, 64 * MIB),
        RESOURCE,
        f"{64 * MIB} more bytes are needed",
        f"{before} are free",
        "HOSTBENCH_DISK_RESERVE_BYTES",
        f"smaller by {64 * MIB - before}",
    )
    assert free_bytes(small_disk) == before


def test_a_file_that_would_touch_the_reserve(small_disk: Path) -> None:
    free = free_bytes(small_disk)
    refused(fill(small_disk, 32 * MIB, free - 31 * MIB), RESOURCE, f"{free - 31 * MIB} of them")
    assert fill(small_disk, 31 * MIB, free - 31 * MIB).returncode == 0


def test_a_handed_file_that_does_not_fit_names_its_directory(small_disk: Path) -> None:
    handed = os.open(small_disk, os.O_TMPFILE | os.O_RDWR, 0o600)
    arguments = ("seq_read", f"--file-bytes={64 * MIB}", f"--scratch-fd={handed}")
    result = call(*arguments, env=environment(small_disk), pass_fds=(handed,))
    os.close(handed)
    refused(result, RESOURCE, f"{small_disk}: ", "more bytes are needed")


def test_the_reserve_by_default_is_five_gibibytes(small_disk: Path) -> None:
    refused(fill(small_disk, MIB, None), RESOURCE, f"{5 * GIB} of them are kept")


def test_a_read_only_file_system(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    try:
        refused(fill(small_disk, MIB), RESOURCE, str(small_disk), "read-only")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)


def test_the_limit_of_file_sizes() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

    result = call("seq_read", f"--file-bytes={2 * MIB}", preexec_fn=limit)
    refused(result, RESOURCE, "EFBIG", "ulimit -f", "--file-bytes")


# ---- room that goes while the file is filled -------------------------------------------------


def used_by(directory: Path, before: int, process: Process, least: int) -> None:
    """Wait until so many bytes of the file system are taken."""
    end = time.monotonic() + WAIT_S
    while before - free_bytes(directory) < least:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.001)


@contextmanager
def filling(directory: Path, size_bytes: int, reserve_bytes: int) -> Iterator[Process]:
    """A trial that is stopped in the middle of filling its file, and let go on behind the body."""
    before = free_bytes(directory)
    process = subprocess.Popen(
        [PROGRAM, "seq_read", f"--file-bytes={size_bytes}", "--duration-s=60"],
        env=environment(directory, reserve_bytes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            used_by(directory, before, process, size_bytes // 8)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            yield process
        finally:
            process.kill()


def outcome(process: Process) -> Result:
    """Of a stopped process, when it has gone on and ended."""
    process.send_signal(signal.SIGCONT)
    output, messages = process.communicate(timeout=WAIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, output, messages)


def take(directory: Path, size_bytes: int) -> Path:
    """Somebody else's file of this size; a smaller one where the file system has taken the rest for
    its own tables."""
    path = directory / "other"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        left = size_bytes
        while left > 0:
            left -= file.write(bytes(min(left, MIB)))
    return path


def test_others_take_the_reserve() -> None:
    with loop_disk(GIB) as directory:
        reserve = free_bytes(directory) - 600 * MIB
        with filling(directory, 512 * MIB, reserve) as process:
            other = take(directory, 200 * MIB)
            refused(outcome(process), RESOURCE, "more bytes are needed", f"{reserve} of them")
        assert other.stat().st_size == 200 * MIB
        other.unlink()


def test_others_take_all_of_it() -> None:
    with loop_disk(GIB, LAZY) as directory:
        with filling(directory, 768 * MIB, 0) as process:
            other = take(directory, free_bytes(directory) - 2 * MIB)
            result = outcome(process)
        line = refused(result, RESOURCE, "free some", "smaller")
        assert "no space is left" in line or "more bytes are needed" in line
        assert names_in(directory) == ["lost+found", "other"]
        other.unlink()


# ---- nothing is left -------------------------------------------------------------------------

PRECIOUS = b"no trial may touch this\n" * 1000


def free_again(directory: Path, before: int) -> bool:
    """Whether all space is back; the kernel gives it back when the process is gone."""
    end = time.monotonic() + WAIT_S
    while free_bytes(directory) != before and time.monotonic() < end:
        time.sleep(0.05)
    return free_bytes(directory) == before


def start(directory: Path, workload: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            PROGRAM,
            workload,
            f"--file-bytes={256 * MIB}",
            "--duration-s=60",
            "--cache-mode=buffered",
        ],
        env=environment(directory),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("options", [(), LAZY], ids=["extents", "blocks"])
def test_killed_at_any_moment(options: tuple[str, ...]) -> None:
    moments = random.Random(2026)
    with loop_disk(512 * MIB, options) as directory:
        mine = directory / "mine"
        mine.write_bytes(PRECIOUS)
        before = free_bytes(directory)
        taken = 0
        for number in range(10):
            process = start(directory, ("rand_write", "seq_rw")[number % 2])
            time.sleep(moments.uniform(0, 0.6))
            taken += free_bytes(directory) < before
            process.kill()
            assert process.wait(timeout=WAIT_S) == -signal.SIGKILL
            assert free_again(directory, before), number
            assert names_in(directory) == ["lost+found", "mine"]
        assert mine.read_bytes() == PRECIOUS
        assert taken >= 5  # Otherwise nothing was there to be left.


@pytest.mark.parametrize("when_s", [0.02, 0.3])
def test_a_signal_ends_it(when_s: float) -> None:
    directory = on_disk()
    names = set(names_in(directory))
    process = subprocess.Popen(
        [PROGRAM, "rand_write", f"--file-bytes={512 * MIB}", "--duration-s=60"],
        env=environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        time.sleep(when_s)
        process.send_signal(signal.SIGTERM)
        signalled_s = time.monotonic()
        process.communicate(timeout=WAIT_S)
        assert time.monotonic() - signalled_s < 2
    # A signal before the program has caught it ends it as any other.
    assert process.returncode in (FAILED, -signal.SIGTERM)
    assert not set(names_in(directory)) - names
