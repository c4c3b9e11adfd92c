"""What a launch takes, on PoCL and on the stand-in for CUDA."""

import statistics
from pathlib import Path

import pytest

from services.gpu.tests.cuda_stub import environment, read_report
from services.gpu.tests.program import MOMENT, call, measure, on_pocl
from tests.benchmark import FAILED, USAGE, WRONG, Trial, refused

MODES = ("round_trip", "back_to_back")
on_both = pytest.mark.parametrize("backend", ["opencl", "cuda"])


def trial_on(backend: str, *arguments: str, **settings: str) -> Trial:
    if backend == "opencl":
        return measure("launch_latency", *on_pocl(), *arguments, *MOMENT)
    env = environment(None, **settings)
    return measure("launch_latency", "--backend=cuda", *arguments, *MOMENT, env=env)


@pytest.mark.parametrize("mode", MODES)
@on_both
def test_a_trial(backend: str, mode: str) -> None:
    trial = trial_on(backend, f"--mode={mode}")
    metrics = trial.metrics
    assert 1e-8 < metrics["launch_time_s"] < 1e-2
    assert metrics["launch_time_s"] == metrics["latency_p50_s"]
    assert metrics["latency_min_s"] <= metrics["launch_time_s"] <= metrics["latency_max_s"]
    # Of a batch only the mean is known, however many launches it has.
    reason = trial.end["reasons"].get("metrics.latency_p90_s", "")
    assert ("only means" in reason) == (mode == "back_to_back")
    # The call is a part of the way there and back.
    assert 0 < metrics["launch_call_s"] < metrics["latency_max_s"]
    assert metrics["work_operations"] == pytest.approx(
        metrics["operations_per_second"] * trial.end["elapsed_s"], rel=0.2
    )


def test_without_waiting_they_are_shorter() -> None:
    """The median of three each, in turns: a machine that others load too spoils one or other."""
    times_s: dict[str, list[float]] = {mode: [] for mode in MODES}
    for mode in MODES * 3:
        times_s[mode].append(trial_on("cuda", f"--mode={mode}").metrics["launch_time_s"])
    assert statistics.median(times_s["back_to_back"]) < statistics.median(times_s["round_trip"])


@pytest.mark.parametrize("mode", MODES)
def test_launches_are_counted(tmp_path: Path, mode: str) -> None:
    """All that the driver saw, but for those of the two checks."""
    report = tmp_path / "report"
    env = environment(report=str(report))
    arguments = ("--backend=cuda", f"--mode={mode}", "--work=1000", "--warmup-s=0")
    metrics = measure("launch_latency", *arguments, env=env).metrics
    assert metrics["work_operations"] == 1000
    assert read_report(report).calls["cuLaunchKernel"] == 1000 + 2


def test_the_driver_says_when_it_is_done(tmp_path: Path) -> None:
    """A round trip waits for each launch, a batch for its last."""
    waits = {}
    for mode in MODES:
        report = tmp_path / mode
        arguments = ("--backend=cuda", f"--mode={mode}", "--work=512", "--warmup-s=0")
        measure("launch_latency", *arguments, env=environment(report=str(report)))
        waits[mode] = read_report(report).calls["cuStreamSynchronize"]
    assert waits["round_trip"] - waits["back_to_back"] == 512 - 2


@pytest.mark.parametrize("nth", [1, 2])
def test_a_queue_that_does_nothing(nth: int) -> None:
    """What comes behind the launches is looked for, behind the ramp and at the end."""
    arguments = ("launch_latency", "--backend=cuda", *MOMENT)
    result = call(*arguments, env=environment(lazy=f"fill:{nth}"))
    refused(result, WRONG, "what the last kernel wrote")


def test_a_launch_that_fails() -> None:
    arguments = ("launch_latency", "--backend=cuda", *MOMENT)
    result = call(*arguments, env=environment(fail="cuLaunchKernel:700:719"))
    refused(result, FAILED, "cuLaunchKernel: 719")


def test_a_mode_that_is_none() -> None:
    result = call("launch_latency", "--backend=cuda", "--mode=both", env=environment())
    refused(result, USAGE, '"both"', "round_trip, back_to_back")
