"""A far end serves the one near end that it was opened for, and no other: a caller without
the token, from elsewhere, twice, half or for too much gets a clear answer or none, and nothing is
left open."""

import contextlib
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.net.tests.far_end import (
    BAD_TEST,
    BEGIN,
    BOTH,
    CAP,
    CONNECTED,
    CRR,
    END,
    HEARTBEAT,
    HELLO,
    LOOPBACK,
    PROOF,
    PROTOCOL,
    RECEIVE,
    RESOURCE,
    RR,
    SENT,
    START,
    STRANGER,
    TOKEN,
    UDP,
    USED,
    VERSIONS,
    WITHIN_S,
    WRONG_TOKEN,
    FarEnd,
    Near,
    Refusal,
    Wanted,
    closed_by_far_end,
    far_end,
    frame,
    grant,
    refuses,
)
from services.net.tests.program import call, session_file, sockets_of
from tests.benchmark import USAGE

SOON_S = 1.5  # what is to be gone within a second, on a machine whose CPUs others have


@pytest.fixture
def far() -> Iterator[FarEnd]:
    """A far end that listens."""
    with far_end() as one:
        yield one.listening()


def whole_test(near: Near, block: bytes = b"x" * 1024) -> None:
    """From TEST to BYE, with every byte counted."""
    near.ask(Wanted())
    with near.tcp() as data:
        near.receive(CONNECTED)
        for phase, blocks in enumerate((3, 40)):
            near.begin(phase)
            data.sendall(block * blocks)
            near.sent(len(block) * blocks)
            counts, _ = near.end(phase)
            assert counts[0].bytes == len(block) * blocks
        near.bye()


# ---- as it is meant to be -----------------------------------------------------------------------


def test_a_session_from_token_to_bye(far: FarEnd) -> None:
    with Near.proven(far) as near:
        whole_test(near)
    end = far.ended("done", within_s=SOON_S)
    assert end["reason"] is None and end["strangers"] == 0 and end["cpu_s"] > 0


def test_the_far_end_sends_until_its_time_is_over_and_tells_how_much(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted(direction=RECEIVE, duration_s=0.3))
        with near.tcp() as data:
            near.receive(CONNECTED)
            near.begin(0)
            near.receive(SENT)
            near.end(0)
            begun = time.monotonic()
            near.begin(1)
            data.settimeout(0.3)
            received = 0
            while time.monotonic() < begun + 2:
                try:
                    received += len(data.recv(1 << 20))
                except TimeoutError:
                    break
            near.send(frame(END, b"\1"))
            # The far end reported its sender before it received END.
            index, reported, _ = struct.unpack(">HQQ", near.receive(SENT))
            assert index == 0 and reported == received > 0
        near.bye()


def test_nothing_is_sent_before_the_near_end_receives(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted(direction=RECEIVE, duration_s=0.3, ramp_s=0.1))
        with near.tcp() as data:
            near.receive(CONNECTED)
            near.begin(0, start=False)
            assert not select.select([data], [], [], 0.4)[0]
            near.send(frame(START, b"\0"))
            assert data.recv(1)
            near.send(frame(START, b"\0"))
            far.ended("refused", "START")


def test_ipv6() -> None:
    with far_end(bind="::1", allowed="::1") as far:
        assert far.listening().address == "::1"
        connection = socket.create_connection(("::1", far.port), WITHIN_S)
        with Near(connection) as near:
            near.prove()
            near.bye()
        far.ended("lost", "left before")


def test_no_port_for_data_before_a_test_and_none_after_the_sockets_are_there(far: FarEnd) -> None:
    with Near.proven(far) as near:
        before = sockets_of(far.process.pid)
        near.ask(Wanted(streams=2), sockets=2)
        port = near.openings[0][0]
        with near.tcp(0), near.tcp(1):
            near.receive(CONNECTED)
            assert refuses(LOOPBACK, port)
            assert sockets_of(far.process.pid) == before + 2


# ---- the token ----------------------------------------------------------------------------------


def test_a_wrong_token_is_refused_and_the_right_one_still_works(far: FarEnd) -> None:
    with pytest.raises(Refusal) as refused:
        Near.proven(far, token=b"y" * 16)
    assert refused.value.code == WRONG_TOKEN and "token" in refused.value.reason
    with Near.proven(far) as near:
        whole_test(near)
    far.ended("done")


