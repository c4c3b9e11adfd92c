"""Addresses, connections with a time limit, and what the kernel says of the way to somewhere."""

import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.net.tests import namespaces
from services.net.tests.namespaces import Namespace
from services.net.tests.stream_calls import build

NO_NAMESPACES = namespaces.why_not()
in_namespaces = pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))
Say = Callable[..., str]


@pytest.fixture(scope="module")
def program() -> Path:
    """The probe with sanitizers."""
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    return build("endpoint_probe", *checks)


@pytest.fixture(scope="module")
def say(program: Path) -> Say:
    """What the probe prints."""

    def printed(*arguments: object, inside: Namespace | None = None) -> str:
        command = [str(program), *map(str, arguments)]
        if inside:
            return inside.call(*command).strip()
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=20
        ).stdout.strip()

    return printed


@pytest.fixture(scope="module")
def veth() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces over a veth pair of MTU 1500."""
    with namespaces.pair() as both:
        yield both


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("192.0.2.1", "192.0.2.1 port 7, allowed, loopback 0, headers 28"),
        ("127.0.0.9", "127.0.0.9 port 7, allowed, loopback 1, headers 28"),
        ("2001:db8::1", "2001:db8::1 port 7, allowed, loopback 0, headers 48"),
        ("::1", "::1 port 7, allowed, loopback 1, headers 48"),
        ("fe80::1%lo", "fe80::1%lo port 7, allowed, loopback 0, headers 48"),
        ("::ffff:127.0.0.1", "127.0.0.1 port 7, allowed, loopback 1, headers 28"),
    ],
)
def test_addresses(say: Say, text: str, shown: str) -> None:
    assert say("parse", text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "::g",
        "fe80::1%",
        "fe80::1%none",
        " 127.0.0.1",
        "1" * 100,
    ],
)
def test_no_addresses(say: Say, text: str) -> None:
    assert say("parse", text) == "no address"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("224.0.0.1", "it is a multicast address"),
        ("239.255.255.255", "it is a multicast address"),
        ("::ffff:224.0.0.1", "it is a multicast address"),
        ("255.255.255.255", "it is a broadcast address"),
        ("0.0.0.0", "it is the unspecified address"),
        ("240.0.0.1", "it is a reserved address"),
        ("ff02::1", "it is a multicast address"),
        ("::", "it is the unspecified address"),
    ],
)
def test_where_no_far_end_can_be(say: Say, text: str, why: str) -> None:
    assert f", {why}, " in say("parse", text)


@in_namespaces
def test_broadcast_of_an_own_network(say: Say, veth: tuple[Namespace, Namespace]) -> None:
    near, _ = veth
    near.call("ip", "addr", "add", "10.77.0.1/24", "broadcast", "+", "dev", "near0")
    assert "it is a broadcast address" in say("parse", "10.77.0.255", inside=near)
    assert "allowed" in say("parse", "10.77.0.254", inside=near)


def test_the_same_host(say: Say) -> None:
    assert say("same", "127.0.0.1", "::ffff:127.0.0.1") == "same"
    assert say("same", "127.0.0.1", "127.0.0.2") == "other"
    assert say("same", "127.0.0.1", "::1") == "other"
    assert say("same", "fe80::1", "fe80::1%lo") == "same"
    assert say("same", "2001:db8::1", "2001:db8::2") == "other"


def test_the_loopback_as_a_way(say: Say) -> None:
    shown = say("route", "127.0.0.1", 1472)
    assert shown.startswith("from 127.0.0.1 by lo, lo, mtu ") and shown.endswith("gso: the best")


@in_namespaces
def test_ways_from_a_namespace(say: Say, veth: tuple[Namespace, Namespace]) -> None:
    near, _ = veth
    shown = "by near0, veth, mtu 1500, path 1500"
    assert say("route", "10.9.0.2", 1472, inside=near) == f"from 10.9.0.1 {shown}; gso: the best"
    assert say("route", "fd09::2", 1452, inside=near) == f"from fd09::1 {shown}; gso: the best"
    long = "a datagram of this size does not fit one packet of the path"
    assert say("route", "10.9.0.2", 1473, inside=near).endswith(f"; mmsg: {long}")
    assert say("route", "fd09::2", 1453, inside=near).endswith(f"; mmsg: {long}")
    # Its own address is reached through the loopback.
    assert "by lo, lo, mtu 65536" in say("route", "10.9.0.1", 1472, inside=near)
    assert say("route", "192.0.2.1", 1472, inside=near) == "ENETUNREACH"


def test_one_large_datagram_a_send(say: Say) -> None:
    assert "one send has room for one" in say("route", "127.0.0.1", 40_000)


def test_connecting(say: Say) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert say("connect", "127.0.0.1", port, 5) == "connected after 0.0 s"
    assert say("connect", "127.0.0.1", port, 5) == "ECONNREFUSED after 0.0 s"


@in_namespaces
def test_no_answer(say: Say, veth: tuple[Namespace, Namespace]) -> None:
    """An address whose owner drops what it gets."""
    near, far = veth
    # Another try finds them there.
    far.call("ip", "addr", "replace", "10.9.0.3/24", "dev", "far0")
    far.call("ip", "route", "replace", "blackhole", "10.9.0.1")
    try:
        printed = say("connect", "10.9.0.3", 9, 0.5, inside=near)
    finally:
        far.call("ip", "route", "del", "blackhole", "10.9.0.1")
    found = re.fullmatch(r"ETIMEDOUT after (\d\.\d) s", printed)
    assert found and 0.5 <= float(found[1]) < 3, printed


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_listening_and_accepting(program: Path, address: str) -> None:
    command = [str(program), "listen", address, "0", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        with socket.create_connection((address, port)):
            assert listener.stdout.readline() == f"from {address}\n"


def test_no_caller(say: Say) -> None:
    assert say("listen", "127.0.0.1", 0, 0.2).splitlines()[1] == "ETIMEDOUT"


def test_a_port_that_is_taken(say: Say) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert say("listen", "127.0.0.1", server.getsockname()[1], 1) == "EADDRINUSE"


def test_congestion_controls(say: Say) -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    assert say("congestion", "reno") == "supported"
    why = say("congestion", "nosuch")
    assert "this kernel has no nosuch" in why and " ".join(available) in why
