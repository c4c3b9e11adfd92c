"""The wall clock is set while something is measured: no figure, verdict or ending depends on it."""

import json
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.faults.command import PROGRAMS, Command, end_of
from tests.faults.stepped_clock import HOURS_S, SteppedClock

RUN = (
    "run", "--workload", "cpu.clock", "--param", "duration_s=0.2", "--trials", "4",
    "--idle-policy", "force",
)  # fmt: skip


@pytest.mark.parametrize("step_s", [8 * HOURS_S, -8 * HOURS_S])
@pytest.mark.sampled(2)
def test_a_step_between_two_trials(tmp_path: Path, step_s: int) -> None:
    clock = SteppedClock(tmp_path / "step")
    command = Command(tmp_path, PROGRAMS, **clock.environment)
    process = command.start(*RUN)
    assert process.stderr is not None
    while "[1/4]" not in (line := process.stderr.readline()):
        assert line, "the first trial was not shown"
    clock.step(step_s)
    ended = end_of(process)
    assert ended.code == ExitCode.OK, ended.errors
    (job,) = command.jobs()
    document = json.loads((job / "result.json").read_text())
    (case,) = document["cases"]
    trials = [trial["value"] for trial in case["trials"]]
    # A trial of 0.2 s that counted the step would be off by a factor of 100,000; others on this
    # host may take most of one.
    assert len(trials) == 4 and max(trials) < 100 * min(trials)
    job_s = document["job"]["finished_unix_s"] - document["job"]["created_unix_s"]
    assert abs(job_s - step_s) < 60
    # What comes next is measured, listed and found, though its time may be the earlier one.
    assert command.run(*RUN).code == ExitCode.OK
    listed = command.run("list", "--json").document["jobs"]
    assert sorted(one["state"] for one in listed) == ["succeeded", "succeeded"]
    # By its id and its time the second job is the first: the clock that nobody sets knows better.
    history = command.run("history", "cpu.clock", "--figure", "delivered", "--json").document
    (second,) = {one["id"] for one in listed} - {job.name}
    assert history["clock_went_back"] == ([second] if step_s < 0 else [])
