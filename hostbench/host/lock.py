"""One run at a time on a host: a lock file that all programs of hostbench on this host take.

The lock belongs to the open file, and the programs inherit its descriptor. So it is held until the
last of them has ended, even when the process that took it was killed.

The file names the holder and the highest fence ever presented on this host. A fence is a number
that grows with every job of the stack. A request with a lower fence is refused; one with a higher
fence than the holder's ends the holder. Possession is flock(2) on the file. Changes of its content
happen under an open file description lock of fcntl(2), which is a separate lock.
"""

import contextlib
import errno
import fcntl
import getpass
import json
import os
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostbench.base.errors import BusyError, HostbenchError, ResourceError, shown
from hostbench.base.interrupt import Interrupt
from hostbench.model.service import FENCE_MOST

LOCK_NAME = "hostbench.lock"
LOCK_DIRECTORY = Path("/run/lock")
LOCK_SCHEMA = 1
CONTENT_BYTES_MOST = 4096
NUMBER_MOST = 2**62
HOLDER_CHARACTERS_MOST = 200
RETRY_S = 0.2
# A service that checks whether the lock is free holds it for some microseconds.
LOOK_S_MOST = 0.05
HELD_BY_CHARACTERS_MOST = 500
# Changes of the content take microseconds; a process that needs longer is stopped or malicious.
CONTENT_WAIT_S = 2.0
PEEKS_MOST = 10
CONTENT_RETRY_S = 0.005
# How often a trial checks for a higher fence, how long it may then take to end (a peer's supervisor
# has the longest grace), and how often the waiting process retries.
FENCE_LOOK_S = 0.5
PREEMPT_S_MOST = 12.0
PREEMPT_RETRY_S = 0.02
# Anybody on this host may run a benchmark, so anybody may take the lock.
MODE = 0o666
# Do not follow a link or wait at a pipe that another user may have put there.
_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def lock_path() -> Path:
    """Return HOSTBENCH_LOCK, else /run/lock/hostbench.lock if that is possible, else a file in the
    temporary directory."""
    given = os.environ.get("HOSTBENCH_LOCK")
    if given:
        return Path(given)
    path = LOCK_DIRECTORY / LOCK_NAME
    if path.exists() or os.access(LOCK_DIRECTORY, os.W_OK):
        return path
    return Path(tempfile.gettempdir()) / LOCK_NAME


class HostBusyError(BusyError):
    """Another process holds the lock.

    `holder` has the valid fields of its entry in the file: job, pid, user, since_unix_s, and for a
    service's trial also service, host and fence.
    """

    def __init__(self, message: str, holder: dict[str, str | int | float]) -> None:
        super().__init__(message)
        self.holder = holder


class StaleFenceError(HostbenchError):
    """A job with a higher fence was here, so this job has lost the host."""

    def __init__(self, fence: int, highest: int, path: Path) -> None:
        super().__init__(
            f"fence {fence} is too old: a job with fence {highest} has this host since, by "
            f"{path}; start the job again"
        )
        self.highest = highest


@dataclass(frozen=True)
class Claim:
    """A request for the lock for one trial. `fence` None: a trial by hand, which pre-empts no other
    trial."""

    job: str
    service: str
    host: str
    fence: int | None


