"""The workload that is naive on purpose: what it counts, by which clock, and what arrived of it."""

import os
from pathlib import Path

import pytest

from services.net.tests.program import MOMENT, NAIVE, WORKLOADS, measure, table
from tests.compiled import STRICT, compiled

BLOCK = 1024
KIB = 1 << 10


@pytest.fixture(scope="module")
def shim() -> Path:
    """The compiled naive_shim.c."""
    source = Path(__file__).with_name("naive_shim.c")
    return compiled("naive_shim.so", [source], [*STRICT, "-shared", "-fPIC", "-ldl"])


def shimmed(shim: Path, **variables: int) -> dict[str, str]:
    """The environment of a near end with it."""
    settings = {name: str(value) for name, value in variables.items()}
    return {**os.environ, "LD_PRELOAD": str(shim), **settings}


def test_it_alone_is_called_naive() -> None:
    assert [name for name, found in table().items() if found.get("naive")] == [NAIVE]
    assert set(table()) == set(WORKLOADS)


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("mode", ["send", "echo"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.sampled(5)
def test_what_the_near_end_counts_is_the_figure(protocol: str, mode: str, streams: int) -> None:
    trial = measure(
        *(NAIVE, *MOMENT, f"--protocol={protocol}", f"--mode={mode}", f"--streams={streams}"),
        "--block-bytes=8192",
    )
    metrics, threads = trial.metrics, trial.end["threads"]
    assert len(threads) == streams and metrics["work_bytes"] > 0
    assert sum(thread["operations"] for thread in threads) == metrics["work_bytes"]
    whole = metrics["work_bytes"] / trial.end["elapsed_s"]
    assert metrics["bytes_per_second"] == pytest.approx(whole, rel=0.05)
    counted = "sender_bytes" if mode == "send" else "receiver_bytes"
    assert metrics["work_bytes"] == metrics[counted]
    lost_bytes = metrics["sender_bytes"] - metrics["receiver_bytes"]
    assert lost_bytes == 8192 * (metrics["lost_datagrams"] or 0) >= 0
    if protocol == "tcp":
        assert lost_bytes == 0


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("mode", ["send", "echo"])
def test_a_total_is_a_number_of_blocks(protocol: str, mode: str) -> None:
    """100 blocks of 60 KiB there and back."""
    total = 100 * 60 * KIB
    trial = measure(
        *(NAIVE, f"--protocol={protocol}", f"--mode={mode}", f"--block-bytes={60 * KIB}"),
        *(f"--total-bytes={total}", "--warmup-s=0"),
    )
    assert trial.params["duration_s"] is None and "sampled" not in trial.warnings
    assert trial.metrics["sender_bytes"] == total


def test_a_total_is_split_over_streams_and_rounded_up_to_blocks() -> None:
    trial = measure(
        *(NAIVE, "--mode=echo", "--streams=3", f"--block-bytes={BLOCK}"),
        *(f"--total-bytes={10 * BLOCK}", "--warmup-s=0.05"),
    )
    assert [thread["operations"] for thread in trial.end["threads"]] == [4 * BLOCK] * 3


@pytest.mark.parametrize("mode", ["send", "echo"])
def test_a_total_that_is_not_reached_is_reported(mode: str) -> None:
    total = 100 << 30
    trial = measure(NAIVE, *MOMENT, f"--mode={mode}", f"--total-bytes={total}")
    assert f"of {total} bytes in the time" in trial.warnings["sampled"]


# ---- what is wrong with it ----


def test_what_was_lost_is_in_the_figure(shim: Path) -> None:
    """Few enough to fit the receiver's buffer, so only those are lost that never went out."""
    sent = 64
    trial = measure(
        *(NAIVE, "--protocol=udp", f"--block-bytes={BLOCK}"),
        *(f"--total-bytes={sent * BLOCK}", "--warmup-s=0"),
        env=shimmed(shim, SHIM_DROP=8, SHIM_BYTES=BLOCK),
    )
    metrics = trial.metrics
    assert metrics["work_bytes"] == metrics["sender_bytes"] == sent * BLOCK
    assert metrics["receiver_bytes"] == (sent - 8) * BLOCK
    assert (metrics["lost_datagrams"], metrics["lost_ratio"]) == (8, 1 / 8)


def test_a_block_that_does_not_come_back_counts_for_nothing(shim: Path) -> None:
    trial = measure(
        *(NAIVE, "--protocol=udp", "--mode=echo", f"--block-bytes={BLOCK}"),
        *(f"--total-bytes={20 * BLOCK}", "--warmup-s=0"),
        env=shimmed(shim, SHIM_DROP=20, SHIM_BYTES=BLOCK),
    )
    metrics = trial.metrics
    assert metrics["sender_bytes"] == 20 * BLOCK
    assert metrics["work_bytes"] == metrics["receiver_bytes"] == 19 * BLOCK
    assert (metrics["lost_datagrams"], metrics["lost_ratio"]) == (1, 1 / 20)
    assert trial.end["elapsed_s"] > 1 and "sampled" not in trial.warnings


def test_a_flood_of_datagrams_counts_more_than_arrives() -> None:
    """Both ends on one CPU and next to no buffer: most of it has to be lost."""
    cpu = min(os.sched_getaffinity(0))
    trial = measure(
        *(NAIVE, *MOMENT, "--protocol=udp", "--receive-buffer-bytes=4096"),
        *(f"--cpus={cpu}", f"--far-cpus={cpu}"),
    )
    metrics = trial.metrics
    assert metrics["lost_ratio"] > 0.5
    assert metrics["bytes_per_second"] > 1.5 * metrics["arrived_bytes_per_second"]


def test_its_clock_is_the_time_of_day_without_what_that_was_set_by(shim: Path) -> None:
    arguments = (NAIVE, *MOMENT, "--block-bytes=8192")
    trial = measure(*arguments, env=shimmed(shim, SHIM_CLOCK=4))
    metrics = trial.metrics
    whole = metrics["work_bytes"] / trial.end["elapsed_s"]
    assert "clock_set" in trial.warnings
    assert metrics["bytes_per_second"] == pytest.approx(whole, rel=0.05)
    assert metrics["bytes_per_second_sum"] == pytest.approx(whole, rel=0.05)
    assert metrics["arrived_bytes_per_second"] > whole / 2


def test_samples_follow_the_sender() -> None:
    trial = measure(
        *(NAIVE, "--protocol=udp", "--block-bytes=1024", "--duration-s=0.8", "--warmup-s=0"),
        "--sample-interval-s=0.25",
    )
    rates = [sample["metrics"]["bytes_per_second"] for sample in trial.samples]
    assert len(rates) >= 2
    mean = sum(rates) / len(rates)
    assert mean == pytest.approx(trial.metrics["bytes_per_second"], rel=0.5)


# ---- how it asks ----


def test_it_asks_for_no_buffers_and_no_faster_way() -> None:
    params = {param["name"] for param in table()[NAIVE]["params"]}
    assert not params & {"send_path", "udp_path", "congestion", "rate", "wait", "direction"}
    plain, sound = measure(NAIVE, *MOMENT, "--protocol=udp"), measure("udp_stream", *MOMENT)
    assert plain.params["receive_buffer_bytes"] is None
    assert sound.params["receive_buffer_bytes"] == 4 << 20