def test_three_wrong_proofs_end_the_session(far: FarEnd) -> None:
    for _ in range(3):
        with pytest.raises((Refusal, ConnectionResetError)):
            Near.proven(far, token=b"y" * 16)
    far.ended("refused", "3 proofs")


def test_a_proof_of_another_challenge_is_worth_nothing(far: FarEnd) -> None:
    with Near.connect(far) as near:
        near.hello()
        near.send(frame(PROOF, bytes(32)))
        with pytest.raises(Refusal) as refused:
            near.receive(0)
    assert refused.value.code == WRONG_TOKEN


def test_a_token_works_once(far: FarEnd) -> None:
    with Near.proven(far) as near:
        with pytest.raises(Refusal) as refused:
            Near.proven(far)
        assert refused.value.code == USED and "another session" in refused.value.reason
        whole_test(near)
    far.ended("done")
    assert refuses(LOOPBACK, far.port)


def test_of_two_that_know_the_token_the_first_wins(far: FarEnd) -> None:
    with Near.connect(far) as late:
        late.hello()
        with Near.proven(far) as near:
            with pytest.raises(Refusal) as refused:
                late.receive(0)
            assert refused.value.code == USED
            whole_test(near)
    far.ended("done")


def test_a_session_expires() -> None:
    with far_end(expiry_s=0.3) as far:
        far.listening().ended("expired", "0.3 s", within_s=SOON_S)


def test_a_half_open_caller_does_not_keep_a_session_alive() -> None:
    with far_end(expiry_s=0.5) as far, Near.connect(far.listening()) as near:
        near.hello()
        far.ended("expired", within_s=2)


def test_who_waits_for_connections_sleeps() -> None:
    with far_end() as far, Near.proven(far.listening()) as near:
        near.ask(Wanted(kind=CRR, direction=BOTH, streams=4), sockets=4)
        near.receive(CONNECTED)
        for phase in (0, 1):
            near.begin(phase)
            time.sleep(0.5)
            for index in range(4):
                near.sent(0, 0, index)
            near.end(phase, 4)
        near.bye()
        assert far.ended("done")["cpu_s"] < 0.25


def test_many_streams_need_more_files_than_the_usual_limit() -> None:
    limit = ("prlimit", "--nofile=64:4096")
    with far_end(prefix=limit, streams=100) as far, Near.proven(far.listening()) as near:
        near.ask(Wanted(streams=100), sockets=100)
        with contextlib.ExitStack() as stack:
            for index in range(100):
                stack.enter_context(near.tcp(index))
            near.receive(CONNECTED)


def test_too_few_files_are_named() -> None:
    limit = ("prlimit", "--nofile=160:160")
    with far_end(prefix=limit, streams=100) as far, Near.proven(far.listening()) as near:
        with pytest.raises(Refusal) as refused:
            near.ask(Wanted(streams=100), sockets=100)
        assert refused.value.code == RESOURCE
        assert "160 files" in refused.value.reason and "LimitNOFILE" in refused.value.reason
        far.ended("refused", "160 files", within_s=SOON_S)


@pytest.mark.parametrize("requested", [False, True])
def test_an_opening_that_comes_to_nothing_ends(far: FarEnd, requested: bool) -> None:
    with Near.proven(far) as near:
        if requested:
            near.ask(Wanted())
        with near.beating():
            far.ended("lost", "data sockets" if requested else "no test", within_s=7)


def test_a_long_list_of_cpus_is_read(far: FarEnd) -> None:
    cpus = ",".join(map(str, range(5000, 6000, 2)))
    with Near.proven(far) as near, pytest.raises(Refusal) as refused:
        near.ask(Wanted(far_cpus=cpus))
    assert refused.value.code == BAD_TEST
    assert "CPU 5000 of far_cpus" in refused.value.reason


# ---- who comes ----------------------------------------------------------------------------------


def test_a_stranger_is_closed_at_once_and_counted(far: FarEnd) -> None:
    def visit() -> None:
        with Near.connect(far, source=STRANGER) as stranger:
            assert closed_by_far_end(stranger.connection, SOON_S)

    visit()
    with Near.proven(far) as near:
        visit()
        near.ask(Wanted())
        with near.tcp(source=STRANGER) as stranger:
            assert closed_by_far_end(stranger, SOON_S)
        with near.tcp():
            near.receive(CONNECTED)
            near.ramp()
            near.begin(1)
            near.sent(0)
            _, strangers = near.end(1)
        near.bye()
    assert far.ended("done")["strangers"] == strangers == 3


