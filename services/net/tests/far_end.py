"""A far end, and a near end in Python that speaks its protocol, well or badly as a test wants."""

import hashlib
import hmac
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from services.net.tests.program import PROGRAM
from tests.meanwhile import meanwhile

VERSION = 1
TOKEN = bytes(range(16))
NEAR_NONCE = b"n" * 16
LOOPBACK = "127.0.0.1"
# Another host as far as addresses go.
STRANGER = "127.0.0.2"
HELLO, CHALLENGE, PROOF, READY, REFUSED, TEST, LISTENING, CONNECTED = range(1, 9)
BEGIN, BEGUN, SENT, END, COUNTS, RESULT, HEARTBEAT, BYE, START = range(9, 18)
PROTOCOL, VERSIONS, WRONG_TOKEN, USED, BAD_TEST, CAP, RESOURCE, FAILURE, LOST, ENDED = range(1, 11)
TCP, UDP = range(2)
STREAM, RR, CRR = range(3)
SEND, RECEIVE, BOTH = range(3)
WITHIN_S = 5.0


def grant(**changes: object) -> str:
    """What a far end is given; a value of None leaves the word out."""
    words: dict[str, object] = {
        "bind": LOOPBACK,
        "allowed": LOOPBACK,
        "token": TOKEN.hex(),
        "duration_s": 30,
        "streams": 16,
        "bytes": 0,
        "rate": 0,
        "expiry_s": 10,
    } | changes
    return "".join(f"{name}={value}\n" for name, value in words.items() if value is not None)


@dataclass
class FarEnd:
    """A far end's process."""

    process: "subprocess.Popen[str]"
    lifeline: int
    address: str = ""
    port: int = 0

    def listening(self) -> Self:
        """Read what it listens on."""
        assert self.process.stdout is not None
        event = json.loads(self.process.stdout.readline())
        assert event["event"] == "listening", event
        self.address, self.port = event["address"], event["port"]
        return self

    def ended(self, outcome: str, *parts: str, within_s: float = WITHIN_S) -> dict[str, Any]:
        """It ends in that time, with this outcome and these parts in its reason, and its port
        with it; its last event."""
        output, errors = self.process.communicate(timeout=within_s)
        last: dict[str, Any] = json.loads(output.splitlines()[-1])
        assert last["event"] == "session_end"
        assert last["outcome"] == outcome, last
        for part in parts:
            assert part in last["reason"], last
        assert self.process.returncode == (0 if outcome == "done" else 1), errors
        assert not errors
        if self.port:
            assert refuses(self.address, self.port)
        return last

    def cut_lifeline(self) -> None:
        """As if its parent had died."""
        os.close(self.lifeline)
        self.lifeline = -1


