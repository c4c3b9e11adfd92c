"""What fixed_work tells of a disturbance that is known."""

import json
import os
import subprocess
from functools import partial
from typing import Any

import pytest

from services.cpu.tests.planted import Planted, beside_a_hog
from tests.machine_code import ROOT

PROGRAM = ROOT / "build" / "release" / "cpu-bench"
DURATION_S = 4.0
ATTEMPTS = 4
# The machine of the tests may be busy: what others may take beside the hog.
OTHERS_MOST = 0.05
# A point, and one for a machine that is busier in one trial than in the other.
SHARE_TOLERANCE = 0.02


def trial(*options: str) -> dict[str, Any]:
    command = [str(PROGRAM), "fixed_work", "--threads=1", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    event: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    assert event["event"] == "end"
    return event


def undisturbed_but_by_a_hog(computing_s: float, period_s: float) -> Planted:
    """The first of some trials in which others took little."""
    cpu = max(os.sched_getaffinity(0))
    beside = partial(trial, f"--cpus={cpu}", f"--duration-s={DURATION_S}")
    found = None
    for _ in range(ATTEMPTS):
        found = beside_a_hog(beside, cpu, computing_s, period_s)
        late = abs(found.hog_period_s / period_s - 1)
        if found.others_ratio < OTHERS_MOST and late < 0.002:
            return found
    assert found
    pytest.skip(f"other processes took {100 * found.others_ratio:.1f} % of CPU {cpu}")


def test_a_planted_hog_is_found_with_its_share_and_period() -> None:
    computing_s, period_s = 0.002, 0.02
    found = undisturbed_but_by_a_hog(computing_s, period_s)
    lost = found.metrics["lost_ratio"]
    assert found.hog_ratio == pytest.approx(computing_s / period_s, rel=0.05)
    # Ticks, interrupts and the hypervisor take their part of what the hog leaves.
    alone = trial(f"--cpus={max(os.sched_getaffinity(0))}", "--duration-s=2")["metrics"]
    left_ratio = 1 - found.hog_ratio - found.others_ratio
    taken_ratio = found.hog_ratio + found.others_ratio + left_ratio * alone["lost_ratio"]
    assert lost == pytest.approx(taken_ratio, abs=SHARE_TOLERANCE)
    assert found.metrics["interruption_period_s"] == pytest.approx(found.hog_period_s, rel=0.01)
    assert found.metrics["interruption_max_s"] > 0.9 * min(computing_s, 0.002)
    assert found.metrics["interruptions_per_second_1ms"] > 0.9 / period_s


def test_longer_interruptions_are_rarer() -> None:
    metrics = trial("--duration-s=0.3")["metrics"]
    counts = [metrics[name] for name in metrics if name.startswith("interruptions_per_second_")]
    assert len(counts) == 12
    # The longest come first.
    assert counts == sorted(counts)


def test_lengths_below_what_counts_as_an_interruption_are_null() -> None:
    end = trial("--duration-s=0.3", "--quantum-cycles=24000000")
    assert end["metrics"]["interruptions_per_second_2us"] is None
    reason = end["reasons"]["metrics.interruptions_per_second_2us"]
    assert reason == "the program cannot see interruptions shorter than 2 % of a quantum"
    assert end["metrics"]["interruptions_per_second_10ms"] is not None
    assert end["reasons"]["metrics.interruption_period_s"] == "the run was too short"