def test_half_open_callers_keep_no_other_out(far: FarEnd) -> None:
    silent = [Near.connect(far) for _ in range(20)]
    with Near.proven(far) as near:
        whole_test(near)
    far.ended("done")
    for one in silent:
        one.connection.close()


def test_a_half_open_caller_is_closed(far: FarEnd) -> None:
    with Near.connect(far) as near:
        assert closed_by_far_end(near.connection, 3.5)


@pytest.mark.parametrize("key", [b"k" * 16, b"k"], ids=["wrong", "cut short"])
def test_a_data_connection_needs_its_key(far: FarEnd, key: bytes) -> None:
    with Near.proven(far) as near, near.beating():
        near.ask(Wanted())
        with near.tcp(key=key) as other:
            assert closed_by_far_end(other, 3.5)
        with near.tcp():
            near.receive(CONNECTED)


def test_a_key_opens_one_connection(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted(streams=2), sockets=2)
        with near.tcp(0), near.tcp(0) as again:
            assert closed_by_far_end(again, SOON_S)
            with near.tcp(1):
                near.receive(CONNECTED)


# ---- datagrams ----------------------------------------------------------------------------------


def shout(port: int, source: str, payload: bytes, times: int = 1) -> socket.socket:
    """Datagrams to a port of the far end."""
    shouter = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    shouter.bind((source, 0))
    for _ in range(times):
        shouter.sendto(payload, (LOOPBACK, port))
    return shouter


def datagram(sequence: int, phase: int, length: int = 1024) -> bytes:
    """One that a receiver might take for the test's, were it not for where it comes from."""
    return struct.pack("<QB", sequence, phase).ljust(length, b"\0")


def test_datagrams_of_strangers_count_for_nothing(far: FarEnd) -> None:
    wanted = Wanted(
        protocol=UDP, block_bytes=8
    )  # too short for a header: all that comes is counted
    with Near.proven(far) as near:
        near.ask(wanted)
        port, key = near.openings[0]
        before = [
            shout(port, STRANGER, b"hbk1" + key + bytes(16), 5),
            shout(port, STRANGER, bytes(8), 5),
            shout(port, LOOPBACK, bytes(8), 5),
        ]
        with near.udp() as data:
            near.receive(CONNECTED)
            near.ramp()
            near.begin(1)
            during = [shout(port, STRANGER, bytes(8), 5), shout(port, LOOPBACK, bytes(8), 5)]
            for _ in range(10):
                data.send(bytes(8))
            near.sent(80, 10)
            counts, strangers = near.end(1)
        near.bye()
        for one in before + during:
            one.close()
    assert counts[0].datagrams == 10
    assert strangers == 15  # those that come later the kernel drops: the socket is connected
    far.ended("done")


def test_what_was_queued_before_connect_is_dropped(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted(protocol=UDP, block_bytes=8))
        port, key = near.openings[0]
        os.kill(far.process.pid, signal.SIGSTOP)
        stranger = shout(port, STRANGER, bytes(8), 7)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
            data.connect((LOOPBACK, port))
            data.settimeout(WITHIN_S)
            data.send(b"hbk1" + key + bytes(16))
            after = shout(port, STRANGER, bytes(8), 9)  # queued behind the key
            os.kill(far.process.pid, signal.SIGCONT)
            challenge = data.recv(100)
            data.send(b"hba1" + key + challenge[4:])
            near.receive(CONNECTED)
            near.ramp()
            near.begin(1)
            data.send(bytes(8))
            near.sent(8, 1)
            counts, strangers = near.end(1)
        near.bye()
        stranger.close()
        after.close()
    assert (counts[0].datagrams, strangers) == (1, 16)


