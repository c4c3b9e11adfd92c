"""uvicorn, with fewer wake-ups and a prompt end."""

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.server import HANDLED_SIGNALS

from hostbench.base.errors import ResourceError
from hostbench.base.listen import Listen
from hostbench.web.door import Door, DoorSocket

# The time between two calls of a caller on one connection. It is longer than any client of ours
# keeps one, so that a connection is never closed during a request.
KEEP_ALIVE_S = 75
BACKLOG = 128
SOCKET_MODE = 0o666  # the key decides who may call
_log = structlog.get_logger()


class QuietServer(uvicorn.Server):
    """A server that sleeps until something comes; uvicorn itself wakes ten times a second, and a
    trial may be running.

    SIGTERM and SIGINT end what runs, then the answers in progress, and then the process.
    """

    def __init__(self, config: uvicorn.Config, end: Callable[[], None]) -> None:
        """`end` is called on the loop when a signal has come; it must return at once."""
        super().__init__(config)
        self._end = end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested = asyncio.Event()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Wake the loop. It runs in a signal handler, so it does no more; unlike uvicorn's version,
        the process does not die from the signal afterwards."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop_requested.set)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals; unlike uvicorn's version, do not restore the handlers: a further signal
        during the end must not kill the process."""
        for number in HANDLED_SIGNALS:
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number in HANDLED_SIGNALS:
                signal.signal(number, signal.SIG_IGN)

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn's tasks at each tick belong to options that serve() does not
        set."""
        self._loop = asyncio.get_running_loop()
        # Imported objects stay, so the garbage collector need not visit them. A visit takes 0.1 s
        # and stops all threads.
        gc.freeze()
        if not self.should_exit:
            await self._stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what runs first, because uvicorn waits for the answers in progress."""
        self._end()
        await super().shutdown(sockets)


def listening_socket(listen: Listen, door: Door) -> DoorSocket:
    """Return a socket that accepts connections from now on, through `door`. Raise ResourceError."""
    try:
        bound = _tcp_socket(listen) if listen.path is None else _unix_socket(listen.path)
    except OSError as error:
        raise ResourceError(
            f"cannot listen at {listen}: {error.strerror}; set HOSTBENCH_LISTEN to another address"
        ) from None
    bound.door = door
    bound.listen(BACKLOG)
    return bound


def _tcp_socket(listen: Listen) -> DoorSocket:
    found = socket.getaddrinfo(
        listen.address or None,
        listen.port,
        type=socket.SOCK_STREAM,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_PASSIVE,
    )
    family, kind, protocol, _, address = found[0]
    # With its protocol: asyncio disables Nagle's algorithm only if it knows that this is TCP;
    # otherwise a first line would wait 40 ms for the acknowledgement of the headers.
    bound = DoorSocket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(address)
    return bound


def _unix_socket(path: Path) -> DoorSocket:
    bound = DoorSocket(socket.AF_UNIX)
    if path.is_socket():
        try:
            bound.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()  # left by a killed service
        else:
            bound.close()
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    bound.bind(str(path))
    path.chmod(SOCKET_MODE)
    return bound


def serve(
    app: FastAPI, listen: Listen, end: Callable[[], None], grace_s: int, **options: Any
) -> None:
    """Serve until a signal comes, then call `end`, and give the answers in progress `grace_s`
    seconds.

    `options`: see uvicorn.Config. Raise ResourceError when it cannot listen.
    """
    door = Door()
    config = uvicorn.Config(
        app,
        http=door.protocol(),
        ws="none",
        loop="asyncio",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
        **options,
    )
    with listening_socket(listen, door) as bound:
        _log.info("listening", at=bound.getsockname(), pid=os.getpid())
        QuietServer(config, end).run([bound])
    if listen.path is not None:
        listen.path.unlink(missing_ok=True)
