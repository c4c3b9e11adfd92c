"""Limits on connections, so that callers which send nothing, or do not read their answer, keep no
other caller out."""

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

# For a whole request, from the connection or its first byte to its last byte; also for a TLS
# handshake.
REQUEST_S = 10.0
# For a caller to read what was written to it: about 64 KiB.
READING_S = 30.0
CONNECTIONS_MOST = 500
# Callers behind a proxy share one address.
OF_ADDRESS_MOST = 250
# In one turn of the loop, so that an existing caller is served before 250 others have come after
# it.
ACCEPTED_AT_ONCE = 32
LOG_EVERY_S = 60.0
# struct tcp_info of linux/tcp.h, up to tcpi_bytes_received.
_RECEIVED = struct.Struct("128xQ")
_log = structlog.get_logger()


class _Turn(Enum):
    """Whose turn it is on a connection."""

    ASKING = "a request is not whole yet"
    WORKING = "a request is being answered"
    UNREAD = "the caller does not take the answer"
    RESTING = "every request was answered, and no other has come"


@dataclass
class _Caller:
    """One connection. `is_known`: a complete request of it has arrived."""

    connection: socket.socket
    address: str | None
    turn: _Turn
    since: float
    is_known: bool = False
    deadline: asyncio.TimerHandle | None = None


@dataclass
class Door:
    """The connections of one server, from accept() to close().

    A connection that keeps the server waiting for longer than `request_s` or `reading_s` is closed.
    If the limit is reached, for all connections or for one address, one of them makes room for a
    new one: the oldest that has sent nothing at all, not even a TLS handshake; else the one that
    has been silent longest. If all are being answered, the new one is closed.
    """

    most: int = CONNECTIONS_MOST
    of_address_most: int = OF_ADDRESS_MOST
    request_s: float = REQUEST_S
    reading_s: float = READING_S
    _callers: dict[int, _Caller] = field(default_factory=dict)
    _of_address: Counter[str] = field(default_factory=Counter)
    _ended: int = 0
    _logged_at: float = -LOG_EVERY_S

    def admit(self, connection: socket.socket, address: object) -> None:
        """Admit a connection. Raise ConnectionAbortedError if there is no room; the connection is
        then closed."""
        # Callers on a Unix socket have no address.
        whose = str(address[0]) if isinstance(address, tuple) else None
        if not self._make_room(whose):
            self._count_ended()
            connection.close()
            raise ConnectionAbortedError
        number = connection.fileno()
        self._callers[number] = _Caller(connection, whose, _Turn.RESTING, 0.0)
        if whose is not None:
            self._of_address[whose] += 1
        self._turn(number, _Turn.ASKING)

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._callers)

    def forget(self, number: int) -> None:
        """Remove the connection with this descriptor, which is about to be closed."""
        caller = self._callers.pop(number, None)
        if caller is None:
            return
        if caller.deadline is not None:
            caller.deadline.cancel()
        if caller.address is not None:
            self._of_address[caller.address] -= 1
            if not self._of_address[caller.address]:
                del self._of_address[caller.address]

    def _make_room(self, whose: str | None) -> bool:
        if whose is not None and self._of_address[whose] >= self.of_address_most:
            return self._end_idlest(whose)
        return len(self._callers) < self.most or self._end_idlest(None)

    def _end_idlest(self, whose: str | None) -> bool:
        """Close the most idle connection of address `whose`, or of any if None; return whether
        there was one."""
        idle = sorted(
            (caller.is_known, caller.since, number)
            for number, caller in self._callers.items()
            if caller.turn is not _Turn.WORKING and whose in (None, caller.address)
        )
        if not idle:
            return False
        silent = (
            number
            for is_known, _, number in idle
            if not is_known and not _has_sent(self._callers[number].connection)
        )
        self._end(next(silent, idle[0][2]))
        return True

    def _end(self, number: int) -> None:
        # asyncio owns the descriptor: it reads the end of the stream and closes it.
        connection = self._callers[number].connection
        self.forget(number)
        self._count_ended()
        with contextlib.suppress(OSError):  # the other side was first
            connection.shutdown(socket.SHUT_RDWR)

    def _count_ended(self) -> None:
        self._ended += 1
        now = asyncio.get_running_loop().time()
        if now >= self._logged_at + LOG_EVERY_S:
            self._logged_at = now
            _log.warning("connections_ended", so_far=self._ended, open=len(self._callers))

    def _turn(self, number: int, turn: _Turn) -> None:
        caller = self._callers.get(number)
        if caller is None or caller.turn is turn:
            return
        loop = asyncio.get_running_loop()
        if caller.deadline is not None:
            caller.deadline.cancel()
        allowed_s = {_Turn.ASKING: self.request_s, _Turn.UNREAD: self.reading_s}.get(turn)
        caller.deadline = loop.call_later(allowed_s, self._end, number) if allowed_s else None
        caller.turn, caller.since = turn, loop.time()
        caller.is_known |= turn is _Turn.WORKING

    def protocol(self) -> type[H11Protocol]:
        """Return uvicorn's protocol, whose connections report to this door whose turn it is."""
        door = self

        class Protocol(H11Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(cast(asyncio.Transport, transport))
                self._number: int = transport.get_extra_info("socket").fileno()

            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                self._tell()

            def on_response_complete(self) -> None:
                super().on_response_complete()
                self._tell()

            def pause_writing(self) -> None:
                super().pause_writing()
                door._turn(self._number, _Turn.UNREAD)

            def resume_writing(self) -> None:
                super().resume_writing()
                self._tell()

            def _tell(self) -> None:
                # None until the first request.
                cycle: RequestResponseCycle | None = self.cycle
                if cycle is None or cycle.more_body:
                    turn = _Turn.ASKING
                elif not cycle.response_complete:
                    turn = _Turn.WORKING
                else:
                    has_begun_another = bool(self.conn.trailing_data[0])
                    turn = _Turn.ASKING if has_begun_another else _Turn.RESTING
                door._turn(self._number, turn)

        return Protocol


def _has_sent(connection: socket.socket) -> bool:
    """Whether anything has arrived, even only the beginning of a TLS handshake. The kernel knows
    it; asyncio reports a handshake only at its end."""
    try:
        information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
        return bool(_RECEIVED.unpack(information)[0])
    except (OSError, struct.error):  # a Unix socket, an old kernel
        return False


class DoorSocket(socket.socket):
    """A listening socket whose connections pass a door."""

    door: Door
    _accepted = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection.

        Raise ConnectionAbortedError for a connection that the door does not admit; asyncio treats
        that as one that its caller gave up. Raise BlockingIOError if other callers must be served
        first; asyncio returns in its next turn.
        """
        if self._accepted >= ACCEPTED_AT_ONCE:
            raise BlockingIOError
        if not self._accepted:
            asyncio.get_running_loop().call_soon(self._begin_anew)
        self._accepted += 1
        accepted, address = super().accept()
        connection = _Connection(fileno=accepted.detach())
        connection.door = self.door
        self.door.admit(connection, address)
        return connection, address

    def _begin_anew(self) -> None:
        self._accepted = 0


class _Connection(socket.socket):
    door: Door

    def close(self) -> None:
        """Close the connection, and remove it from the door before another connection gets its
        descriptor."""
        self.door.forget(self.fileno())
        super().close()
