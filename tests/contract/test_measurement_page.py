"""docs/measurement.md explains every metric of every program, workloads.md every workload."""

import re

import pytest

from hostbench.base.place import CHECKOUT
from hostbench.model.registry import subsystem_names
from hostbench.programs.program import load_program

PAGE = (CHECKOUT / "docs" / "measurement.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z0-9_]+)`", PAGE))


@pytest.mark.parametrize("subsystem", subsystem_names())
def test_every_metric_is_explained(subsystem: str) -> None:
    workloads = load_program(subsystem).table.workloads
    assert {metric.name for workload in workloads for metric in workload.metrics} <= NAMED


@pytest.mark.parametrize("subsystem", subsystem_names())
def test_every_workload_says_what_it_does_and_counts(subsystem: str) -> None:
    for workload in load_program(subsystem).table.workloads:
        (primary,) = (metric for metric in workload.metrics if metric.primary)
        for text in (workload.description, primary.description):
            assert len(text.split()) >= 4, (workload.name, text)
