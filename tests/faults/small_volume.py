"""A volume that can be filled."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_volume(directory: Path, size: str) -> Iterator[Path | None]:
    """Make a directory on a file system of its own of `size`, such as 80m; None: this user may
    mount none."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


def fill(volume: Path, left_bytes: int = 0) -> Path:
    """Take all the room but so much; return the file that does."""
    filling = volume / "filling"
    with filling.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 20))  # the last ones in part
            except OSError:
                break
        file.truncate(file.tell() - left_bytes)
    return filling
