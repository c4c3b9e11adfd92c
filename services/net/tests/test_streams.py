"""Bulk transfers over the loopback, from the program's call to its figures."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from services.net.tests.program import (
    BEFORE_OTHERS,
    MOMENT,
    STREAMS,
    WORKLOADS,
    alive,
    children_of,
    gone_within,
    measure,
    running,
    sockets_of,
    table,
)
from tests.benchmark import FAILED, MIB, Trial
from tests.patience import wait_until

BOTH_WAYS = ("send", "receive", "both")
TOTAL = 8 * MIB + 12345


def bulk(trial: Trial) -> dict[str, float]:
    """What must hold of every stream's figures."""
    metrics = trial.metrics
    assert metrics["bytes_per_second"] > 0 and metrics["offered_bytes_per_second"] > 0
    assert metrics["work_bytes"] == metrics["receiver_bytes"] <= metrics["sender_bytes"]
    assert sum(t["operations"] for t in trial.end["threads"]) == metrics["receiver_bytes"]
    assert metrics["cpu_seconds_per_gigabyte"] > 0
    assert metrics["far_cpu_seconds_per_gigabyte"] > 0
    assert metrics["turned_away"] == 0
    return metrics


@pytest.mark.parametrize("direction", BOTH_WAYS)
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.sampled(5)
def test_every_byte_of_tcp_arrives(direction: str, streams: int) -> None:
    trial = measure("tcp_stream", *MOMENT, f"--direction={direction}", f"--streams={streams}")
    metrics = bulk(trial)
    assert metrics["sender_bytes"] == metrics["receiver_bytes"]
    assert len(trial.end["threads"]) == streams * (2 if direction == "both" else 1)
    sends, receives = metrics["send_bytes_per_second"], metrics["receive_bytes_per_second"]
    assert (sends is not None) == (direction != "receive")
    assert (receives is not None) == (direction != "send")
    assert metrics["bytes_per_second"] == pytest.approx((sends or 0) + (receives or 0))


@pytest.mark.parametrize("direction", BOTH_WAYS)
def test_every_datagram_is_accounted_for(direction: str) -> None:
    trial = measure("udp_stream", *MOMENT, f"--direction={direction}", "--rate=20000000")
    metrics = bulk(trial)
    sent, received = metrics["sent_datagrams"], metrics["received_datagrams"]
    assert sent > 0 and metrics["lost_datagrams"] == sent - received >= 0
    assert metrics["lost_ratio"] == pytest.approx(1 - received / sent)
    assert metrics["sender_bytes"] == 1472 * sent
    assert metrics["receiver_bytes"] == 1472 * received
    assert metrics["refused_datagrams"] == 0


@pytest.mark.parametrize("direction", BOTH_WAYS)
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.sampled(5)
def test_a_total_of_tcp_is_exact(direction: str, streams: int) -> None:
    trial = measure(
        *("tcp_stream", f"--direction={direction}", f"--streams={streams}"),
        *(f"--total-bytes={TOTAL}", "--warmup-s=0"),
    )
    assert bulk(trial)["receiver_bytes"] == TOTAL == trial.metrics["sender_bytes"]
    assert trial.params["duration_s"] is None


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_a_total_of_udp_is_whole_blocks(direction: str) -> None:
    trial = measure(
        *("udp_stream", f"--direction={direction}", "--rate=50000000"),
        *(f"--total-bytes={TOTAL}", "--warmup-s=0"),
    )
    sent = trial.metrics["sent_datagrams"]
    assert abs(sent * 1472 - TOTAL) <= 1472


@pytest.mark.parametrize("workload", STREAMS)
def test_a_total_and_a_time_end_with_whichever_is_first(workload: str) -> None:
    trial = measure(workload, "--total-bytes=1000000000000000", "--duration-s=0.2")
    assert 0 < trial.metrics["sender_bytes"] < 1e15
    assert trial.end["elapsed_s"] < 5


