"""One run at a time on a host."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench import lock as lock_module
from hostbench.errors import BusyError, ResourceError
from hostbench.interrupt import Interrupt, Interrupted
from hostbench.lock import HostLock, host_lock, lock_path


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTBENCH_LOCK", str(tmp_path / "hostbench.lock"))
    return tmp_path / "hostbench.lock"


def test_the_second_is_told_who_holds_it(path: Path, interrupt: Interrupt) -> None:
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
        assert 0.4 <= time.monotonic() - began < 1


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
