"""Small files of /proc and /sys. What cannot be read is None, never an error."""

import re
from collections.abc import Iterable
from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return the stripped content of a small file, or None when it cannot be read or is empty."""
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


def first_text(paths: Iterable[Path]) -> str | None:
    """Return the content of the first file that has any, or None."""
    return next((text for path in paths if (text := read_text(path))), None)


def read_number(path: Path) -> int | None:
    """Return the number in a small file, decimal or 0x, or None for anything else."""
    return whole_number(read_text(path))


def whole_number(text: str | None) -> int | None:
    """Return a decimal or 0x number, or None for anything else."""
    try:
        return int(text, 0) if text else None
    except ValueError:
        return None


def cpu_list(text: str | None) -> tuple[int, ...] | None:
    """Return the CPUs of a list such as 0-3,8, or None for an invalid one."""
    cpus: list[int] = []
    for part in (text or "").split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match:
            return None
        cpus += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(cpus)
