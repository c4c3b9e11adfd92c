"""Sessions of a net service that are open while a test does something else."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostbench.model.service import SessionEvent
from tests.faults.command import write_program
from tests.service.streams import RunningTrial
from tests.stack.service_process import ServiceProcess

PROGRAM = Path(__file__).with_name("far_end_program.py")
OPEN: dict[str, Any] = {"allowed_address": "127.0.0.1", "duration_s": 60, "expiry_s": 60}


def net_programs(directory: Path) -> Path:
    """A directory whose net-bench is the one that stands in."""
    programs = directory / "net-programs"
    programs.mkdir()
    write_program(programs / "net-bench", PROGRAM.read_text())
    return programs


class OpenSession(RunningTrial):
    """A session whose stream is read in a thread, and which is renewed."""

    path = "/sessions"

    @property
    def place(self) -> SessionEvent:
        """Its first line."""
        return SessionEvent.model_validate_json(self.raw[0])

    def connect(self, token: str | None = None) -> None:
        """Come as the near end, with the token of the session or another one."""
        place = self.place
        with socket.create_connection((place.address, place.port)) as near:
            near.sendall((token or place.token or "").encode())
            near.recv(1)  # until it is closed

    def is_closed(self) -> bool:
        """Whether no process listens there any more."""
        place = self.place
        with socket.socket(socket.AF_INET6 if ":" in place.address else socket.AF_INET) as probe:
            return probe.connect_ex((place.address, place.port)) != 0


@contextlib.contextmanager
def session(service: ServiceProcess, session_id: str, **request: Any) -> Iterator[OpenSession]:
    """A session that is open, or was refused, and is over when this is left."""
    one = OpenSession(service, session_id, **(OPEN | request))
    try:
        yield one.begun()
    finally:
        one.forget_the_lease()
        one.finish()