@contextmanager
def far_end(
    program: Path = PROGRAM, prefix: Sequence[str] = (), **changes: object
) -> Iterator[FarEnd]:
    """A far end with this grant, not yet read from; gone afterwards. `prefix` stands before the
    program."""
    fd = os.memfd_create("session")
    os.write(fd, grant(**changes).encode())
    theirs, ours = os.pipe()
    with subprocess.Popen(
        [*prefix, str(program), "far-end", f"--session-fd={fd}", f"--lifeline-fd={theirs}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(fd, theirs),
    ) as process:
        os.close(fd)
        os.close(theirs)
        far = FarEnd(process, ours)
        try:
            yield far
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            if far.lifeline >= 0:
                os.close(far.lifeline)


def refuses(address: str, port: int) -> bool:
    """Whether no process listens there."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as caller:
        return caller.connect_ex((address, port)) != 0


def frame(kind: int, body: bytes = b"") -> bytes:
    """A message as it travels."""
    return struct.pack(">HH", kind, len(body)) + body


def text(words: str) -> bytes:
    """A text inside a message."""
    return struct.pack(">H", len(words)) + words.encode()


@dataclass
class Wanted:
    """What a TEST asks for."""

    protocol: int = TCP
    kind: int = STREAM
    direction: int = SEND
    streams: int = 1
    load_streams: int = 0
    load_direction: int = SEND
    block_bytes: int = 1024
    rate: float = 0.0
    send_path: int = 0
    udp_path: int = 0
    flags: int = 0
    send_buffer_bytes: int = 0
    receive_buffer_bytes: int = 0
    congestion: str = ""
    duration_s: float = 1.0
    ramp_s: float = 0.0
    work_bytes: int = 0
    far_cpus: str = ""

    def message(self) -> bytes:
        """The frame."""
        return frame(
            TEST,
            struct.pack(
                ">BBBHHBIdBBBII",
                *(self.protocol, self.kind, self.direction, self.streams, self.load_streams),
                *(self.load_direction, self.block_bytes, self.rate, self.send_path, self.udp_path),
                *(self.flags, self.send_buffer_bytes, self.receive_buffer_bytes),
            )
            + text(self.congestion)
            + struct.pack(">ddQ", self.duration_s, self.ramp_s, self.work_bytes)
            + text(self.far_cpus),
        )


@dataclass
class Counts:
    """The part of a COUNTS that the tests look at."""

    bytes: int
    datagrams: int
    duplicated: int


@dataclass
class Refusal(Exception):
    """A REFUSED."""

    code: int
    reason: str


@dataclass
class Near:
    """The near end's control connection."""

    connection: socket.socket
    pending: bytes = b""
    openings: list[tuple[int, bytes]] = field(default_factory=list)

    @classmethod
    def connect(cls, far: FarEnd, source: str = LOOPBACK) -> Self:
        """A connection, and nothing sent yet."""
        address = (far.address, far.port)
        return cls(socket.create_connection(address, WITHIN_S, (source, 0)))

    @classmethod
    def proven(cls, far: FarEnd, token: bytes = TOKEN) -> Self:
        """One that has proved the token."""
        near = cls.connect(far)
        try:
            near.prove(token)
        except BaseException:
            near.connection.close()
            raise
        return near

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, message: bytes) -> None:
        """One message, or what is to be taken for one."""
        self.connection.sendall(message)

    def receive(self, wanted: int, *, heartbeats: bool = False) -> bytes:
        """The next message other than a heartbeat, which must be of this kind; its body."""
        while True:
            while len(self.pending) < 4 or len(self.pending) < 4 + self._length():
                more = self.connection.recv(65536)
                if not more:
                    raise ConnectionResetError("the far end has closed")
                self.pending += more
            kind, end = struct.unpack(">H", self.pending[:2])[0], 4 + self._length()
            body, self.pending = self.pending[4:end], self.pending[end:]
            if kind == REFUSED:
                raise Refusal(body[0], body[3:].decode())
            if kind != HEARTBEAT or heartbeats:
                assert kind == wanted, kind
                return body

    def _length(self) -> int:
        length: int = struct.unpack(">H", self.pending[2:4])[0]
        return length

    def hello(self, version: int = VERSION) -> bytes:
        """HELLO; the far end's nonce."""
        self.send(frame(HELLO, struct.pack(">H", version) + NEAR_NONCE))
        return self.receive(CHALLENGE)

    def prove(self, token: bytes = TOKEN) -> None:
        """The whole handshake, and the check of the far end's proof."""
        far_nonce = self.hello()
        proof = hmac.digest(token, b"near" + NEAR_NONCE + far_nonce, hashlib.sha256)
        self.send(frame(PROOF, proof))
        ready = self.receive(READY)
        assert ready[:32] == hmac.digest(token, b"far" + NEAR_NONCE + far_nonce, hashlib.sha256)

    def ask(self, wanted: Wanted, sockets: int = 1) -> None:
        """TEST, and the ports and keys that it opens."""
        self.send(wanted.message())
        while len(self.openings) < sockets:
            body = self.receive(LISTENING)
            first, count = struct.unpack(">HH", body[:4])
            assert first == len(self.openings)
            for i in range(count):
                port, key = struct.unpack(">H16s", body[4 + 18 * i : 22 + 18 * i])
                self.openings.append((port, key))

    def tcp(
        self, index: int = 0, source: str = LOOPBACK, key: bytes | None = None
    ) -> socket.socket:
        """A data connection that has shown its key, or another."""
        port, right = self.openings[index]
        data = socket.create_connection((LOOPBACK, port), WITHIN_S, (source, 0))
        data.sendall(right if key is None else key)
        return data

    def udp(self, index: int = 0) -> socket.socket:
        """A data socket that has shown its key and sent the challenge back."""
        port, key = self.openings[index]
        data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        data.settimeout(WITHIN_S)
        data.connect((LOOPBACK, port))
        data.send(b"hbk1" + key + bytes(16))
        challenge = data.recv(100)
        assert challenge[:4] == b"hbc1" and len(challenge) == 20
        data.send(b"hba1" + key + challenge[4:])
        return data

    def begin(self, phase: int, *, start: bool = True) -> None:
        """BEGIN, and the far end does; its senders when this end receives."""
        self.send(frame(BEGIN, bytes([phase])))
        assert self.receive(BEGUN) == bytes([phase])
        if start:
            self.send(frame(START, bytes([phase])))

    def sent(self, sent_bytes: int, datagrams: int = 0, index: int = 0) -> None:
        """What this end has sent on a socket."""
        self.send(frame(SENT, struct.pack(">HQQ", index, sent_bytes, datagrams)))

    def end(self, phase: int, sockets: int = 1) -> tuple[list[Counts], int]:
        """END; what each of the far end's roles counted, and the strangers so far."""
        self.send(frame(END, bytes([phase])))
        counts = []
        for index in range(sockets):
            body = self.receive(COUNTS)
            assert struct.unpack(">H", body[:2]) == (index,)
            counts.append(Counts(*struct.unpack(">QQQ", body[2:26])))
        result = struct.unpack(">BddQ", self.receive(RESULT))
        assert result[0] == phase
        return counts, result[3]

    def ramp(self, sockets: int = 1) -> None:
        """A ramp in which nothing is sent."""
        self.begin(0)
        for index in range(sockets):
            self.sent(0, 0, index)
        self.end(0, sockets)

    def bye(self) -> None:
        """The good end."""
        self.send(frame(BYE))

    def beating(self) -> AbstractContextManager[None]:
        """Heartbeats meanwhile; nothing else may be sent then."""

        def beat(over: threading.Event) -> None:
            while not over.wait(0.5):
                try:
                    self.send(frame(HEARTBEAT, bytes(4)))
                except OSError:
                    return

        return meanwhile(beat)


def closed_by_far_end(connection: socket.socket, within_s: float = WITHIN_S) -> bool:
    """Whether the other end of a connection goes away in that time."""
    until = time.monotonic() + within_s
    while (left := until - time.monotonic()) > 0:
        if not select.select([connection], [], [], left)[0]:
            return False
        try:
            if not connection.recv(65536):
                return True
        except ConnectionResetError:
            return True
    return False
