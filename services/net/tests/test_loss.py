"""Loss that is known beforehand, and what is reported of it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.net.tests import namespaces
from services.net.tests.namespaces import Namespace
from services.net.tests.stream_calls import Transfer, build, call, transfer_with
from tests.compiled import STRICT, compiled
from tests.machine_code import ROOT

NO_NAMESPACES = namespaces.why_not()
in_namespaces = pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))
BUFFERS = 4 << 20
HERE = Path(__file__).parent
INCLUDED = tuple(f"-I{ROOT / folder}" for folder in ("harness", "services/net/bench"))


@pytest.fixture(scope="module")
def program() -> Path:
    """The probe."""
    return build("stream_probe")


@pytest.fixture(scope="module")
def transfer(program: Path) -> Transfer:
    return transfer_with(program)


@pytest.fixture(scope="module")
def veth() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces over a veth pair of MTU 1500."""
    with namespaces.pair() as both:
        yield both


def between(near: Namespace, far: Namespace, address: str = "10.9.0.2") -> dict[str, str]:
    """The probe's arguments for a transfer from the one to the other."""
    return {"near_ns": near.path, "far_ns": far.path, "far": address}


@pytest.mark.parametrize("path", ["single", "mmsg"])
@pytest.mark.parametrize("every", [2, 7, 50, 1000])
@pytest.mark.sampled(5)
def test_a_filter_drops_every_kth(transfer: Transfer, path: str, every: int) -> None:
    """A classic BPF filter in front of the receiving socket: numbers 0, k, 2k … never come."""
    sent = 5096
    both = transfer(path=path, work=1472 * sent, rate=60e6, drop=every, buffers=BUFFERS)
    assert both.sender["datagrams"] == sent
    assert both.lost == both.receiver["dropped_by_receiver"] == -(-sent // every)
    assert both.receiver["bytes"] == 1472 * (sent - both.lost)


def test_a_filter_drops_what_gso_made_one(transfer: Transfer) -> None:
    """The filter sees what GRO has joined as one: each is lost as all the datagrams it held."""
    segments = 65507 // 1472
    messages, every = 200, 5
    both = transfer(
        path="gso",
        work=1472 * segments * messages,
        rate=60e6,
        drop=every * segments,
        buffers=BUFFERS,
    )
    # In batches of a millisecond the sends are smaller, and of one size.
    assert both.lost == both.receiver["dropped_by_receiver"] > 0
    assert both.sender["datagrams"] == segments * messages


def test_no_more_is_dropped_than_is_missing() -> None:
    """Each joined buffer that was dropped held as many datagrams as the others on average."""
    probe = compiled("dropped_probe", [HERE / "dropped_probe.c"], [*STRICT, *INCLUDED])
    unknown = 2**64 - 1
    # Dropped buffers, buffers and datagrams that came, datagrams that were sent: what was dropped.
    calls = {
        (3, 10, 40, 100): 12,
        (3, 10, 40, 45): 5,
        (3, 10, 40, 40): 0,
        (3, 10, 45, 40): 0,
        (3, 10, 40, 0): 0,
        (3, 10, 40, unknown): 12,
        (0, 1, 1, unknown): 0,
    }
    lines = "".join(f"{' '.join(map(str, call))}\n" for call in calls)
    answers = subprocess.run([probe], input=lines, text=True, capture_output=True, check=True)
    assert [int(one) for one in answers.stdout.split()] == list(calls.values())


@in_namespaces
@pytest.mark.parametrize("path", ["single", "mmsg", "gso"])
@pytest.mark.parametrize("address", ["10.9.0.2", "fd09::2"])
@pytest.mark.sampled(5)
def test_nothing_is_lost_over_veth_at_a_low_rate(
    transfer: Transfer, veth: tuple[Namespace, Namespace], path: str, address: str
) -> None:
    both = transfer(
        path=path, block=1400, rate=5e6, work=1400 * 500, buffers=BUFFERS, **between(*veth, address)
    )
    assert both.lost == 0 and both.sender["datagrams"] == 500
    assert both.sender["path_mtu_bytes"] == 1500


@in_namespaces
def test_gso_of_what_the_path_does_not_carry(
    program: Path, veth: tuple[Namespace, Namespace]
) -> None:
    result = call(program, path="gso", block=1473, duration=5, **between(*veth))
    assert result.returncode == 1
    assert "datagrams of 1473 bytes do not fit the path's MTU of 1500" in result.stderr
    assert "use --block-bytes 1472 at most, or --udp-path mmsg" in result.stderr


@in_namespaces
@pytest.mark.parametrize("path", ["single", "mmsg"])
def test_large_datagrams_go_in_fragments(
    transfer: Transfer, veth: tuple[Namespace, Namespace], path: str
) -> None:
    both = transfer(
        path=path, block=65507, work=65507 * 20, rate=2e6, buffers=BUFFERS, **between(*veth)
    )
    assert both.lost == 0 and both.receiver["datagrams"] == 20


@in_namespaces
def test_tcp_over_veth(transfer: Transfer, veth: tuple[Namespace, Namespace]) -> None:
    both = transfer(path="sendfile", block=131072, duration=0.3, **between(*veth))
    assert both.sender["bytes"] == both.receiver["bytes"] > 1 << 20
    assert both.sender["path_mtu_bytes"] == 1500 and both.sender["mss_bytes"] <= 1460


def in_bytes(text: str, word: str) -> int:
    """A figure of `tc -s qdisc` that follows a word."""
    words = text.replace(",", " ").split()
    return int(words[words.index(word) + 1])


@in_namespaces
@pytest.mark.parametrize("offered_mbit", [200, 300])
@pytest.mark.parametrize("path", ["single", "mmsg", "gso"])
@pytest.mark.sampled(5)
def test_a_queue_on_the_way_drops(transfer: Transfer, path: str, offered_mbit: int) -> None:
    """A token bucket of 100 Mbit/s on a middle hop. What it dropped is what is reported lost, one
    for one, and what came is no more than the bucket lets through."""
    with namespaces.chain() as (near, middle, far):
        rate = ["rate", "100mbit", "burst", "20kb", "limit", "100kb"]
        middle.call("tc", "qdisc", "add", "dev", "out0", "root", "tbf", *rate)
        both = transfer(
            path=path,
            rate=offered_mbit * 1e6 / 8,
            duration=0.5,
            buffers=BUFFERS,
            **between(near, far, "10.9.2.1"),
        )
        queue = middle.call("tc", "-s", "qdisc", "show", "dev", "out0")
    assert both.lost == in_bytes(queue, "(dropped") > 0
    assert both.receiver["dropped_by_receiver"] == 0
    # A frame has 14 bytes more than its packet. The bucket lets through its rate and what it and
    # its queue hold; less where this machine's CPUs kept the sender waiting.
    offered_s = both.sender["last_s"] - both.sender["first_s"]
    carried_bytes = 100e6 / 8 * offered_s + 120_000
    assert 0 < both.receiver["datagrams"] * (1472 + 42) < 1.02 * carried_bytes


@in_namespaces
def test_a_narrow_place_on_the_way(transfer: Transfer, program: Path) -> None:
    """A hop whose MTU is smaller than what the interface says, and that says so: what left before
    its word came is lost, what follows goes in fragments, and GSO, which cannot, tells."""
    with namespaces.chain() as (near, middle, far):
        middle.call("ip", "link", "set", "out0", "mtu", "1300")
        way = between(near, far, "10.9.2.1")
        both = transfer(path="single", work=1472 * 200, rate=1e6, **way)
        assert 0 < both.lost < 20 and both.sender["path_mtu_bytes"] == 1300
        assert transfer(path="copy", duration=0.2, **way).sender["path_mtu_bytes"] == 1300
        result = call(program, path="gso", duration=5, **way)
    assert result.returncode == 1
    assert "do not fit the path's MTU of 1300: use --block-bytes 1272 at most" in result.stderr
