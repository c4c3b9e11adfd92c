"""Files that a command writes because an option names them."""

import os
from pathlib import Path

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


def _cannot_write(option: str, what: str, target: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"cannot write {what} {target}: {error.strerror}; name another file with {option}, "
        "or - for standard output"
    )