def test_a_key_that_is_repeated_is_no_stranger(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted(protocol=UDP, block_bytes=8))
        port, key = near.openings[0]
        os.kill(far.process.pid, signal.SIGSTOP)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
            data.connect((LOOPBACK, port))
            data.settimeout(WITHIN_S)
            for _ in range(4):
                data.send(b"hbk1" + key + bytes(16))
            data.send(b"hbk1" + bytes(32))  # another key
            os.kill(far.process.pid, signal.SIGCONT)
            challenge = data.recv(100)
            data.send(b"hba1" + key + challenge[4:])
            near.receive(CONNECTED)
            near.begin(0)
            near.sent(0, 0)
            assert near.end(0)[1] == 1


def test_nothing_is_sent_to_who_did_not_ask(far: FarEnd) -> None:
    with Near.proven(far) as near, near.beating():
        near.ask(Wanted(protocol=UDP, direction=RECEIVE))
        port, key = near.openings[0]
        for source, payload in ((STRANGER, b"hbk1" + key + bytes(16)), (LOOPBACK, b"x" * 36)):
            with shout(port, source, payload, 3) as shouter:
                shouter.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    shouter.recv(100)
        # The right key gets less than it sent until the challenge has come back.
        with shout(port, LOOPBACK, b"hbk1" + key + bytes(16)) as asking:
            asking.settimeout(0.3)
            assert len(asking.recv(100)) == 20 < 36
            with pytest.raises(TimeoutError):
                asking.recv(100)
            asking.connect((LOOPBACK, port))
            asking.send(b"hba1" + key + b"z" * 16)  # the wrong answer
            with pytest.raises(TimeoutError):
                asking.recv(100)


# ---- what is requested --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caps", "wanted", "part"),
    [
        ({"streams": 3}, Wanted(streams=2, direction=BOTH), "4 sockets"),
        ({"streams": 3}, Wanted(kind=RR, load_streams=2, load_direction=BOTH), "5 sockets"),
        ({"duration_s": 2}, Wanted(ramp_s=1, duration_s=1.5), "2.5 s"),
        ({"bytes": 1000}, Wanted(work_bytes=1001), "1001 bytes"),
        ({"rate": 1e6}, Wanted(), "no rate"),
        ({"rate": 1e6}, Wanted(rate=6e5, streams=2), "1200000 byte/s"),
    ],
    ids=["streams", "load", "time", "work", "no rate", "rate"],
)
def test_more_than_the_caps_is_refused(caps: dict[str, Any], wanted: Wanted, part: str) -> None:
    with far_end(**caps) as far, Near.proven(far.listening()) as near:
        with pytest.raises(Refusal) as refused:
            near.ask(wanted)
        assert refused.value.code == CAP and part in refused.value.reason
        assert "the session allows" in refused.value.reason
        far.ended("refused", part, within_s=SOON_S)


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        (Wanted(streams=0), "streams"),
        (Wanted(streams=513), "streams"),
        (Wanted(block_bytes=0), "block_bytes"),
        (Wanted(protocol=UDP, block_bytes=65508), "65507"),
        (Wanted(rate=float("inf")), "malformed"),
        (Wanted(duration_s=-1), "duration_s"),
        (Wanted(protocol=UDP, kind=CRR), "TCP"),
        (Wanted(load_streams=1), "load_streams"),
        (Wanted(congestion="../x"), "congestion"),
        (Wanted(far_cpus="8000"), "CPU 8000"),
        (Wanted(far_cpus="0,0"), "CPU list"),
        (Wanted(flags=4), "malformed"),
    ],
)
def test_a_test_that_makes_no_sense_is_refused(far: FarEnd, wanted: Wanted, part: str) -> None:
    with Near.proven(far) as near:
        with pytest.raises(Refusal) as refused:
            near.ask(wanted)
        assert refused.value.code == BAD_TEST and part in refused.value.reason
        far.ended("refused", within_s=SOON_S)


def test_bytes_over_the_cap_end_the_session() -> None:
    with far_end(bytes=10_000) as far, Near.proven(far.listening()) as near:
        near.ask(Wanted())
        with near.tcp() as data:
            near.receive(CONNECTED)
            near.ramp()
            near.begin(1)
            data.sendall(bytes(11_000))
            with pytest.raises(Refusal) as refused:
                near.receive(0)
            assert refused.value.code == CAP and "10000 bytes" in refused.value.reason
        far.ended("capped", "10000 bytes", within_s=SOON_S)


