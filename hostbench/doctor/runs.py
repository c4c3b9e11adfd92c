"""Whether another run of hostbench holds this host. The lock is read, never taken."""

import os
import re
from pathlib import Path

from hostbench.doctor.check import (
    ALL,
    PROCESSES_HIDDEN,
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    ok,
    problem,
    unknown,
    unreadable,
)
from hostbench.doctor.view import View
from hostbench.host.lock import holder_text, lock_path, peek
from hostbench.model.doctor import Evidence

LOCKS = "/proc/locks"


def other_run(view: View) -> Outcome:
    """The holder of the lock file, from the kernel's list of locks."""
    path = lock_path()
    try:
        status = path.stat()
    except FileNotFoundError:
        return ok("none", Evidence(source=str(path), reason="no such file or directory"))
    except OSError as error:
        return unknown("cannot be read", Evidence(source=str(path), reason=error.strerror))
    locks = view.read(LOCKS)
    if locks.text is None:
        return unreadable(locks)
    entry = _entry(locks.text, status)
    if entry is not None:
        seen = (locks.excerpt(entry), Evidence(source=str(path), value=_holder(path)))
        advice = Advice(f"wait for it, or end it; fuser {path} names it", Reach.OWN)
        return problem("this host is taken; both would disturb one another", *seen, advice=advice)
    seen_none = locks.excerpt(f"no lock on {path}")
    if not view.sees_all_processes:
        return unknown(PROCESSES_HIDDEN, seen_none)
    return ok("none", seen_none)


def _entry(locks: str, status: os.stat_result) -> str | None:
    """Return the line of the file: proc_locks(5). Device numbers are hexadecimal, the inode is
    decimal."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    pattern = rf"^\d+: FLOCK +\w+ +\w+ +-?\d+ {re.escape(device)} .*$"
    match = re.search(pattern, locks, re.MULTILINE | re.ASCII)
    return match[0] if match else None


def _holder(path: Path) -> str:
    return holder_text(peek(path).get("holder")) or "does not name its holder"


CHECKS = (Check("other_run", Topic.NOISE, "Another hostbench run", ALL, other_run),)
