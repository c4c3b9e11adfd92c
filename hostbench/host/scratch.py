"""The scratch directory of disk workloads, and the unnamed file there that the trials of a job use.

The file has no name, so a killed process leaves nothing of it. The programs apply the same rules to
the directory: a figure of memory must not pass for one of a disk, and no other user may replace our
file.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.errors import ResourceError
from hostbench.base.files import read_text, whole_number
from hostbench.model.table import Table, Workload

VARIABLE = "HOSTBENCH_SCRATCH"
# The parameter of scope host for the file's descriptor.
PARAM = "scratch_fd"
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
ELSEWHERE = f"set {VARIABLE} to a directory on the disk to measure"
# The errors of open(2) where the file system or the kernel has no unnamed files.
_NO_TMPFILE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL})


def scratch_directory() -> Path:
    """Return HOSTBENCH_SCRATCH, else a directory of this user in /var/tmp, which is persistent and
    on disk."""
    return Path(os.environ.get(VARIABLE) or default_directory()).absolute()


def default_directory() -> Path:
    """Return the directory that is created if none is given."""
    return Path(f"/var/tmp/hostbench-{os.geteuid()}")  # noqa: S108


def takes_scratch(workload: Workload | None) -> bool:
    """Whether a workload works on the file."""
    return workload is not None and workload.param(PARAM) is not None


def has_scratch(table: Table) -> bool:
    """Whether at least one workload of a program works on the file."""
    return any(takes_scratch(workload) for workload in table.workloads)


class Scratch:
    """The file of one job, created at its first use."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    @property
    def opened(self) -> int | None:
        """The descriptor of the file, or None before its first use."""
        return self._descriptor

    def descriptor(self) -> int:
        """Return the descriptor of the file. Raise ResourceError if it cannot be created."""
        if self._descriptor is None:
            self._descriptor = open_unnamed(scratch_directory())
        return self._descriptor

    def close(self) -> None:
        """Close the file. Its space is free once no program has it open either. Safe to repeat."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def check_scratch() -> None:
    """Create a file there and close it. Raise ResourceError."""
    with contextlib.closing(Scratch()) as scratch:
        scratch.descriptor()


def open_unnamed(path: Path) -> int:
    """Open a new nameless file in directory `path`. Raise ResourceError."""
    if path == default_directory():
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o700)  # what is wrong is reported below
    directory = open_directory(path)
    try:
        return _open_file(path, directory)
    finally:
        os.close(directory)


def open_directory(path: Path) -> int:
    """Open the scratch directory. Raise ResourceError if it is not suitable."""
    directory = _open_directory(path)
    reason = _refusal(directory)
    if reason is not None:
        os.close(directory)
        raise ResourceError(f"the scratch directory {path} {reason}; {ELSEWHERE}")
    return directory


def _refusal(directory: int) -> str | None:
    """Return why the directory is not suitable, as the end of a sentence, or None if it is."""
    kind = file_system_of(directory)
    if kind in MEMORY_FILE_SYSTEMS:
        return f"is in memory ({kind}), not on a disk"
    status = os.fstat(directory)
    open_to_all = status.st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH
    if open_to_all and status.st_uid != os.geteuid():
        return "belongs to another user and everybody may change it (no sticky bit)"
    return None


def file_system_of(descriptor: int) -> str | None:
    """Return the type of the file system of an open file, or None if /proc does not report it."""
    text = read_text(Path(f"/proc/self/fdinfo/{descriptor}")) or ""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    number = whole_number(fields.get("mnt_id", "").strip())
    if number is None:
        return None
    mount = mount_numbered(parse_mounts(read_text(Path(MOUNTS)) or ""), number)
    return None if mount is None else mount.kind


def _open_directory(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            what = "is a symbolic link"
        elif error.errno == errno.ENOTDIR:
            what = "is not a directory"
        elif error.errno == errno.ENOENT:
            what = "does not exist"
        else:
            what = f"cannot be opened: {error.strerror}"
        raise ResourceError(f"the scratch directory {path} {what}; {ELSEWHERE}") from None


def _open_file(path: Path, directory: int) -> int:
    try:
        return _unnamed(directory)
    except OSError as error:
        what = {
            errno.EROFS: "is on a file system that may only be read",
            errno.EACCES: f"may not be written by user {os.geteuid()}",
            errno.EPERM: f"may not be written by user {os.geteuid()}",
            errno.ENOSPC: "is full",
            errno.EDQUOT: "has no quota left",
        }.get(error.errno or 0, f"takes no file: {error.strerror}")
        raise ResourceError(f"the scratch directory {path} {what}; {ELSEWHERE}") from None


def _unnamed(directory: int) -> int:
    """Open a file that never had a name, else one that loses it at once. Raise OSError."""
    flags = os.O_RDWR | os.O_EXCL | os.O_CLOEXEC
    try:
        # With O_EXCL, no process can give it a name later.
        return os.open(".", flags | os.O_TMPFILE, 0o600, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
    name = f".hostbench-{secrets.token_hex(16)}"
    descriptor = os.open(name, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    os.unlink(name, dir_fd=directory)
    return descriptor


MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line. `device` is MAJ:MIN. `inside` is the directory of the file system that is visible
    at `point`: for a bind mount, not always /."""

    number: int
    device: str
    inside: str
    point: str
    kind: str
    source: str


def parse_mounts(text: str) -> list[Mount]:
    """Return the valid lines in their order: later mounts cover earlier ones."""
    return [mount for line in text.splitlines() if (mount := _mount(line))]


def _mount(line: str) -> Mount | None:
    fields = [_ESCAPED.sub(lambda match: chr(int(match[1], 8)), one) for one in line.split()]
    if "-" not in fields[6:] or not fields[0].isdecimal():
        return None
    text = fields[fields.index("-", 6) + 1 :]
    if len(text) < 2:
        return None
    return Mount(int(fields[0]), fields[2], fields[3], fields[4], text[0], text[1])


def mount_of(mounts: Iterable[Mount], place: Path) -> Mount | None:
    """Return the mount of a directory: the last one of the longest mount point above it."""
    found: Mount | None = None
    for mount in mounts:
        if not place.is_relative_to(mount.point):
            continue
        if found is None or len(mount.point) >= len(found.point):
            found = mount
    return found


def mount_numbered(mounts: Sequence[Mount], number: int) -> Mount | None:
    """Return the mount with this id, as fdinfo reports it for an open file."""
    return next((mount for mount in mounts if mount.number == number), None)


def nearest(path: Path) -> Path:
    """Return the directory itself, or the nearest existing one above it."""
    path = path.absolute()
    return next((one for one in (path, *path.parents) if _is_there(one)), Path("/"))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:  # missing, or below a directory that we may not read
        return False
    return True
