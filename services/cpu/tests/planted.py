"""Trials of fixed_work beside a hog (hog.py) on the same CPU."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOG = Path(__file__).with_name("hog.py")


@dataclass(frozen=True)
class Planted:
    """What a trial beside a hog found, and what there was."""

    metrics: dict[str, Any]
    # By the hog's own records.
    hog_ratio: float
    hog_period_s: float
    # What the thread waited for its CPU beyond that, and what the hypervisor took.
    others_ratio: float


def beside_a_hog(
    trial: Callable[[], dict[str, Any]], cpu: int, computing_s: float, period_s: float
) -> Planted:
    """Run `trial`, which returns the event `end` of one thread on the CPU, beside a hog that
    computes for `computing_s` in every `period_s`."""
    command = [sys.executable, str(HOG), str(cpu), str(computing_s), str(period_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hog:
        assert hog.stdin and hog.stdout
        assert hog.stdout.readline() == "ready\n"
        end = trial()
        hog.stdin.close()
        turns = json.loads(hog.stdout.read())
    (first_s, used_s), (last_s, used_by_last_s) = turns[0], turns[-1]
    hog_ratio = (used_by_last_s - used_s) / (last_s - first_s)
    (thread,) = end["threads"]
    ran_s = thread["stop_s"] - thread["start_s"]
    away_s = thread["wait_s"] + (end["disturbance"]["steal_s"] or 0)
    return Planted(
        end["metrics"],
        hog_ratio,
        hog_period_s=(last_s - first_s) / (len(turns) - 1),
        others_ratio=max(0.0, away_s / ran_s - hog_ratio),
    )
