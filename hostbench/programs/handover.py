"""A session handed to the program of the near end: by a file in memory that it inherits, for a
command line would show the token to everybody on this host."""

import contextlib
import os
from collections.abc import Iterator

from hostbench.base.errors import ResourceError
from hostbench.model.service import SessionPlace
from hostbench.model.table import Workload

# The parameter of scope host that takes the file's descriptor.
PARAM = "session_fd"


def takes_session(workload: Workload | None) -> bool:
    """Whether a workload has a far end."""
    return workload is not None and workload.param(PARAM) is not None


def session_text(place: SessionPlace) -> str:
    """What stands in the file: a line each."""
    lines = {"address": place.address, "port": place.port, "token": place.token}
    return "".join(f"{name}={value}\n" for name, value in lines.items() if value is not None)


@contextlib.contextmanager
def text_descriptor(name: str, text: str) -> Iterator[int]:
    """A file without a name in any directory that holds `text`, at its beginning. Raises
    ResourceError."""
    try:
        descriptor = os.memfd_create(name)
    except OSError as error:
        raise ResourceError(f"cannot make a file in memory: {error.strerror}") from None
    try:
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
