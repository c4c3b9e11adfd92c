"""The scratch directory and the file in it: what is refused, and that nothing is left."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.errors import ResourceError
from hostbench.host import scratch as scratch_module
from hostbench.host.scratch import (
    VARIABLE,
    Scratch,
    check_scratch,
    default_directory,
    file_system_of,
    has_scratch,
    open_unnamed,
    scratch_directory,
    takes_scratch,
)
from hostbench.model.suite import IdleRules
from hostbench.service.work import KEPT_S, KeptScratch
from tests.patience import comes_true
from tests.unit.records import FMA, TABLE, param

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and other users need root")
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "scratch"
    path.mkdir(mode=0o700)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def scratch(directory: Path) -> Iterator[Scratch]:
    with contextlib.closing(Scratch()) as one:
        yield one


def refusal(path: Path) -> str:
    with pytest.raises(ResourceError) as raised:
        open_unnamed(path)
    message = raised.value.message
    assert str(path) in message and VARIABLE in message and "\n" not in message
    return message


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_without_a_name(directory: Path, scratch: Scratch) -> None:
    descriptor = scratch.descriptor()
    assert list(directory.iterdir()) == []
    status = os.fstat(descriptor)
    assert (status.st_nlink, status.st_dev) == (0, directory.stat().st_dev)
    assert os.pwrite(descriptor, b"x" * 4096, 0) == 4096
    assert scratch.descriptor() == descriptor, "there is one"
    # As the programs and peers open it again, with flags of their own.
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
    assert os.pread(again, 1, 4095) == b"x"
    os.close(again)


def test_it_is_made_when_it_is_requested(directory: Path) -> None:
    before = open_files()
    one = Scratch()
    assert open_files() == before
    one.close()
    one.descriptor()
    one.close()
    one.close()
    assert open_files() == before
    check_scratch()
    assert open_files() == before


def test_without_unnamed_files_the_name_goes_at_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, where O_TMPFILE is refused."""
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_CREAT)
    descriptor = open_unnamed(directory)
    assert list(directory.iterdir()) == []
    assert os.fstat(descriptor).st_nlink == 0
    os.close(descriptor)


KILLED = """
import os, signal
from hostbench.host.scratch import Scratch
one = Scratch()
os.pwrite(one.descriptor(), bytes(1 << 20), 0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_of_a_process_that_is_killed(directory: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED], cwd=CHECKOUT)
    assert ended.returncode == -9
    assert list(directory.iterdir()) == []


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for given, expected in (
        ("", f"/var/tmp/hostbench-{os.geteuid()}"),
        ("/mnt/fast", "/mnt/fast"),
        ("here", str(tmp_path / "here")),
    ):
        monkeypatch.setenv(VARIABLE, given)
        assert str(scratch_directory()) == expected
    monkeypatch.delenv(VARIABLE)
    assert scratch_directory() == default_directory()


def test_only_the_default_directory_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "hostbench-0"
    monkeypatch.setattr(scratch_module, "default_directory", lambda: place)
    os.close(open_unnamed(place))
    assert place.stat().st_mode & 0o777 == 0o700
    os.close(open_unnamed(place))
    assert "does not exist" in refusal(tmp_path / "other")


def test_what_is_no_directory_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    assert "is not a directory" in refusal(tmp_path / "file")
    assert "is a symbolic link" in refusal(tmp_path / "link")
    assert "does not exist" in refusal(tmp_path / "none")


@needs_root
def test_a_directory_that_others_may_change(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    os.close(open_unnamed(tmp_path))  # our own
    os.chown(tmp_path, 65534, 65534)
    assert "everybody may change it" in refusal(tmp_path)
    tmp_path.chmod(0o1777)
    os.close(open_unnamed(tmp_path))  # as /tmp is
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 0, 0)


MOUNTED = """
import sys
from pathlib import Path
from hostbench.base.errors import ResourceError
from hostbench.host.scratch import open_unnamed
try:
    open_unnamed(Path(sys.argv[1]))
except ResourceError as error:
    print(error.message)