@pytest.mark.parametrize("direction", ["send", "receive"])
@pytest.mark.parametrize("workload", STREAMS)
def test_a_rate_is_kept(workload: str, direction: str) -> None:
    """A sender that is held up for longer than 10 ms does not make up for the rest, so on a busy
    host a trial falls short, and warns. None sends more, and one that is not held up keeps it."""
    rate = 8e6
    offers: list[float] = []

    def keeps_it() -> bool:
        trial = measure(
            *(workload, f"--direction={direction}", f"--rate={rate:.0f}", "--streams=2"),
            *("--duration-s=1", "--warmup-s=0.1", "--block-bytes=1000"),
            prefix=BEFORE_OTHERS,
        )
        offered = trial.metrics["offered_bytes_per_second"]
        offers.append(offered)
        assert offered < 1.01 * rate
        assert ("rate_not_reached" in trial.warnings) == (offered < 0.95 * rate)
        received = trial.metrics["bytes_per_second"]
        return bool(offered >= 0.95 * rate and received == pytest.approx(rate, rel=0.1))

    wait_until(keeps_it, lambda: f"{offers} instead of {rate}")


def test_a_rate_that_cannot_be_had_is_reported() -> None:
    trial = measure("tcp_stream", *MOMENT, "--rate=900000000000")
    assert "rate_not_reached" in trial.warnings


def test_samples_follow_the_receiver() -> None:
    trial = measure(
        *("tcp_stream", "--rate=40000000", "--duration-s=3", "--sample-interval-s=1"),
        *("--warmup-s=0.1", "--block-bytes=8192"),
    )
    rates = [sample["metrics"]["bytes_per_second"] for sample in trial.samples]
    assert len(rates) >= 2
    for rate in rates:
        assert rate == pytest.approx(40e6, rel=0.15)


@pytest.mark.parametrize("path", ["copy", "sendfile", "zerocopy"])
@pytest.mark.parametrize("receive", ["copy", "truncate"])
@pytest.mark.sampled(5)
def test_tcp_paths(path: str, receive: str) -> None:
    trial = measure("tcp_stream", *MOMENT, f"--send-path={path}", f"--receive-path={receive}")
    assert trial.params["send_path"] == path and trial.params["receive_path"] == receive
    ratio = bulk(trial)["zerocopy_copied_ratio"]
    assert (ratio is not None) == (path == "zerocopy")


def test_auto_becomes_what_it_stands_for() -> None:
    tcp, udp = measure("tcp_stream", *MOMENT), measure("udp_stream", *MOMENT)
    assert (tcp.params["send_path"], tcp.params["receive_path"]) == ("sendfile", "copy")
    assert udp.params["udp_path"] in ("gso", "mmsg")
    assert tcp.params["target"] == "loopback"
    assert tcp.params["congestion"] != "system" and tcp.facts["congestion"]


@pytest.mark.parametrize("path", ["single", "mmsg", "gso"])
def test_udp_paths(path: str) -> None:
    trial = measure("udp_stream", *MOMENT, f"--udp-path={path}", "--rate=50000000")
    metrics = bulk(trial)
    assert trial.params["udp_path"] == path
    assert (metrics["gso_segments"] > 1) == (path == "gso")
    assert metrics["lost_ratio"] < 0.5


@pytest.mark.parametrize("block", [1, 15, 16, 17, 65507])
def test_odd_blocks_of_udp(block: int) -> None:
    trial = measure("udp_stream", *MOMENT, f"--block-bytes={block}", f"--rate={block * 2000}")
    metrics = bulk(trial)
    assert metrics["sender_bytes"] == block * metrics["sent_datagrams"]
    assert (metrics["reordered_datagrams"] is None) == (block < 16)
    assert ("totals_only" in trial.warnings) == (block < 16)


@pytest.mark.parametrize("block", [1, 1000, MIB])
def test_odd_blocks_of_tcp(block: int) -> None:
    bulk(measure("tcp_stream", *MOMENT, f"--block-bytes={block}"))