def test_a_rate_over_the_cap_ends_the_session() -> None:
    with far_end(rate=100_000) as far, Near.proven(far.listening()) as near:
        near.ask(Wanted(rate=50_000.0))
        with near.tcp() as data:
            near.receive(CONNECTED)
            near.ramp()
            near.begin(1)
            data.sendall(bytes(1_000_000))
            with pytest.raises(Refusal) as refused:
                near.receive(0)
            assert refused.value.code == CAP and "faster" in refused.value.reason
        far.ended("capped", within_s=SOON_S)


def test_the_time_over_the_cap_ends_the_session() -> None:
    with far_end(duration_s=0.5) as far, Near.proven(far.listening()) as near, near.beating():
        with pytest.raises(Refusal) as refused:
            near.receive(0)
        assert refused.value.code == CAP and "0.5 s" in refused.value.reason
        far.ended("capped", within_s=SOON_S)


# ---- who leaves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [RECEIVE, BOTH])
@pytest.mark.parametrize("protocol", [0, UDP], ids=["tcp", "udp"])
def test_a_near_end_that_vanishes_takes_the_far_end_along(
    far: FarEnd, protocol: int, direction: int
) -> None:
    with Near.proven(far) as near:
        sockets = 2 if direction == BOTH else 1
        # Slow enough for this reader: a sender that waits for room is another case.
        wanted = Wanted(protocol=protocol, direction=direction, duration_s=20, rate=1e6)
        near.ask(wanted, sockets)
        opened = [near.udp(i) if protocol == UDP else near.tcp(i) for i in range(sockets)]
        near.receive(CONNECTED)
        near.begin(0)
        for i in range(sockets - 1):
            near.sent(0, 0, i)
        near.send(frame(END, b"\0"))
        time.sleep(0.2)
        near.connection.close()
        for one in opened:
            one.close()
        far.ended("lost", within_s=SOON_S)


def test_a_sender_that_waits_for_room_ends_too(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted(direction=RECEIVE, ramp_s=20))
        with near.tcp():  # no thread reads
            near.receive(CONNECTED)
            near.begin(0)
            time.sleep(0.3)
            near.connection.close()
            far.ended("lost", within_s=SOON_S)


def test_a_silent_near_end_is_lost_after_three_seconds(far: FarEnd) -> None:
    with Near.proven(far) as near:
        since = time.monotonic()
        near.ask(Wanted())
        with near.tcp():
            near.receive(CONNECTED)
            far.ended("lost", "silent for 3 s", within_s=4.5)
            assert time.monotonic() - since > 2.5


def test_heartbeats_keep_a_session(far: FarEnd) -> None:
    with Near.proven(far) as near:
        with near.beating():
            time.sleep(3.6)
        whole_test(near)
    far.ended("done")


def test_it_ends_with_its_parent(far: FarEnd) -> None:
    with Near.proven(far):
        far.cut_lifeline()
        far.ended("ended", "lifeline", within_s=SOON_S)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_by_a_signal_and_tells_the_near_end(far: FarEnd, sent: signal.Signals) -> None:
    with Near.proven(far) as near:
        far.process.send_signal(sent)
        with pytest.raises(Refusal) as refused:
            near.receive(0)
        assert sent.name in refused.value.reason
        far.ended("ended", sent.name, within_s=SOON_S)


# ---- what is sent -------------------------------------------------------------------------------


def test_another_version_is_distinguished(far: FarEnd) -> None:
    with Near.connect(far) as near:
        with pytest.raises(Refusal) as refused:
            near.hello(version=2)
        assert refused.value.code == VERSIONS and "same hostbench" in refused.value.reason
    with Near.proven(far) as near:
        whole_test(near)
    far.ended("done")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        frame(HELLO, b"\0"),
        frame(HELLO, struct.pack(">H", 1) + bytes(17)),
        frame(PROOF, bytes(32)),
        frame(99),
        b"\xff" * 40_000,
    ],
    ids=["http", "short", "long", "proof first", "unknown", "noise"],
)
def test_nonsense_before_the_proof_does_no_harm(far: FarEnd, nonsense: bytes) -> None:
    with Near.connect(far) as near:
        with contextlib.suppress(OSError):  # it may have closed already
            near.send(nonsense)
        assert closed_by_far_end(near.connection, 3.5)
    with Near.proven(far) as near:
        whole_test(near)
    far.ended("done")


