"""File systems for the scratch file that go wrong: on a disk that dies, and laid over another."""

import fcntl
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.disk.tests.loop_disk import loop_disk, unmount
from tests.benchmark import MIB

# EXT4_IOC_SHUTDOWN and EXT4_GOING_FLAGS_NOLOGFLUSH of linux/ext4.h: all that asks this file system
# for anything gets EIO from then on, until it is unmounted.
SHUT_DOWN, AT_ONCE = 0x8004587D, 2


@dataclass(frozen=True)
class FailingDisk:
    """A file system on a loop device, whose image lies on another one."""

    directory: Path
    below: Path

    def fail(self) -> None:
        """From now on the device answers every request with an I/O error, like one that died."""
        descriptor = os.open(self.below, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUT_DOWN, struct.pack("I", AT_ONCE))
        finally:
            os.close(descriptor)


@contextmanager
def failing_disk() -> Iterator[FailingDisk]:
    """One that is well so far, with 64 MiB and more to be had."""
    with loop_disk(192 * MIB) as below, tempfile.TemporaryDirectory() as name:
        image, directory = below / "image", Path(name)
        with image.open("wb") as file:
            file.truncate(128 * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, directory], check=True)
        try:
            yield FailingDisk(directory, below)
        finally:
            unmount(directory)


@contextmanager
def overlay(upper: Path) -> Iterator[Path]:
    """An overlay file system whose files lie in `upper`, as those of a container without a volume
    do."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name, "merged")
        layers = {
            "lowerdir": Path(name, "lower"),
            "upperdir": upper / "upper",
            "workdir": upper / "work",
        }
        for path in (directory, *layers.values()):
            path.mkdir()
        options = ",".join(f"{layer}={path}" for layer, path in layers.items())
        command = ["mount", "-t", "overlay", "overlay", "-o", options, str(directory)]
        mounted = subprocess.run(command, capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"no overlay can be mounted here: {mounted.stderr.strip()}")
        try:
            yield directory
        finally:
            unmount(directory)
