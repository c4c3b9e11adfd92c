"""A total and a time together: the trial ends at whichever is reached first, and says which."""

import pytest

from services.net.tests.program import STREAMS, measure
from tests.benchmark import MIB

TOTAL = 8 * MIB


@pytest.mark.parametrize("workload", STREAMS)
@pytest.mark.parametrize("direction", ["send", "receive", "both"])
@pytest.mark.sampled(5)
def test_a_total_that_is_reached_is_sent_to_the_byte(workload: str, direction: str) -> None:
    trial = measure(
        workload, f"--total-bytes={TOTAL}", f"--direction={direction}", "--duration-s=30",
        "--warmup-s=0.05", "--rate=50000000", "--block-bytes=1024",
    )  # fmt: skip
    assert trial.metrics["sender_bytes"] == TOTAL
    assert "sampled" not in trial.warnings


@pytest.mark.parametrize("workload", STREAMS)
def test_a_total_that_is_not_reached_says_of_how_many_bytes(workload: str) -> None:
    total = 100 << 30
    trial = measure(workload, f"--total-bytes={total}", "--duration-s=0.2", "--warmup-s=0.05")
    sent = int(trial.metrics["sender_bytes"])
    assert 0 < sent < total
    warning = f"{sent} of {total} bytes in the time: the figures are those of a sample"
    assert trial.warnings["sampled"] == warning


def test_a_time_alone_is_no_sample() -> None:
    assert "sampled" not in measure("tcp_stream", "--duration-s=0.2").warnings
