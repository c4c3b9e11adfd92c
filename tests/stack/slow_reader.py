"""A follower of a job who takes what comes when it likes."""

import contextlib
import socket
from typing import Self

from tests.patience import PATIENCE_S
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess


class SlowReader:
    """It takes the beginning of the answer, and the rest when its caller wants what came."""

    def __init__(self, orchestrator: OrchestratorProcess, job: str) -> None:
        self._socket = socket.socket()
        # So little waits in the kernel that the server notices soon.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(("127.0.0.1", orchestrator.port))
        request = f"GET /jobs/{job}/events HTTP/1.1\r\nHost: here\r\n"
        self._socket.sendall(f"{request}Authorization: Bearer {API_KEY}\r\n\r\n".encode())
        self._taken = self._socket.recv(1024)
        assert self._taken.startswith(b"HTTP/1.1 200 OK"), self._taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def ids(self) -> list[str]:
        """The ids of the events that came whole until the server ended the connection."""
        with contextlib.suppress(ConnectionResetError):
            while some := self._socket.recv(1 << 16):
                self._taken += some
        whole, _, _ = self._taken.rpartition(b"\n\n")
        lines = whole.decode().splitlines()
        return [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
