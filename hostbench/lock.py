"""One run at a time on a host: a lock file that everything of ours on this host takes.

The lock belongs to the open file, and the programs inherit its descriptor: it is held until the
last of them is gone, even when the process that took it was killed.
"""

import contextlib
import errno
import fcntl
import getpass
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostbench.errors import BusyError, ResourceError, shown
from hostbench.interrupt import Interrupt

LOCK_NAME = "hostbench.lock"
LOCK_DIRECTORY = Path("/run/lock")
LOCK_SCHEMA = 1
CONTENT_BYTES_MOST = 4096
RETRY_S = 0.2
# Anybody on this host may run a benchmark, so anybody may take the lock.
MODE = 0o666
# Without following a link or waiting at a pipe that somebody else may have put there.
_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def lock_path() -> Path:
    """HOSTBENCH_LOCK, else /run/lock/hostbench.lock where that can be, else in the temporary
    directory."""
    given = os.environ.get("HOSTBENCH_LOCK")
    if given:
        return Path(given)
    path = LOCK_DIRECTORY / LOCK_NAME
    if path.exists() or os.access(LOCK_DIRECTORY, os.W_OK):
        return path
    return Path(tempfile.gettempdir()) / LOCK_NAME


class HostLock:
    """The lock, not yet taken. `descriptor` is what the programs inherit."""

    def __init__(self, path: Path) -> None:
        """Opens the lock file. Raises ResourceError when that cannot be."""
        self.path = path
        self.descriptor = _open(path)

    def take(self, wait_s: float, interrupt: Interrupt) -> None:
        """Takes the lock; waits up to `wait_s` for another run to end.

        Raises BusyError naming the holder, or Interrupted.
        """
        deadline_s = time.monotonic() + wait_s
        while not self._try():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise BusyError(self._busy_message())
            interrupt.wait(min(RETRY_S, left_s))

    def _try(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ResourceError(
                f"cannot lock {self.path}: {error.strerror}; "
                "set HOSTBENCH_LOCK to a file on a local file system"
            ) from None
        return True

    def read(self) -> dict[str, Any]:
        """What the file says; empty when it says nothing that can be read."""
        return _content(self.descriptor)

    def name_holder(self, job: str) -> None:
        """Says in the file who holds it, and leaves alone whatever else stands in the file."""
        holder = {"pid": os.getpid(), "job": job, "user": _user(), "since_unix_s": time.time()}
        content = {**self.read(), "schema": LOCK_SCHEMA, "holder": holder}
        text = json.dumps(content).encode() + b"\n"
        # The name of the holder is for people. Where the file is another user's and may not be
        # written, or the disk is full, the lock itself is held all the same.
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, text, 0)

    def _busy_message(self) -> str:
        holder = holder_text(self.read().get("holder")) or "another run"
        return (
            f"this host is busy with {holder}; wait for it with --wait SECONDS, or end it; "
            f"whoever holds {self.path} is shown by fuser {self.path}"
        )

    def close(self) -> None:
        """Lets go of the lock, unless a program still holds it too."""
        os.close(self.descriptor)


def peek(path: Path) -> dict[str, Any]:
    """What the lock file says, read without making it or touching the lock."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | _SAFELY)
        try:
            return _content(descriptor)
        finally:
            os.close(descriptor)
    return {}


def _content(descriptor: int) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(os.pread(descriptor, CONTENT_BYTES_MOST, 0))
        if isinstance(content, dict):
            return content
    return {}


def holder_text(holder: object) -> str | None:
    """`job 'x' of pid 7 (user 'y') since …`, or None when the file does not name anybody."""
    if not isinstance(holder, dict):
        return None
    return (
        f"job {shown(holder.get('job'))} of pid {shown(holder.get('pid'))} "
        f"(user {shown(holder.get('user'))}){_since(holder.get('since_unix_s'))}"
    )


def _since(unix_s: object) -> str:
    """Anybody may write into the file, so the time in it may be anything."""
    with contextlib.suppress(ValueError, TypeError, OverflowError, OSError):
        if isinstance(unix_s, int | float):
            return f" since {datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return ""


@contextlib.contextmanager
def host_lock(wait_s: float, interrupt: Interrupt) -> Iterator[HostLock]:
    """Holds the lock of this host."""
    lock = HostLock(lock_path())
    try:
        lock.take(wait_s, interrupt)
        yield lock
    finally:
        lock.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _open(path: Path) -> int:
    """Opens or makes the file. Raises ResourceError."""
    try:
        descriptor = _open_or_make(path, _SAFELY)
    except OSError as error:
        what = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise ResourceError(
            f"cannot open the lock file {path}: {what}; set HOSTBENCH_LOCK to another file"
        ) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ResourceError(
        f"the lock file {path} is not a regular file; set HOSTBENCH_LOCK to another file"
    )


def _open_or_make(path: Path, flags: int) -> int:
    for _ in range(3):
        try:
            # Without O_CREAT: in a sticky directory fs.protected_regular refuses to "create"
            # a file that exists and belongs to somebody else.
            return os.open(path, os.O_RDWR | flags)
        except PermissionError:
            # Enough for the lock itself, not for naming the holder.
            return os.open(path, os.O_RDONLY | flags)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, MODE)
                os.fchmod(descriptor, MODE)  # whatever the umask is
                return descriptor
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
