"""Campaigns for tests, and the command that measures a node of one."""

from pathlib import Path
from typing import Any

from hostbench.fleet.campaign import Campaign
from hostbench.fleet.node import CAMPAIGN
from hostbench.model.events import ParamValue
from hostbench.model.suite import IdleRules, Repeats, Suite, SuiteCase

MOMENT: dict[str, ParamValue] = {"threads": 1, "duration_s": 0.05, "warmup_s": 0}


def small_suite(**changes: Any) -> Suite:
    """Two real cases of some tenths of a second, on whatever else the host does."""
    plain: dict[str, Any] = {
        "name": "small",
        "idle": IdleRules(policy="force"),
        "repeats": Repeats(min_trials=2, max_trials=2),
        "cases": (
            SuiteCase(workload="cpu.clock", params=dict(MOMENT)),
            SuiteCase(workload="cpu.fma", params=dict(MOMENT)),
        ),
    }
    return Suite(**(plain | changes))


def campaign(**changes: Any) -> Campaign:
    plain: dict[str, Any] = {
        "name": "small-1",
        "cluster": "cluster-a",
        "suite": small_suite(),
        "nodes": ("node1", "node2"),
    }
    return Campaign(**(plain | changes))


def campaign_file(directory: Path, made: Campaign) -> Path:
    path = directory / "campaign.json"
    path.write_bytes(CAMPAIGN.dump_json(made))
    return path
