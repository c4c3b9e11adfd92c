"""Round trips over the loopback, from the program's call to its figures."""

import os

import pytest

from services.net.tests.program import MOMENT, ROUND_TRIPS, measure
from tests.benchmark import Trial


def sound(trial: Trial) -> dict[str, float]:
    """What must hold of the figures of all round trips."""
    metrics = trial.metrics
    assert 0 < metrics["latency_min_s"] <= metrics["latency_p50_s"] <= metrics["latency_max_s"]
    assert metrics["operations_per_second"] > 0 and metrics["work_operations"] > 0
    assert metrics["lost_operations"] == 0 and metrics["turned_away"] == 0
    assert metrics["far_cpu_seconds_per_million_operations"] > 0
    return metrics


@pytest.mark.parametrize("workload", ROUND_TRIPS)
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.sampled(5)
def test_round_trips(workload: str, streams: int) -> None:
    trial = measure(workload, *MOMENT, f"--streams={streams}")
    metrics = sound(trial)
    assert len(trial.end["threads"]) == streams
    if workload != "tcp_crr":
        assert metrics["round_trip_s"] == metrics["latency_p50_s"]


@pytest.mark.parametrize("workload", ROUND_TRIPS)
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.sampled(5)
def test_a_fixed_number_is_exact(workload: str, streams: int) -> None:
    trial = measure(workload, "--work=2000", f"--streams={streams}", "--warmup-s=0")
    assert sound(trial)["work_operations"] == 2000
    assert sum(thread["operations"] for thread in trial.end["threads"]) == 2000


@pytest.mark.parametrize(
    ("workload", "block"),
    [("tcp_rr", 65536), ("tcp_rr", 1 << 20), ("udp_rr", 65507), ("udp_rr", 9), ("tcp_crr", 3000)],
)
def test_blocks_there_and_back(workload: str, block: int) -> None:
    trial = measure(workload, *MOMENT, f"--block-bytes={block}")
    metrics = sound(trial)
    # A request and its answer.
    assert metrics["bytes_per_second"] == pytest.approx(
        2 * block * metrics["operations_per_second"]
    )


@pytest.mark.parametrize("workload", ROUND_TRIPS)
def test_spinning(workload: str) -> None:
    trial = measure(workload, *MOMENT, "--wait=spin")
    sound(trial)
    assert trial.params["wait"] == "spin"


@pytest.mark.parametrize("direction", ["send", "receive", "both"])
@pytest.mark.parametrize("workload", ROUND_TRIPS)
@pytest.mark.sampled(4)
def test_latency_under_load(workload: str, direction: str) -> None:
    trial = measure(*(workload, *MOMENT, "--load-streams=2", f"--load-direction={direction}"))
    metrics = trial.metrics
    sends = metrics["load_send_bytes_per_second"]
    receives = metrics["load_receive_bytes_per_second"]
    assert (sends is not None) == (direction != "receive")
    assert (receives is not None) == (direction != "send")
    assert metrics["load_bytes_per_second"] == pytest.approx((sends or 0) + (receives or 0))
    assert metrics["load_bytes_per_second"] > 1e6
    assert metrics["latency_p50_s"] > 0


def test_waiting_for_the_load_is_no_disturbance() -> None:
    """Where there are too few CPUs for both ends with their load, they wait for one another."""
    seen = measure("tcp_rr", *MOMENT, "--load-streams=1").end
    alone = len(os.sched_getaffinity(0)) >= 4
    assert (seen["disturbance"]["cpu_ratio"] is not None) is alone
    assert alone or "share a CPU" in seen["reasons"]["disturbance.cpu_ratio"]


def test_without_load_there_is_no_rate_of_it() -> None:
    trial = measure("tcp_rr", *MOMENT)
    assert trial.metrics["load_bytes_per_second"] is None
    assert "load_streams" in trial.end["reasons"]["metrics.load_bytes_per_second"]


def test_the_ramp_is_in_no_figure() -> None:
    """Round trips of a long ramp would show in a fixed number of them."""
    trial = measure("tcp_rr", "--work=100", "--warmup-s=0.5")
    assert trial.metrics["work_operations"] == 100
    assert trial.end["elapsed_s"] < 0.5