def test_many_streams() -> None:
    trial = measure("tcp_stream", *MOMENT, "--streams=64", "--block-bytes=4096")
    assert bulk(trial)["receiver_bytes"] == trial.metrics["sender_bytes"]
    assert len(trial.end["threads"]) == 64


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_over_ipv6(workload: str) -> None:
    words = next(p for p in table()[workload]["params"] if p["name"] == "ip_version")
    if words["unsupported"]:
        pytest.skip(words["unsupported"]["6"])
    trial = measure(workload, *MOMENT, "--ip-version=6")
    assert trial.facts["near_address"] == trial.facts["far_address"] == "::1"


def test_what_is_in_force_is_reported() -> None:
    trial = measure("udp_stream", *MOMENT, "--receive-buffer-bytes=100000", "--rate=1000000")
    # The kernel doubles what is requested, for its own overhead.
    assert trial.metrics["receive_buffer_in_force_bytes"] == 200000
    assert trial.metrics["path_mtu_bytes"] in (65535, 65536)
    assert trial.facts["interface"] == "lo" and trial.facts["network_mode"] == "lo"
    assert trial.facts["far_host_name"] == os.uname().nodename


def test_a_congestion_control_of_ones_own() -> None:
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    word = next((one for one in ("reno", "cubic") if one in allowed), None)
    if word is None:
        pytest.skip("neither reno nor cubic may be chosen here")
    trial = measure("tcp_stream", *MOMENT, f"--congestion={word}")
    assert trial.facts["congestion"] == trial.facts["far_congestion"] == word


# ---- how it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_a_signal_ends_both_ends_within_a_second(workload: str) -> None:
    with running(workload) as (process, _):
        far = children_of(process.pid)
        assert len(far) == 1
        time.sleep(0.2)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, messages = process.communicate(timeout=10)
        assert time.monotonic() - begun < 1.5
        assert process.returncode == FAILED and "ended by SIGTERM" in messages
        assert json.loads(output.splitlines()[-1])["code"] == "interrupted"
        assert gone_within(far, 1)


@pytest.mark.parametrize("direction", ["send", "receive"])
@pytest.mark.parametrize("workload", STREAMS)
def test_the_far_end_is_gone_with_the_near_end(workload: str, direction: str) -> None:
    with running(workload, f"--direction={direction}") as (process, _):
        far = children_of(process.pid)
        assert len(far) == 1 and sockets_of(far[0]) > 0
        time.sleep(0.2)
        process.kill()
        process.wait(timeout=5)
        assert gone_within(far, 2)
        assert not sockets_of(far[0])


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_a_far_end_that_dies_is_an_error_within_five_seconds(workload: str) -> None:
    with running(workload) as (process, _):
        (far,) = children_of(process.pid)
        time.sleep(0.2)
        begun = time.monotonic()
        os.kill(far, signal.SIGKILL)
        output, messages = process.communicate(timeout=20)
        assert time.monotonic() - begun < 5
        assert process.returncode == FAILED and len(messages.splitlines()) == 1, messages
        assert json.loads(output.splitlines()[-1])["event"] == "error"


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_a_far_end_that_is_stopped_is_an_error_and_not_a_hang(workload: str) -> None:
    with running(workload) as (process, _):
        (far,) = children_of(process.pid)
        time.sleep(0.2)
        begun = time.monotonic()
        os.kill(far, signal.SIGSTOP)
        try:
            output, _ = process.communicate(timeout=20)
        finally:
            if alive(far):
                os.kill(far, signal.SIGCONT)
        assert time.monotonic() - begun < 5.5
        assert process.returncode == FAILED
        assert json.loads(output.splitlines()[-1])["event"] == "error"
        assert gone_within([far], 2)


def test_a_pause_of_the_whole_machine_is_no_silence() -> None:
    with running("tcp_rr") as (process, _):
        (far,) = children_of(process.pid)
        time.sleep(0.3)
        for pid in (far, process.pid):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4)
        for pid in (far, process.pid):
            os.kill(pid, signal.SIGCONT)
        time.sleep(1.5)
        assert process.poll() is None and alive(far)


def test_the_ip_version_is_resolved() -> None:
    assert measure("udp_stream", *MOMENT).params["ip_version"] == "4"
