"""Bulk streams over the loopback, each path: nothing lost or made up, and what was in force."""

import subprocess
from pathlib import Path

import pytest

from services.net.tests.stream_calls import Transfer, build, call, transfer_with

TCP = ("copy", "sendfile", "zerocopy")
UDP = ("single", "mmsg", "gso")
BUFFERS = 4 << 20


@pytest.fixture(scope="module")
def program() -> Path:
    """The probe with sanitizers."""
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    return build("stream_probe", *checks)


@pytest.fixture(scope="module")
def transfer(program: Path) -> Transfer:
    return transfer_with(program)


@pytest.mark.parametrize("far", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("truncate", [0, 1])
@pytest.mark.parametrize("path", TCP)
@pytest.mark.sampled(5)
def test_tcp_brings_every_byte(transfer: Transfer, path: str, truncate: int, far: str) -> None:
    both = transfer(path=path, far=far, block=65536, duration=0.1, truncate=truncate)
    assert both.sender["bytes"] == both.receiver["bytes"] > 1 << 20
    assert both.receiver["first_s"] < both.receiver["last_s"]
    assert both.sender["last_s"] - both.sender["first_s"] > 0.05


@pytest.mark.parametrize("block", [1, 1000, 65536, 1 << 20])
@pytest.mark.parametrize("path", TCP)
@pytest.mark.sampled(5)
def test_tcp_does_the_work_to_the_byte(transfer: Transfer, path: str, block: int) -> None:
    work = 10_001 if block == 1 else 5_000_011
    both = transfer(path=path, block=block, work=work)
    assert both.sender["bytes"] == both.receiver["bytes"] == work


@pytest.mark.parametrize("path", UDP)
@pytest.mark.parametrize("block", [1, 15, 16, 1472, 9000, 65507])
@pytest.mark.sampled(5)
def test_udp_counts_whole_blocks(transfer: Transfer, path: str, block: int) -> None:
    """Paced, and with buffers that hold all of it: nothing may be lost on a loopback."""
    count = 40
    both = transfer(
        path=path, block=block, work=count * block - block // 2, rate=block * 2e3, buffers=8 << 20
    )
    for end in (both.sender, both.receiver):
        assert (end["datagrams"], end["bytes"]) == (count, count * block)
    assert both.receiver["duplicated"] == both.receiver["reordered"] == 0
    assert both.receiver["dropped_by_receiver"] == both.sender["refused"] == 0


def test_udp_over_ipv6(transfer: Transfer) -> None:
    both = transfer(path="gso", far="::1", work=1472 * 500, rate=20e6, buffers=BUFFERS)
    assert both.receiver["datagrams"] == both.sender["datagrams"] == 500


def test_gso_and_gro_are_reported_when_in_force(transfer: Transfer) -> None:
    joined = transfer(path="gso", work=1472 * 440, buffers=BUFFERS)
    assert joined.sender["gso_segments"] == 65507 // 1472 and joined.receiver["gro"] == 1
    assert transfer(path="gso", block=16, work=16 * 64).sender["gso_segments"] == 64
    for path in ("single", "mmsg"):
        plain = transfer(path=path, work=1472 * 100, buffers=BUFFERS)
        assert plain.sender["gso_segments"] == plain.receiver["gro"] == 0


def test_zerocopy_on_a_loopback_is_a_copy_and_reported(transfer: Transfer) -> None:
    """The loopback's receiver must not see the sender's memory change, so the kernel copies."""
    both = transfer(path="zerocopy", block=65536, work=64 * 65536)
    assert both.sender["zerocopy_sent"] >= 64
    assert both.sender["zerocopy_copied"] == both.sender["zerocopy_sent"]
    assert transfer(path="copy", block=65536, work=1 << 20).sender["zerocopy_sent"] == 0


@pytest.mark.parametrize("path", ["copy", "sendfile", "single", "mmsg", "gso"])
def test_the_rate_is_the_one_requested(transfer: Transfer, path: str) -> None:
    rate, seconds = 4e6, 0.5
    sent: list[float] = []
    while len(sent) < 5 and not any(one > rate * (seconds - 0.1) for one in sent):
        both = transfer(path=path, block=1400, rate=rate, duration=seconds, buffers=BUFFERS)
        sent.append(both.sender["bytes"])
        # A thread that is held up catches up with 10 ms at most, so a busy machine makes it less.
        assert sent[-1] <= rate * seconds + 65536
    assert max(sent) > rate * (seconds - 0.1), sent


@pytest.mark.parametrize("path", ["copy", "gso"])
def test_the_ramp_is_not_in_the_figures(transfer: Transfer, path: str) -> None:
    both = transfer(path=path, ramp=0.2, work=1472 * 50, rate=20e6, buffers=BUFFERS)
    assert both.sender["bytes"] == both.receiver["bytes"] == 1472 * 50


@pytest.mark.parametrize("path", ["copy", "single"])
def test_a_receiver_ends_without_timers(program: Path, path: str) -> None:
    """Of a user who may have no more of them. All that is dropped has the receiver wait in vain."""
    words = [f"path={path}", "block=1472", "duration=0.1", "drop=2" if path == "single" else ""]
    without = ["prlimit", "--sigpending=0", str(program), *filter(None, words)]
    run = subprocess.run(without, capture_output=True, text=True, timeout=20)
    assert run.returncode == 0, run.stderr


def test_the_first_call_is_distinguished(transfer: Transfer) -> None:
    """Its bytes were on their way before the receiver's clock was read."""
    both = transfer(path="copy", block=65536, work=1 << 22)
    assert 0 < both.receiver["first_bytes"] <= 131072
    both = transfer(path="single", work=1472 * 10, rate=1e6)
    assert both.receiver["first_bytes"] == 1472


def test_what_tcp_says_of_the_connection(transfer: Transfer) -> None:
    sender = transfer(path="copy", block=65536, duration=0.1, congestion="reno").sender
    assert sender["path_mtu_bytes"] > 1500 and sender["mss_bytes"] > 1400
    assert sender["congestion_window_bytes"] >= sender["mss_bytes"] and 0 < sender["tcp_rtt_s"] < 1
    assert sender["retransmits"] >= 0 and 0 < sender["cpu_s"] < 10


def test_buffers_in_force_are_read_back(transfer: Transfer) -> None:
    requested = 100_000
    both = transfer(path="single", work=1472, buffers=requested)
    assert (
        both.sender["send_buffer_bytes"] == both.receiver["receive_buffer_bytes"] == 2 * requested
    )


def test_small_buffers_lose_and_say_so(transfer: Transfer) -> None:
    """A receiver with room for a few datagrams only: all that is missing, it dropped itself."""
    both = transfer(path="mmsg", block=9000, work=9000 * 4000, buffers=20_000)
    assert both.lost > 0
    assert both.receiver["dropped_by_receiver"] == both.lost


def test_no_receiver(transfer: Transfer) -> None:
    sender = transfer(path="single", gone=1, work=1472 * 100, rate=1472e3).sender
    assert sender["refused"] > 10 and sender["datagrams"] == 100


def test_a_far_end_that_closes_is_reported(program: Path) -> None:
    result = call(program, path="copy", block=65536, gone=1, duration=5)
    assert result.returncode == 1 and "the other end is gone" in result.stderr, result.stderr


@pytest.mark.parametrize("path", TCP)
def test_a_far_end_that_takes_nothing_holds_nothing_up(transfer: Transfer, path: str) -> None:
    """Full buffers on both sides: the call that blocks comes back to look at the clock."""
    sender = transfer(path=path, block=1 << 20, mute=1, duration=0.5, buffers=100_000).sender
    assert 0.4 < sender["last_s"] - sender["first_s"] < 1.5


def test_a_congestion_control_that_is_not_there(program: Path) -> None:
    result = call(program, path="copy", congestion="nosuch", duration=1)
    assert result.returncode == 1
    assert "setting the congestion control: No such file or directory" in result.stderr


def test_lost_at_the_very_end(transfer: Transfer) -> None:
    """Ten sent and one received are nine lost: the sender's count comes by another way."""
    both = transfer(path="single", work=1472, tail=9)
    assert both.sender["datagrams"] == 10 and both.lost == 9


def test_duplicates_are_no_datagrams(transfer: Transfer) -> None:
    both = transfer(path="mmsg", work=1472 * 100, rate=10e6, again=7, tail=1, buffers=BUFFERS)
    assert both.receiver["datagrams"] == 100 and both.receiver["duplicated"] == 7
    assert both.receiver["bytes"] == 1472 * 100
