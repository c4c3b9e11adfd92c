"""How the two ends of a pair find one another, and notice when the other one ends.

The end that takes its node first listens, and the other one calls it. Their connection stays open
as long as both measure: when one end dies, the other one sees the connection close. Both have the
campaign's certificate and key (secret.py), so no other program takes part.

Each line is a JSON object: first `pair` and `key` of the caller, then `url` of the far end's
service, at the end `done` of the near end; or `error` of an end that gives up.
"""

import contextlib
import hmac
import json
import select
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.errors import HostbenchError, ResourceError, UsageError, shown
from hostbench.base.interrupt import Interrupt
from hostbench.base.tls import trusting
from hostbench.fleet.pair.secret import SecretFiles
from hostbench.results.store import write_whole

RETRY_S = 0.5
# A caller that sends nothing for this long is a stranger. Others wait meanwhile, and call for
# longer than some strangers take.
HELLO_S_MOST, CALL_S_MOST = 2.0, 10.0
LINE_BYTES_MOST = 8192
# A node that lost its power closes no connection: it is given up after so long.
KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4))
PORT_MOST = 65535


@dataclass(frozen=True)
class Place:
    """Where ends meet: at a port of the end that listens, at an address and a port for the end that
    calls, or in a file that both see, which then has the address and the port."""

    address: str = ""
    port: int = 0
    file: Path | None = None

    @classmethod
    def parsed(cls, text: str) -> "Place":
        """Return the place in `:8010`, `192.0.2.7:8010`, `[2001:db8::7]:8010` or a path with a
        slash. Raise UsageError."""
        if "/" in text:
            return cls(file=Path(text))
        address, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) <= PORT_MOST:
            raise UsageError(
                f"--meet {shown(text)} is not allowed; give a port such as :8010, an address "
                "such as 192.0.2.7:8010, or the path of a file with a slash in it"
            )
        return cls(address.strip("[]"), int(port))

    def looked_up(self) -> tuple[str, int] | None:
        """Return the address and the port; None: the file does not have them yet."""
        if self.file is None:
            return self.address, self.port
        with contextlib.suppress(FileNotFoundError):
            address, _, port = self.file.read_text().strip().rpartition(":")
            return address, int(port)
        return None


class Meeting:
    """The connection of an end with the other one, which `other` names."""

    def __init__(self, connection: ssl.SSLSocket, other: str) -> None:
        self._connection = connection
        self._other = other
        self._pending = b""

    @property
    def own_address(self) -> str:
        """Return the address of this host that the other end reaches."""
        return _plain(self._connection.getsockname()[0])

    def say(self, **words: object) -> None:
        """Send a line; an end that is gone does not hear it."""
        with contextlib.suppress(OSError):
            self._connection.sendall(json.dumps(words).encode() + b"\n")

    def heard(self, interrupt: Interrupt, until_s: float | None = None) -> dict[str, object]:
        """Return the next line. Raise ResourceError with the other end's error, when it is gone, or
        at the time of the monotonic clock; or Interrupted."""
        try:
            words = self._line(interrupt, until_s)
        except (OSError, ValueError, RecursionError):
            words = None
        if words is None:
            raise ResourceError(f"{self._other} ended; hostbench fleet retry measures again")
        if (error := words.get("error")) is not None:
            raise ResourceError(f"{self._other}: {error}")
        return words

    def _line(self, interrupt: Interrupt, until_s: float | None) -> dict[str, object] | None:
        while b"\n" not in self._pending:
            if not self._connection.pending():
                _wait_for(self._connection, interrupt, until_s, self._other)
            try:
                received = self._connection.recv(LINE_BYTES_MOST)
            except TimeoutError:  # What came was of TLS, and no part of a line.
                continue
            if not received or len(self._pending) > LINE_BYTES_MOST:
                return None
            self._pending += received
        line, _, self._pending = self._pending.partition(b"\n")
        words = json.loads(line)
        return words if isinstance(words, dict) else None

    def hang_up(self) -> None:
        """End the connection: the other end notices, and what waits for a line here ends."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it; nothing may wait for a line."""
        self.hang_up()
        self._connection.close()


