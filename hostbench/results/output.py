"""Files that a command writes because an option names them."""

import os
import sys
from pathlib import Path
from typing import TextIO

from hostbench.base.errors import ResourceError, UsageError
from hostbench.results.store import write_whole

STANDARD_OUTPUT = "-"


def check_output(option: str, what: str, target: Path, example: str) -> None:
    """Refuse a directory, before any work is done. `example`: a good file name.

    Raise UsageError or ResourceError.
    """
    try:
        if target.name and not target.is_dir():
            return
    except OSError as error:
        raise _cannot_write(option, what, target, error) from None
    raise UsageError(
        f"{option} {target} is a directory; give the name of a file, such as {target / example}"
    )


def write_output(
    option: str, what: str, target: Path, content: bytes, mode: int | None = None
) -> None:
    """Write a file as a whole or not at all, with these permissions; write directly to a device or
    a pipe.

    Raise ResourceError.
    """
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            write_whole(Path(os.path.realpath(target)), content, mode)
    except OSError as error:
        raise _cannot_write(option, what, target, error) from None


class GrowingOutput:
    """A file, or standard output, to which a command adds while it runs. What was added is there
    even if the command is killed next."""

    def __init__(self, option: str, what: str, target: str) -> None:
        """Begin the file anew, or open a device or a pipe. Raise ResourceError."""
        self._option, self._what, self._target = option, what, target
        self._file: TextIO = sys.stdout
        if target == STANDARD_OUTPUT:
            return
        try:
            self._file = Path(target).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        except OSError as error:
            raise self._error(error) from None

    def add(self, text: str) -> None:
        """Write text. Raise ResourceError; of standard output, OSError."""
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            if self._file is sys.stdout:
                raise
            raise self._error(error) from None

    def _error(self, error: OSError) -> ResourceError:
        return _cannot_write(self._option, self._what, Path(self._target), error)


def _cannot_write(option: str, what: str, target: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"cannot write {what} {target}: {error.strerror}; name another file with {option}, "
        "or - for standard output"
    )
