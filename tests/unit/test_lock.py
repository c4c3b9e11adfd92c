"""One run at a time on a host."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.errors import BusyError, ResourceError
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host import lock as lock_module
from hostbench.host.lock import (
    Claim,
    HostBusyError,
    HostLock,
    StaleFenceError,
    check_lock,
    fence_of,
    host_lock,
    lock_path,
)
from hostbench.model.service import FENCE_MOST
from tests.patience import SOON_S

OTHER_USER = 65534


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTBENCH_LOCK", str(tmp_path / "hostbench.lock"))
    return tmp_path / "hostbench.lock"


def test_the_second_gets_the_holders_name(path: Path, interrupt: Interrupt) -> None:
    with host_lock(0, interrupt) as held:
        held.name_holder("20261120T174501Z-quick-3f2a")
        with pytest.raises(BusyError) as caught, host_lock(0, interrupt):
            pass
    message = caught.value.message
    assert "20261120T174501Z-quick-3f2a" in message
    assert f"pid {os.getpid()}" in message
    assert "--wait SECONDS" in message and str(path) in message
    with host_lock(0, interrupt):
        pass


def test_waiting_for_it(path: Path, interrupt: Interrupt) -> None:
    first = HostLock(path)
    first.take(0, interrupt)
    threading.Timer(0.3, first.close).start()
    with host_lock(10, interrupt):
        pass


def test_waiting_ends_with_the_time_given(path: Path, interrupt: Interrupt) -> None:
    with host_lock(0, interrupt):
        began = time.monotonic()
        with pytest.raises(BusyError), host_lock(0.4, interrupt):
            pass
        assert 0.4 <= time.monotonic() - began < SOON_S


def test_waiting_ends_with_a_signal(path: Path, interrupt: Interrupt) -> None:
    impatient = Interrupt()
    threading.Timer(0.2, impatient._handle, (signal.SIGINT, None)).start()
    with host_lock(0, interrupt), pytest.raises(Interrupted), host_lock(60, impatient):
        pass
    impatient.close()


def test_a_program_that_inherited_it_holds_it_on(path: Path, interrupt: Interrupt) -> None:
    held = HostLock(path)
    held.take(0, interrupt)
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                               pass_fds=[held.descriptor])  # fmt: skip
    held.close()
    with pytest.raises(BusyError), host_lock(0, interrupt):
        pass
    sleeper.communicate(b"\n")
    with host_lock(0, interrupt):
        pass


def test_what_else_stands_in_the_file_stays(path: Path, interrupt: Interrupt) -> None:
    path.write_text('{"schema": 1, "fence": 17}\n')
    with host_lock(0, interrupt) as held:
        held.name_holder("job")
        content = json.loads(path.read_text())
    assert content["fence"] == 17
    assert content["holder"]["pid"] == os.getpid()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b"{}",
        b'{"holder": 3}',
        b'{"holder": {"since_unix_s": "x"}}',
        b'{"holder": {"since_unix_s": 1e300, "job": "a\\nb"}}',
        b"x" * 100_000,
        b"[" * 4096,
        b'{"holder": {"job": "\\ud800", "pid": 1e400}}',
    ],
)
def test_whatever_stands_in_the_file_the_message_is_one_line(
    path: Path, interrupt: Interrupt, content: bytes
) -> None:
    with host_lock(0, interrupt):
        path.write_bytes(content)
        with pytest.raises(BusyError) as caught, host_lock(0, interrupt):
            pass
    assert "\n" not in caught.value.message
    assert "this host is busy" in caught.value.message


def test_other_users_can_take_it_whatever_the_umask(path: Path) -> None:
    before = os.umask(0o077)
    try:
        HostLock(path).close()
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666


@pytest.fixture
def directory_of_others() -> Iterator[Path]:
    """A directory, with a file `read-only` and a file `open` in it, that the test may not write."""
    directory = Path(tempfile.mkdtemp())
    for name, mode in (("read-only", 0o444), ("open", 0o666)):
        (directory / name).write_text("{}")
        (directory / name).chmod(mode)
    directory.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(OTHER_USER)
    yield directory
    os.seteuid(user)
    directory.chmod(0o755)
    shutil.rmtree(directory)


def test_a_lock_that_cannot_serve_is_reported_with_the_remedy(directory_of_others: Path) -> None:
    absent, read_only = directory_of_others / "absent", directory_of_others / "read-only"
    with pytest.raises(ResourceError, match=f"as root: install --mode=666 /dev/null {absent};"):
        check_lock(absent)
    with pytest.raises(ResourceError, match=f"as root: chmod 666 {read_only}"):
        check_lock(read_only)
    check_lock(directory_of_others / "open")


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResourceError, match=r"symbolic link.*HOSTBENCH_LOCK"):
        HostLock(path)
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_no_file_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(ResourceError, match=r"not a regular file.*HOSTBENCH_LOCK"):
        HostLock(path)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"No such file.*HOSTBENCH_LOCK"):
        HostLock(tmp_path / "none" / "hostbench.lock")


def test_the_file_is_not_inherited_by_accident(path: Path) -> None:
    held = HostLock(path)
    assert not os.get_inheritable(held.descriptor)
    held.close()


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTBENCH_LOCK", raising=False)
    monkeypatch.setattr(lock_module, "LOCK_DIRECTORY", tmp_path)
    assert lock_path() == tmp_path / "hostbench.lock"
    monkeypatch.setattr(lock_module, "LOCK_DIRECTORY", tmp_path / "none")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert lock_path() == tmp_path / "hostbench.lock"


def claim(fence: int | None, job: str = "job") -> Claim:
    return Claim(job=job, service="cpu", host="bench-1", fence=fence)


@contextlib.contextmanager
def claimed(path: Path, fence: int | None, interrupt: Interrupt) -> Iterator[HostLock]:
    lock = HostLock(path)
    try:
        lock.claim(claim(fence), interrupt)
        yield lock
    finally:
        lock.close()


def test_a_claim_names_its_holder_and_keeps_the_highest_fence(
    path: Path, interrupt: Interrupt
) -> None:
    with claimed(path, 7, interrupt) as lock:
        content = json.loads(path.read_text())
        assert content["fence"] == 7 and lock.fence() == 7 == fence_of(path)
        assert content["holder"]["service"] == "cpu" and content["holder"]["host"] == "bench-1"
        assert content["holder"]["fence"] == 7 and content["holder"]["pid"] == os.getpid()
    with claimed(path, None, interrupt):
        content = json.loads(path.read_text())
        assert content["fence"] == 7 and "fence" not in content["holder"]


def test_a_lower_fence_is_stale_and_an_equal_one_is_not(path: Path, interrupt: Interrupt) -> None:
    with claimed(path, 7, interrupt):
        pass
    with pytest.raises(StaleFenceError, match=f"fence 6 is too old.*{path}") as caught:
        HostLock(path).claim(claim(6), interrupt)
    assert caught.value.highest == 7
    with claimed(path, 7, interrupt):
        pass


@pytest.mark.parametrize("fence", [None, 6, 7])
def test_no_claim_waits_for_its_equal(path: Path, interrupt: Interrupt, fence: int | None) -> None:
    error = StaleFenceError if fence == 6 else HostBusyError
    with claimed(path, 7, interrupt):
        began = time.monotonic()
        with pytest.raises(error, match=r"fence|busy with job 'job'"):
            HostLock(path).claim(claim(fence), interrupt)
        assert time.monotonic() - began < lock_module.PREEMPT_S_MOST


def test_a_higher_fence_is_reported_and_waits(path: Path, interrupt: Interrupt) -> None:
    first = HostLock(path)
    first.claim(claim(7), interrupt)

    def yields() -> None:
        while first.fence() == 7:
            time.sleep(0.01)
        first.close()

    thread = threading.Thread(target=yields)
    thread.start()
    with claimed(path, 8, interrupt) as lock:
        assert lock.fence() == 8
    thread.join()


def test_a_higher_fence_does_not_wait_for_an_embedded_run(path: Path, interrupt: Interrupt) -> None:
    with claimed(path, 7, interrupt):
        pass
    with host_lock(0, interrupt) as held:
        held.name_holder("embedded")
        with pytest.raises(HostBusyError, match="embedded") as caught:
            HostLock(path).claim(claim(8), interrupt)
        assert caught.value.holder["job"] == "embedded" and held.fence() == 7


def test_waiting_for_a_lower_fence_ends(
    path: Path, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "PREEMPT_S_MOST", 0.3)
    with claimed(path, 7, interrupt):
        with pytest.raises(HostBusyError, match="busy with job 'job'"):
            HostLock(path).claim(claim(8), interrupt)
        assert fence_of(path) == 8
        interrupt.trip()
        with pytest.raises(Interrupted):
            HostLock(path).claim(claim(9), interrupt)


@pytest.mark.parametrize(
    "fence", ['"8"', "true", "-1", "8.0", "null", "[8]", str(FENCE_MOST + 1), "NaN"]
)
def test_what_is_no_fence_counts_as_none(path: Path, interrupt: Interrupt, fence: str) -> None:
    path.write_text(f'{{"fence": {fence}, "holder": {{"fence": {fence}}}}}')
    assert fence_of(path) == 0
    with claimed(path, 1, interrupt):
        assert fence_of(path) == 1


def test_a_fence_counts_whatever_the_clock_says(path: Path) -> None:
    for fence in (1, int(time.time() * 1000) + 8 * 3_600_000, FENCE_MOST):
        path.write_text(json.dumps({"fence": fence}))
        assert fence_of(path) == fence


@pytest.mark.parametrize("rest", ["[" * 2000 + "]" * 2000, f'"{"x" * 4000}"'])
def test_what_is_too_much_to_keep_does_not_cost_the_fence(
    path: Path, interrupt: Interrupt, rest: str
) -> None:
    path.write_text(f'{{"fence": 7, "rest": {rest}}}')
    for _ in range(2):
        with claimed(path, 8, interrupt):
            assert fence_of(path) == 8


def test_what_a_holder_is_called_can_be_answered(path: Path, interrupt: Interrupt) -> None:
    with host_lock(0, interrupt):
        path.write_text('{"holder": {"job": "a\\ud800", "pid": 3, "since_unix_s": 1e400}}')
        with pytest.raises(HostBusyError) as caught:
            HostLock(path).claim(claim(8), interrupt)
    assert caught.value.holder == {"job": "a?", "pid": 3}


def test_the_content_of_a_large_file_is_replaced(path: Path, interrupt: Interrupt) -> None:
    path.write_text("x" * 1_000_000)
    with claimed(path, 1, interrupt):
        assert json.loads(path.read_text())["fence"] == 1


def test_a_fence_that_cannot_be_written_is_no_fence(path: Path, interrupt: Interrupt) -> None:
    path.write_text("{}")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    with pytest.raises(ResourceError, match="cannot write the fence"):
        HostLock(path).claim(claim(1), interrupt)
    with claimed(path, None, interrupt):
        pass


def test_somebody_keeps_the_content_locked(
    path: Path, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "CONTENT_WAIT_S", 0.2)
    with claimed(path, 7, interrupt):
        other = HostLock(path)
        with other._changing():
            with pytest.raises(ResourceError, match=f"fuser {path}"):
                HostLock(path).claim(claim(8), interrupt)
            with host_lock_named(path) as took_s:
                assert took_s < SOON_S, "the name of a holder is for people"
        other.close()


@contextlib.contextmanager
def host_lock_named(path: Path) -> Iterator[float]:
    lock = HostLock(path)
    began = time.monotonic()
    lock.name_holder("x")
    yield time.monotonic() - began
    lock.close()


def test_readers_find_the_old_or_the_new_content_and_never_less(
    path: Path, interrupt: Interrupt
) -> None:
    """A trial looks at the fence without a lock while others write."""
    with claimed(path, 5, interrupt) as lock:
        done = threading.Event()

        def writes() -> None:
            for i in range(3000):
                lock.name_holder("x" * (1 + i * 37 % 120))
            done.set()

        thread = threading.Thread(target=writes)
        thread.start()
        while not done.is_set():
            assert fence_of(path) == 5
        thread.join()


# Claims again and again with growing fences, and says when it had the lock.
CLAIMS = """
import json, sys, time
from pathlib import Path
from hostbench.base.errors import HostbenchError
from hostbench.base.interrupt import Interrupt
from hostbench.host.lock import Claim, HostLock
path, seed = Path(sys.argv[1]), int(sys.argv[2])
for i in range(60):
    lock = HostLock(path)
    fence = i * 10 + seed
    try:
        lock.claim(Claim(f"{seed}-{i}", "cpu", "bench-1", fence), Interrupt())
        began = time.monotonic()
        while time.monotonic() - began < 0.002 and lock.fence() == fence:
            pass
        print(json.dumps([began, time.monotonic(), fence]))
    except HostbenchError:
        pass
    lock.close()
"""


def test_two_processes_never_have_it_together_and_fences_never_fall(path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMS, str(path), str(seed)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for seed in (1, 2, 3)
    ]
    outputs = [process.communicate(timeout=110)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    grants = sorted(json.loads(line) for output in outputs for line in output.splitlines())
    assert len(grants) >= 10  # one that is overtaken skips some
    for before, after in itertools.pairwise(grants):
        assert before[1] <= after[0], "both had it"
        assert before[2] < after[2], "a lower fence came after a higher one"
