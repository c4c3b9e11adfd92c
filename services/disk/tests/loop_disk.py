"""A small file system of its own, on a loop device over a file: made, mounted, and gone after."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.disk.tests.program import on_disk
from tests.patience import wait_until


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def loop_disk(size_bytes: int, options: Sequence[str] = ()) -> Iterator[Path]:
    """The directory of an ext4 file system of this size, all of it free for anybody; skips the test
    where this process may not mount one. `options`: of mkfs.ext4."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system of its own")
    with tempfile.TemporaryDirectory(dir=on_disk()) as name:
        image, mount = Path(name, "image"), Path(name, "mount")
        mount.mkdir()
        with image.open("wb") as file:
            file.truncate(size_bytes)
        made = _run("mkfs.ext4", "-q", "-F", "-m", "0", *options, str(image))
        assert made.returncode == 0, made.stderr
        mounted = _run("mount", "-o", "loop", str(image), str(mount))
        if mounted.returncode:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
        try:
            yield mount
        finally:
            unmount(mount)


def unmount(directory: Path) -> None:
    """A process that has ended may hold files for a moment: the kernel takes down its rings of
    io_uring later."""
    wait_until(lambda: _run("umount", str(directory)).returncode == 0, lambda: directory)


def free_bytes(directory: Path) -> int:
    """What anybody may still write there."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def names_in(directory: Path) -> list[str]:
    """All that has a name there."""
    return sorted(path.name for path in directory.iterdir())