@pytest.mark.parametrize(
    "nonsense",
    [
        frame(BEGIN, b"\0"),
        frame(99),
        frame(HELLO, bytes(18)),
        b"\0\1\xff\xff",
        frame(HEARTBEAT, b"\xff\xff\xff\xff"),
    ],
    ids=["out of order", "unknown", "again", "too long", "heartbeat"],
)
def test_nonsense_behind_the_proof_ends_the_session(far: FarEnd, nonsense: bytes) -> None:
    with Near.proven(far) as near:
        near.send(nonsense)
        with pytest.raises(Refusal) as refused:
            near.receive(0)
        assert refused.value.code == PROTOCOL
        far.ended("refused", "the near end sent", within_s=SOON_S)


def test_an_end_without_its_counts_ends_the_session(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted())
        with near.tcp():
            near.receive(CONNECTED)
            near.begin(0)
            with pytest.raises(Refusal) as refused:
                near.end(0)
            assert "END before" in refused.value.reason
        far.ended("refused", within_s=SOON_S)


def test_bytes_that_never_come_are_not_waited_for_long(far: FarEnd) -> None:
    with Near.proven(far) as near:
        near.ask(Wanted())
        with near.tcp(), near.beating():
            near.receive(CONNECTED)
            near.begin(0)
            near.sent(1000)
            near.connection.settimeout(8)
            with pytest.raises(Refusal) as refused:
                near.end(0)
            assert "nothing moves" in refused.value.reason
        far.ended("failed", "nothing moves")


# ---- what it is given ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"allowed": "224.0.0.1"}, ("allowed=224.0.0.1", "multicast")),
        ({"allowed": "ff02::1"}, ("allowed=ff02::1", "multicast")),
        ({"allowed": "255.255.255.255"}, ("broadcast",)),
        ({"allowed": "0.0.0.0"}, ("allowed=0.0.0.0",)),
        ({"bind": "239.1.2.3"}, ("bind=239.1.2.3", "multicast")),
        ({"bind": None}, ("no bind",)),
        ({"allowed": "example.org"}, ("allowed=example.org", "IPv4 or IPv6")),
        ({"token": "00" * 15}, ("32 to 64 hexadecimal digits",)),
        ({"token": None}, ("no token",)),
        ({"streams": 0}, ("streams=0", "from 1")),
        ({"duration_s": "nan"}, ("duration_s=nan",)),
        ({"rate": "-1"}, ("rate=-1",)),
        ({"expiry_s": "1e9"}, ("expiry_s=1e9", "3600")),
    ],
)
def test_a_grant_that_makes_no_sense_opens_nothing(
    changes: dict[str, object], parts: tuple[str, ...]
) -> None:
    with session_file(grant(**changes)) as fd:
        result = call("far-end", "--session-fd", str(fd), pass_fds=(fd,))
    assert result.returncode == USAGE and not result.stdout
    (line,) = result.stderr.splitlines()
    assert all(part in line for part in parts), line
    assert TOKEN.hex() not in line and "00" * 15 not in line


@pytest.mark.parametrize(
    "arguments", [(), ("--session-fd",), ("--session-fd", "x"), ("--session-fd=0", "--port=1")]
)
def test_it_says_how_it_is_called(arguments: tuple[str, ...]) -> None:
    result = call("far-end", *arguments)
    assert result.returncode == USAGE
    assert "--session-fd" in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_port_that_is_taken() -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        with far_end(port=port) as far:
            far.ended("failed", f"port {port} of {LOOPBACK} is taken", within_s=SOON_S)


def test_an_address_that_is_not_this_hosts() -> None:
    with far_end(bind="192.0.2.1") as far:
        far.ended("failed", "not an address of this host", within_s=SOON_S)


def test_one_session_after_the_other_on_one_port() -> None:
    with far_end() as far:
        port = far.listening().port
        with Near.proven(far) as near:
            whole_test(near)
        far.ended("done")
    with far_end(port=port) as far, Near.proven(far.listening()) as near:
        assert far.port == port
        whole_test(near)


def test_the_token_is_on_no_command_line(far: FarEnd) -> None:
    line = Path(f"/proc/{far.process.pid}/cmdline").read_bytes()
    environment = Path(f"/proc/{far.process.pid}/environ").read_bytes()
    assert TOKEN.hex().encode() not in line + environment