class HostLock:
    """The lock, not yet taken. The programs inherit `descriptor`."""

    def __init__(self, path: Path) -> None:
        """Open the lock file. Raise ResourceError when that fails."""
        self.path = path
        self.descriptor = _open(path)

    def take(self, wait_s: float, interrupt: Interrupt) -> None:
        """Take the lock; wait up to `wait_s` for another run to end.

        Raise BusyError, which names the holder, or Interrupted.
        """
        deadline_s = time.monotonic() + max(wait_s, LOOK_S_MOST)
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
        """Return the content of the file; empty if it is not readable."""
        return _content(self.descriptor)

    def fence(self) -> int:
        """Return the highest fence presented on this host; 0: none yet."""
        return _fence(self.read()) or 0

    def claim(self, claim: Claim, interrupt: Interrupt) -> None:
        """Take the lock for a trial and name its holder.

        To end a holder with a lower fence, write the higher one into the file, and wait. Raise
        StaleFenceError, HostBusyError, ResourceError or Interrupted.
        """
        deadline_s = time.monotonic() + PREEMPT_S_MOST
        while True:
            with self._changing():
                holder = self._claimed(claim)
            if holder is None:
                return
            if not _outranks(claim.fence, holder) or time.monotonic() >= deadline_s:
                raise HostBusyError(
                    f"this host is busy with {self._holder_text()}; try again when it has ended; "
                    f"fuser {self.path} shows which process holds it",
                    _valid_fields(holder),
                )
            interrupt.wait(PREEMPT_RETRY_S)

    def _claimed(self, claim: Claim) -> dict[str, Any] | None:
        """Try once, while no other process changes the content. Return None when the lock is
        ours, else the holder."""
        content = self.read()
        highest = _fence(content) or 0
        if claim.fence is not None and claim.fence < highest:
            raise StaleFenceError(claim.fence, highest, self.path)
        ours = {"fence": max(highest, claim.fence or 0)}
        if self._try():
            self._write(content | ours | {"holder": _holder(claim)}, claim.fence is not None)
            return None
        holder = content.get("holder")
        holder = holder if isinstance(holder, dict) else {}
        if _outranks(claim.fence, holder) and ours["fence"] > highest:
            self._write(content | ours, needed=True)
        return holder

    def name_holder(self, job: str) -> None:
        """Write the holder into the file; leave the rest of its content unchanged."""
        # The holder's name is for people: the lock is held even without it.
        with contextlib.suppress(ResourceError), self._changing():
            self._write(self.read() | {"holder": _named(job)}, needed=False)

    def note_left(self) -> None:
        """Write into the file that its holder lets go, because the next process may write no name.
        The fence stays for the job that pre-empts that holder."""
        with contextlib.suppress(ResourceError), self._changing():
            content = self.read()
            if isinstance(holder := content.get("holder"), dict):
                self._write(content | {"holder": holder | {"left": True}}, needed=False)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the content lock, unless the file is another user's and read-only. Raise
        ResourceError when another process keeps it too long."""
        deadline_s = time.monotonic() + CONTENT_WAIT_S
        while not self._try_content():
            if time.monotonic() >= deadline_s:
                raise ResourceError(
                    f"another process keeps the content of {self.path} locked; "
                    f"fuser {self.path} shows which one; end it"
                )
            time.sleep(CONTENT_RETRY_S)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_UNLCK))

    def _try_content(self) -> bool:
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
        except OSError as error:
            # EBADF: open for reading only, so nothing can be written anyway.
            return error.errno not in (errno.EAGAIN, errno.EACCES)
        return True

    def _write(self, content: dict[str, Any], needed: bool) -> None:
        """Replace the content. If the file is another user's and read-only, or the disk is full,
        raise ResourceError when `needed`."""
        text = _text(content)
        try:
            # Overwrite the old text first and cut it afterwards: a reader finds the old or the new
            # content, and a full disk leaves the old one.
            size = min(os.fstat(self.descriptor).st_size, CONTENT_BYTES_MOST)
            os.pwrite(self.descriptor, text.ljust(size), 0)
            os.ftruncate(self.descriptor, len(text))
        except OSError as error:
            if needed:
                raise ResourceError(
                    f"cannot write the fence into {self.path}: {error.strerror}; make the file "
                    "writable for all, or set HOSTBENCH_LOCK to another file"
                ) from None

    def held_outside(self) -> str | None:
        """Return who holds the lock without being a trial of a job: a run by hand, or any process.
        Return None if the lock is free or a job's.

        This takes the lock if it is free.
        """
        if self._try():
            return None
        holder = self.read().get("holder")
        named = holder_text(holder)
        if named and isinstance(holder, dict) and _fence(holder) is not None:
            return None
        named = named or "a process that the lock file does not name"
        text = f"{named[:HELD_BY_CHARACTERS_MOST]}; fuser {self.path} shows which process holds it"
        return text.encode("utf-8", "replace").decode()

    def _holder_text(self) -> str:
        return holder_text(self.read().get("holder")) or "another run"

    def _busy_message(self) -> str:
        return (
            f"this host is busy with {self._holder_text()}; wait for it with --wait SECONDS, "
            f"or end it; fuser {self.path} shows which process holds it"
        )

    def close(self) -> None:
        """Release the lock, unless a program still holds it, too."""
        os.close(self.descriptor)


def check_lock(path: Path) -> None:
    """Create the lock file if it is missing. Raise ResourceError if it could not be taken, or if no
    fence could be written into it."""
    with contextlib.closing(HostLock(path)) as lock:
        if fcntl.fcntl(lock.descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise ResourceError(
                f"the lock file {path} may only be read; make it writable for all, as root: "
                f"chmod 666 {path}"
            )


def peek(path: Path) -> dict[str, Any]:
    """Return the content of the lock file, without creating it or touching the lock."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | _SAFELY)
        try:
            # A file system may show a half-replaced text, which is not valid.
            found = (_content(descriptor) for _ in range(PEEKS_MOST))
            return next((content for content in found if content), {})
        finally:
            os.close(descriptor)
    return {}


def held_outside(path: Path) -> str | None:
    """Return who holds this host without being a trial of a job, or None."""
    with contextlib.suppress(ResourceError), contextlib.closing(HostLock(path)) as lock:
        return lock.held_outside()
    return None


def fence_of(path: Path) -> int:
    """Return the highest fence presented on this host; 0: none yet."""
    return _fence(peek(path)) or 0


