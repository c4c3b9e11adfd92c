"""hostbench plan: what would be measured and how long that takes, also of a fixed work."""

from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.faults.command import Command

FIXED = """
name: fixed
idle: {policy: force}
repeats: {min_trials: 2, max_trials: 2}
cases:
  - workload: cpu.add_sub
    params: {work: 1000000000, warmup_s: 0, isa: scalar, dtype: fp64, threads: 1}
  - workload: mem.memset_write
    params: {duration_s: 0.1, warmup_s: 0, size_bytes: 33554432, threads: 1}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "fixed.yaml"
    path.write_text(FIXED)
    return path


def test_the_time_of_a_fixed_work_is_found_out(tmp_path: Path, suite: Path) -> None:
    command = Command(tmp_path)
    ended = command.run("plan", str(suite), "--json")
    assert ended.code == ExitCode.OK
    plan = ended.document
    fixed, timed = plan["cases"]
    # 1e9 additions of one a lane, one core: seconds, on whatever host.
    assert plan["estimate"]["complete"] and 0.02 < fixed["trial_time_s"] < 60
    assert plan["estimate"]["low_s"] == pytest.approx(
        2 * (fixed["trial_time_s"] + timed["trial_time_s"])
    )
    assert "1 case with a fixed amount of work" in ended.errors
    assert not command.jobs(), "a plan keeps nothing"

    measured = command.run("run", str(suite), "--json")
    assert "estimate: 4 trials" in measured.errors
    trials = measured.document["cases"][0]["trials"]
    wall_s = sum(trial["wall_s"] for trial in trials)
    # Other tests may have most of the CPUs in either moment.
    assert 0.05 < 2 * fixed["trial_time_s"] / wall_s < 20


def test_the_plan_for_people(tmp_path: Path, suite: Path) -> None:
    lines = Command(tmp_path).run("plan", str(suite)).output.splitlines()
    assert lines[0].split() == ["cases", "of", "cases", "trials", "time"]
    assert lines[1].startswith("cpu.add_sub fp64 scalar") and lines[2].startswith("mem.")
    assert lines[-1].startswith("2 cases, 4 trials, ")
    assert "fixed amount of work" not in lines[-1]


def test_a_plan_of_nothing_that_there_is(tmp_path: Path) -> None:
    ended = Command(tmp_path).run("plan", "no-such-suite")
    assert ended.code == ExitCode.USAGE and "there is no suite 'no-such-suite'" in ended.errors