"""


def message_inside(tmp_path: Path, mount: str) -> str:
    """The message about the directory in a namespace where `mount` was done."""
    shell = f'{mount} && exec "$@"'
    python = (sys.executable, "-c", MOUNTED, str(tmp_path))
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", shell, "sh", *python],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@needs_root
def test_memory_is_no_disk(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs tmpfs {tmp_path}"
    assert "is in memory (tmpfs), not on a disk" in message_inside(tmp_path, mount)


@needs_root
def test_a_file_system_that_may_only_be_read(tmp_path: Path) -> None:
    bound = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    assert "may only be read" in message_inside(tmp_path, bound)


@needs_root
def test_a_full_file_system(tmp_path: Path) -> None:
    """No room for an inode."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(1 << 20)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-N", "16", image], check=True)
    place = tmp_path / "place"
    place.mkdir()
    fill = f"mount -o loop {image} {place} && for i in $(seq 20); do touch {place}/$i; done"
    assert "is full" in message_inside(place, f"{fill} 2>/dev/null; true")


def test_the_file_system_of_an_open_file(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    kind = subprocess.run(
        ["findmnt", "-n", "-o", "FSTYPE", "-T", directory], capture_output=True, text=True
    ).stdout.strip()
    assert file_system_of(descriptor) == kind
    os.close(descriptor)
    memory = os.open("/dev/shm", os.O_RDONLY)
    assert file_system_of(memory) == "tmpfs"
    os.close(memory)


def test_which_workloads_take_it() -> None:
    taking = FMA.model_copy(update={"params": (*FMA.params, param("scratch_fd", scope="host"))})
    assert takes_scratch(taking) and not takes_scratch(FMA) and not takes_scratch(None)
    assert not has_scratch(TABLE)
    assert has_scratch(TABLE.model_copy(update={"workloads": (FMA, taking)}))


# ---- kept between the trials of a job ----


def inode(scratch: Scratch) -> int:
    return os.fstat(scratch.descriptor()).st_ino


def still_open(number: int) -> bool:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.fstat(int(entry.name)).st_ino)
    return number in found


def test_trials_of_a_job_have_one_file(directory: Path) -> None:
    kept = KeptScratch()
    with kept.lent(7) as scratch:
        first = inode(scratch)
    with kept.lent(7) as scratch:
        assert inode(scratch) == first
    assert still_open(first)
    with kept.lent(8) as scratch:
        assert not still_open(first), "the space of the last job's is free before the next begins"
        inode(scratch)


def test_a_trial_by_hand_has_its_own(directory: Path) -> None:
    kept = KeptScratch()
    with kept.lent(7) as scratch:
        first = inode(scratch)
    with kept.lent(None) as scratch:
        assert not still_open(first), "its room is free before the trial by hand begins"
        by_hand = inode(scratch)
    assert not still_open(by_hand)


def test_nothing_is_open_before_it_is_requested(directory: Path) -> None:
    kept = KeptScratch(kept_s=0.1)
    for fence in (7, 8, None):
        with kept.lent(fence) as scratch:
            assert scratch.opened is None
            assert scratch.descriptor() == scratch.opened
    with kept.lent(9) as scratch:
        first = inode(scratch)
    assert comes_true(lambda: not still_open(first))
    with kept.lent(9) as scratch:
        assert scratch.opened is None, "it was given up meanwhile"


def test_it_outlasts_the_wait_for_an_idle_host() -> None:
    assert 5 * IdleRules().timeout_s < KEPT_S


def test_of_many_trials_one_timer_is_left(directory: Path) -> None:
    kept = KeptScratch()
    before = threading.active_count()
    for _ in range(20):
        with kept.lent(7) as scratch:
            scratch.descriptor()
    assert comes_true(lambda: threading.active_count() <= before + 1)
    with kept.lent(None):
        assert comes_true(lambda: threading.active_count() <= before)


def test_it_is_given_up_when_no_trial_comes(directory: Path) -> None:
    kept = KeptScratch(kept_s=0.3)
    with kept.lent(7) as scratch:
        first = inode(scratch)
    assert comes_true(lambda: not still_open(first))
    with kept.lent(7) as scratch:
        inode(scratch)


def test_it_is_not_given_up_during_a_trial(directory: Path) -> None:
    kept = KeptScratch(kept_s=0.2)
    with kept.lent(7) as scratch:
        first = inode(scratch)
    with kept.lent(7):
        assert not comes_true(lambda: not still_open(first), seconds=0.6)
    assert comes_true(lambda: not still_open(first))