@contextlib.contextmanager
def listened(
    place: Place, address: str | None, files: SecretFiles, pair: str, other: str,
    interrupt: Interrupt, wait_s: float,
) -> Iterator[Meeting]:  # fmt: skip
    """Wait until the other end calls. `address`: how it reaches this host, for the file of
    `place`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # The end that calls comes once, and would find them before a line.
    try:
        context.load_cert_chain(files.certificate, files.private_key)
    except (OSError, ssl.SSLError) as error:
        raise ResourceError(f"cannot use {files.certificate}: {error}") from None
    expected = {"pair": pair, "key": files.key()}
    until_s = time.monotonic() + wait_s
    with _listening(place) as door:
        if place.file is not None:
            write_whole(place.file, f"{address}:{door.getsockname()[1]}\n".encode())
        meeting = None
        while meeting is None:
            _wait_for(door, interrupt, until_s, other)
            meeting = _accepted(door, context, expected, other, interrupt)
    with contextlib.closing(meeting):
        yield meeting


def _listening(place: Place) -> socket.socket:
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", place.port), family=socket.AF_INET6, dualstack_ipv6=True
            )
        return socket.create_server(("", place.port))
    except OSError as error:
        raise ResourceError(f"cannot listen at port {place.port}: {error.strerror}") from None


def _accepted(
    door: socket.socket, context: ssl.SSLContext, expected: dict[str, str], other: str,
    interrupt: Interrupt,
) -> Meeting | None:  # fmt: skip
    """Return the meeting with a caller, unless it is a stranger."""
    caller, _ = door.accept()
    try:
        caller.settimeout(HELLO_S_MOST)
        meeting = Meeting(context.wrap_socket(_kept_alive(caller), server_side=True), other)
        words = meeting.heard(interrupt, time.monotonic() + HELLO_S_MOST)
        if all(_same(words.get(name), value) for name, value in expected.items()):
            return meeting
    except (OSError, ResourceError):
        pass
    caller.close()
    return None


def _same(given: object, expected: str) -> bool:
    return hmac.compare_digest(str(given).encode(errors="replace"), expected.encode())


@contextlib.contextmanager
def called(
    place: Place, files: SecretFiles, pair: str, other: str, interrupt: Interrupt, wait_s: float
) -> Iterator[Meeting]:
    """Call the other end as soon as it listens."""
    context, key = trusting(files.certificate, pinned=True), files.key()
    until_s = time.monotonic() + wait_s
    while (connection := _connection(place, context)) is None:
        if time.monotonic() > until_s:
            raise ResourceError(f"{other} did not answer within {wait_s:.0f} s")
        interrupt.wait(RETRY_S)
    with contextlib.closing(Meeting(connection, other)) as meeting:
        meeting.say(pair=pair, key=key)
        yield meeting


def _connection(place: Place, context: ssl.SSLContext) -> ssl.SSLSocket | None:
    found = place.looked_up()
    if found is None:
        return None
    try:
        plain = socket.create_connection(found, timeout=CALL_S_MOST)
        return context.wrap_socket(_kept_alive(plain))
    except OSError:
        return None


def _kept_alive(connection: socket.socket) -> socket.socket:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


def _wait_for(what: socket.socket, interrupt: Interrupt, until_s: float | None, other: str) -> None:
    """Wait until there is something to read. Raise Interrupted, or ResourceError at the time."""
    poll = select.poll()
    poll.register(what, select.POLLIN)
    poll.register(interrupt, select.POLLIN)
    left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
    found = poll.poll(None if left_s is None else left_s * 1e3)
    interrupt.check()
    if not found:
        raise ResourceError(f"{other} did not answer in time")


def _plain(address: str) -> str:
    """Return an IPv4 address in place of the IPv6 address that stands for it."""
    return address.removeprefix("::ffff:")


def error_text(error: HostbenchError) -> str:
    """Return what the other end is to know of an error."""
    return " ".join(error.message.split())
