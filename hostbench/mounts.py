"""The mounts that this process sees: proc_pid_mountinfo(5)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line. `device` is MAJ:MIN; `inside` is the directory of the file system that is seen at
    `point`, another one than / where that is bound there."""

    number: int
    device: str
    inside: str
    point: str
    kind: str
    source: str


def parse_mounts(text: str) -> list[Mount]:
    """The lines that are understood, in their order: later mounts cover earlier ones."""
    return [mount for line in text.splitlines() if (mount := _mount(line))]


def _mount(line: str) -> Mount | None:
    fields = [_ESCAPED.sub(lambda match: chr(int(match[1], 8)), one) for one in line.split()]
    if "-" not in fields[6:] or not fields[0].isdecimal():
        return None
    told = fields[fields.index("-", 6) + 1 :]
    if len(told) < 2:
        return None
    return Mount(int(fields[0]), fields[2], fields[3], fields[4], told[0], told[1])


def mount_of(mounts: Iterable[Mount], place: Path) -> Mount | None:
    """The mount that a directory lies on: the last of the longest mount points above it."""
    found: Mount | None = None
    for mount in mounts:
        if not place.is_relative_to(mount.point):
            continue
        if found is None or len(mount.point) >= len(found.point):
            found = mount
    return found


def mount_numbered(mounts: Sequence[Mount], number: int) -> Mount | None:
    """The mount of this id, as fdinfo tells it of an open file."""
    return next((mount for mount in mounts if mount.number == number), None)


def nearest(path: Path) -> Path:
    """The directory itself, or the nearest one above it that exists already."""
    path = path.absolute()
    return next((one for one in (path, *path.parents) if _is_there(one)), Path("/"))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:  # not there, or behind a directory we may not look into
        return False
    return True
