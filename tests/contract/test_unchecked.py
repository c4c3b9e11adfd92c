"""The build that compares no result (harness/checked.h): it says so, hostbench takes no figure of
it, and what the comparing costs is measured beside it."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.verification import CASES, WALL, Case, Side
from hostbench.base.exitcode import ExitCode
from tests.faults.command import Command
from tests.machine_code import ROOT

# `make test-all` builds it.
pytestmark = pytest.mark.exhaustive
# The first: other work keeps a clock of all CPUs at once from every trial.
ONE_OF_EACH = {case.subsystem: case for case in reversed(CASES)}


def test_hostbench_takes_no_figure_of_it(tmp_path: Path) -> None:
    command = Command(tmp_path, ROOT / "build" / "unchecked")
    ended = command.run("run", "--workload=cpu.fma", "--trials=1", "--param=duration_s=0.05")
    assert ended.code == ExitCode.CASE_FAILED
    assert "verified" in ended.output + ended.errors


@pytest.mark.parametrize("case", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_both_sides_are_measured(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTBENCH_SCRATCH", str(tmp_path))
    # On a host that other tests load, a trial may have no clock, and so no figure of a cycle.
    case = replace(
        case, figures={name.replace("_per_cycle", "_per_second"): "" for name in case.figures}
    )
    for compares in (True, False):
        side = Side(compares)
        found = side.figures(case)
        assert found.keys() == {*case.figures, WALL}
        assert all(value > 0 for value in found.values())
        if case.subsystem != "disk":
            assert side.run(case)["end"]["verified"] is compares
