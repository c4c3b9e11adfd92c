"""The vector workloads: every one of them on PoCL, and what its figures must have in common."""

import signal
import time

import pytest

from services.gpu.tests.program import (
    MOMENT,
    STOP_S,
    WINDOWS,
    call,
    devices,
    measure,
    on_pocl,
    running,
)
from tests.benchmark import FAILED, UNSUPPORTED, refused

KERNELS = [
    ("fma", "fp64", 2),
    ("fma", "fp32", 2),
    ("int_add", "int32", 1),
    ("int_add", "int64", 1),
    ("int_mul_add", "int32", 2),
    ("int_mul_add", "int64", 2),
    ("dp4a", None, 8),
]


def dtype(word: str | None) -> tuple[str, ...]:
    return (f"--dtype={word}",) if word else ()


@pytest.mark.parametrize(("workload", "word", "operations"), KERNELS)
@pytest.mark.sampled(7)
def test_a_trial(workload: str, word: str | None, operations: int) -> None:
    trial = measure(workload, *on_pocl(), *dtype(word), *WINDOWS)
    metrics = trial.metrics
    rate = metrics["operations_per_second"]
    assert 1e6 < rate < 1e14, "no CPU is faster: a compiler has worked out the result"
    assert metrics["rate_best"] >= rate and metrics["windows"] >= 1
    assert 0 < metrics["device_busy_ratio"] <= 1.05
    # Whole launches of whole chains: an even number of each work-item's operations.
    assert metrics["work_operations"] % (256 * operations) == 0
    device_s = metrics["device_busy_ratio"] * trial.end["elapsed_s"]
    assert metrics["work_operations"] == pytest.approx(
        device_s * metrics["operations_per_second_sum"], rel=0.1
    )
    assert metrics["power_watts"] is None and "metrics.power_watts" in trial.end["reasons"]


def test_what_a_start_event_says() -> None:
    (device,) = (one for one in devices() if f"--device={one['index']}" in on_pocl())
    trial = measure("fma", *on_pocl(), "--dtype=fp64", *MOMENT)
    assert trial.params["device"] == str(device["index"])
    assert trial.params["backend"] == "opencl" and "threads" not in trial.params
    facts = trial.facts
    assert facts["device_name"] == device["name"] and facts["device_type"] == "cpu"
    assert facts["compute_units"] == str(device["compute_units"])
    # Of the memory that is free just then.
    assert int(facts["memory_bytes"]) == pytest.approx(device["memory_bytes"], rel=0.5)
    assert facts["kernel"].startswith("fma_fp64, OpenCL")
    assert "not_a_gpu" in trial.warnings


def test_a_device_by_its_uuid() -> None:
    on_pocl()
    found = next(one for one in devices() if one["type"] == "cpu")
    if not found["uuid"]:
        pytest.skip("this OpenCL device tells no UUID")
    trial = measure("fma", f"--device={found['uuid']}", *MOMENT)
    assert trial.params["device"] == str(found["index"])


def test_what_opencl_lacks_is_a_skip() -> None:
    line = refused(call("fma", *on_pocl(), "--dtype=bf16"), UNSUPPORTED, "bf16", "CUDA")
    assert "no GPU" not in line


def test_windows_of_100_ms_and_samples() -> None:
    arguments = ("--dtype=fp32", "--duration-s=0.8", "--sample-interval-s=0.15", "--warmup-s=0.05")
    trial = measure("fma", *on_pocl(), *arguments)
    metrics = trial.metrics
    device_s = metrics["device_busy_ratio"] * trial.end["elapsed_s"]
    assert 2 <= metrics["windows"] <= device_s / 0.1 + 1
    assert metrics["rate_cv"] >= 0
    assert len(trial.samples) >= 4
    assert any(sample["metrics"]["operations_per_second"] for sample in trial.samples)
    for sample in trial.samples:
        figures = sample["metrics"]
        # Null where a piece took longer than the interval, on a host whose CPUs others have.
        assert figures["operations_per_second"] is None or figures["operations_per_second"] > 0
        assert {"nvml_clock_hertz", "power_watts", "temperature_celsius"} <= set(figures)


def test_a_fixed_work() -> None:
    trial = measure("int_add", *on_pocl(), "--work=1000000", "--warmup-s=0")
    assert trial.metrics["work_operations"] >= 1000000
    assert trial.params["duration_s"] is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_soon(number: signal.Signals) -> None:
    with running("fma", *on_pocl()) as (process, start):
        assert start["event"] == "start"
        time.sleep(0.2)
        begun = time.monotonic()
        process.send_signal(number)
        process.communicate(timeout=20)
        assert time.monotonic() - begun < STOP_S
        assert process.returncode == FAILED
