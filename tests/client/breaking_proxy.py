"""A way to a server that can be cut."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class BreakingProxy:
    """Passes bytes on to a port of this machine, until it is cut. The next `turned_away`
    connections end as soon as something is sent."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._closed = False
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        self.turned_away = 0

    @contextlib.contextmanager
    def running(self) -> Iterator["BreakingProxy"]:
        thread = threading.Thread(target=self._accept)
        thread.start()
        try:
            yield self
        finally:
            self._closed = True
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self.cut()
            thread.join()

    def cut(self) -> None:
        """End every connection there is; new ones are welcome."""
        cut, self._open = self._open, []
        for end in cut:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.turned_away:
                self.turned_away -= 1
                near.recv(65536)
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # no server listens there now
                near.close()
                continue
            self.connections += 1
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(one, other)).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
