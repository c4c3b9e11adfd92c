"""The journal of a job: one record a line, on disk before the next trial begins.

Its writer holds a lock on it, so a reader can distinguish a running job from one whose process has
ended.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from pathlib import Path

from pydantic import ValidationError

from hostbench.base.errors import BusyError, ResourceError, UsageError
from hostbench.base.units import plural
from hostbench.model.job_events import CaseEndedEvent, GateEvent, JobEvent, TrialEndedEvent
from hostbench.model.result import RECORD, Record, SessionRecord

LOCK_ATTEMPTS = 5
LOCK_RETRY_S = 0.02


class JournalWriter:
    """Appends records. A sink, and a context manager that closes the file."""

    def __init__(self, path: Path, *, create: bool) -> None:
        """Open and lock the journal; cut off what follows its last whole record (`cut_bytes`).

        `create`: a new journal; an existing file may not hold a whole record. Raise BusyError when
        the job is running, ResourceError when the file cannot be written.
        """
        self._path = path
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            self._descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            raise cannot_write(path, error) from None
        try:
            self._lock()
            content = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
            self._end = _whole_bytes(content)
            self.cut_bytes = len(content) - self._end
            if create and self._end:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            os.ftruncate(self._descriptor, self._end)
        except OSError as error:
            os.close(self._descriptor)
            raise cannot_write(path, error) from None
        except BusyError:
            os.close(self._descriptor)
            raise

    def _lock(self) -> None:
        for _ in range(LOCK_ATTEMPTS):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                    raise FileNotFoundError(errno.ENOENT, "it was removed just now")
                return
            # Another process may only be checking whether the job is running.
            time.sleep(LOCK_RETRY_S)
        raise BusyError(
            f"job {self._path.parent.name} is running; wait for its end, or stop it first"
        )

    def __enter__(self) -> "JournalWriter":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release its lock."""
        os.close(self._descriptor)

    def take(self, event: JobEvent) -> None:
        """Write the record of an event, if it has one."""
        if isinstance(event, GateEvent):
            self.append(event.idle)
        elif isinstance(event, TrialEndedEvent):
            self.append(event.trial)
        elif isinstance(event, CaseEndedEvent):
            self.append(event.record)

    def append(self, record: Record) -> None:
        """Write one record and wait until it is on disk. Raise ResourceError, with no part of it
        left in the file."""
        line = RECORD.dump_json(record) + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.pwrite(self._descriptor, line[written:], self._end + written)
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise cannot_write(self._path, error) from None
        self._end += len(line)


def cannot_write(path: Path, error: OSError) -> ResourceError:
    """Return the error, in one line, for a results directory that cannot be written."""
    return ResourceError(
        f"cannot write {path}: {error.strerror}; free space or rights there, "
        "or choose another directory with --results or HOSTBENCH_RESULTS"
    )


def _whole_bytes(content: bytes) -> int:
    """Return the size up to the last whole record.

    A further record may have been incomplete when its writer was killed or the power failed: a part
    of it, or zeros in its place. It never counted.
    """
    end = content.rfind(b"\n") + 1
    last = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
    return end if _is_json(content[last:end]) else last


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def cut_sentence(path: Path, cut_bytes: int) -> str:
    """Return the message about a journal that does not end with a whole record."""
    return (
        f"the last {plural(cut_bytes, 'byte')} of {path} are no whole record, since its writer was "
        "killed or the power failed: they do not count"
    )


def has_begun(path: Path) -> bool:
    """Whether the journal holds a whole record; without one, nothing of the job counts."""
    try:
        with path.open("rb") as file:
            line = file.readline()
            return line.endswith(b"\n") and _is_json(line)
    except OSError:
        return False


def is_being_written(path: Path) -> bool:
    """Whether a process has the journal open for writing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def read_journal(path: Path) -> list[Record]:
    """Return all whole records. Raise UsageError for a journal that cannot be read or is
    damaged."""
    return read_with_rest(path)[0]


def read_with_rest(path: Path) -> tuple[list[Record], int]:
    """Return all whole records, and the number of bytes after them. Raise UsageError as
    read_journal does."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; without its journal the job cannot be built "
            f"again: measure anew, or delete {path.parent}"
        ) from None
    end = _whole_bytes(content)
    if not end:
        raise UsageError(f"{path} is empty: the job never began; start a new one")
    records = []
    for number, line in enumerate(content[: end - 1].split(b"\n"), start=1):
        try:
            records.append(RECORD.validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UsageError(
                f"{path}:{number}: not a record of this hostbench version: {first['msg']}; "
                "read it with the version that wrote it, or start a new job"
            ) from None
    if not isinstance(records[0], SessionRecord):
        raise UsageError(f"{path}:1: not a session record; start a new job")
    return records, len(content) - end