def _content(descriptor: int) -> dict[str, Any]:
    # Anybody may write into the file, even deeply nested brackets.
    with contextlib.suppress(OSError, ValueError, RecursionError):
        content = json.loads(os.pread(descriptor, CONTENT_BYTES_MOST, 0))
        if isinstance(content, dict):
            return content
    return {}


def _text(content: dict[str, Any]) -> bytes:
    """Return the text to write: the whole content, or only fence and holder if it is too long."""
    for names in (list(content), ["fence", "holder"]):
        with contextlib.suppress(RecursionError):
            text = _line({name: content[name] for name in names if name in content})
            if len(text) <= CONTENT_BYTES_MOST:
                return text
    return _line({"fence": content.get("fence", 0)})


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps({"schema": LOCK_SCHEMA} | content).encode() + b"\n"


def holder_text(holder: object) -> str | None:
    """Return `job 'x' of pid 7 (user 'y') since …`, or None when the file names no holder, or one
    that has released the lock."""
    if not isinstance(holder, dict) or holder.get("left"):
        return None
    service = holder.get("service")
    where = f" in service {shown(service)} of {shown(holder.get('host'))}" if service else ""
    return (
        f"job {shown(holder.get('job'))} of pid {shown(holder.get('pid'))}{where} "
        f"(user {shown(holder.get('user'))}){_since(holder.get('since_unix_s'))}"
    )


def _named(job: str) -> dict[str, Any]:
    return {"pid": os.getpid(), "job": job, "user": _user(), "since_unix_s": time.time()}


def _holder(claim: Claim) -> dict[str, Any]:
    place = {"service": claim.service, "host": claim.host}
    return _named(claim.job) | place | ({} if claim.fence is None else {"fence": claim.fence})


def _fence(holder_or_content: dict[str, Any]) -> int | None:
    """Return the fence, or None: anybody may write into the file, so an invalid value counts as
    none."""
    fence = holder_or_content.get("fence")
    known = isinstance(fence, int) and not isinstance(fence, bool) and 0 <= fence <= FENCE_MOST
    return fence if known else None


def _valid_fields(holder: dict[str, Any]) -> dict[str, str | int | float]:
    """Return the fields of the holder that have the expected type, shortened."""
    texts = {
        # A lone surrogate could not be encoded in an answer.
        name: value[:HOLDER_CHARACTERS_MOST].encode("utf-8", "replace").decode()
        for name in ("job", "user", "service", "host")
        if isinstance(value := holder.get(name), str)
    }
    numbers = {
        name: value
        for name in ("pid", "since_unix_s", "fence")
        if isinstance(value := holder.get(name), int | float) and abs(value) <= NUMBER_MOST
    }
    return texts | numbers


def _outranks(fence: int | None, holder: dict[str, Any]) -> bool:
    """Whether `fence` ends the holder. A run by hand has no fence and is never ended."""
    theirs = _fence(holder)
    return fence is not None and theirs is not None and theirs < fence


def _whole_file(kind: int) -> bytes:
    """Return struct flock of fcntl(2): type, whence, start, length (0: to the end), pid (none)."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)


def _since(unix_s: object) -> str:
    """Return the time in words; anybody may write into the file, so it may have any form."""
    with contextlib.suppress(ValueError, TypeError, OverflowError, OSError):
        if isinstance(unix_s, int | float):
            return f" since {datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return ""


@contextlib.contextmanager
def host_lock(wait_s: float, interrupt: Interrupt) -> Iterator[HostLock]:
    """Hold the lock of this host."""
    lock = HostLock(lock_path())
    try:
        lock.take(wait_s, interrupt)
        try:
            yield lock
        finally:
            lock.note_left()
    finally:
        lock.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _open(path: Path) -> int:
    """Open the file, or create it. Raise ResourceError."""
    try:
        descriptor = _open_or_make(path, _SAFELY)
    except OSError as error:
        what = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        remedy = "set HOSTBENCH_LOCK to another file"
        if error.errno in (errno.EACCES, errno.EPERM):
            remedy = f"make it for all, as root: install --mode=666 /dev/null {path}; or {remedy}"
        raise ResourceError(f"cannot open the lock file {path}: {what}; {remedy}") from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ResourceError(
        f"the lock file {path} is not a regular file; set HOSTBENCH_LOCK to another file"
    )


def _open_or_make(path: Path, flags: int) -> int:
    for _ in range(3):
        try:
            # Without O_CREAT: in a sticky directory, fs.protected_regular refuses to "create" a
            # file that exists and belongs to another user.
            return os.open(path, os.O_RDWR | flags)
        except PermissionError:
            # Enough for the lock itself, but not for the holder's name.
            return os.open(path, os.O_RDONLY | flags)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, MODE)
                os.fchmod(descriptor, MODE)  # whatever the umask is
                return descriptor
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
