"""docs/measurement.md explains every workload and every metric of every program."""

import re

import pytest

from hostbench.program import CHECKOUT, SUBSYSTEMS, load_program

PAGE = (CHECKOUT / "docs" / "measurement.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z0-9_]+)`", PAGE))


@pytest.mark.parametrize("subsystem", SUBSYSTEMS)
def test_every_workload_and_metric_is_explained(subsystem: str) -> None:
    workloads = load_program(subsystem).table.workloads
    names = {workload.name for workload in workloads}
    metrics = {metric.name for workload in workloads for metric in workload.metrics}
    assert names | metrics <= NAMED
