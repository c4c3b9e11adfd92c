"""The wall clock is set while something is measured: no figure, verdict or ending depends on it."""

import json
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.compiled import STRICT, compiled
from tests.faults.command import PROGRAMS, Command, end_of

SOURCE = Path(__file__).with_name("stepped_clock.c")
HOURS_S = 3600
RUN = (
    "run", "--workload", "cpu.clock", "--param", "duration_s=0.2", "--trials", "4",
    "--idle-policy", "force",
)  # fmt: skip


def set_step(file: Path, seconds: int) -> None:
    with file.open("r+b") as opened:
        opened.write(seconds.to_bytes(8, "little", signed=True))


@pytest.mark.parametrize("step_s", [8 * HOURS_S, -8 * HOURS_S])
def test_a_step_between_two_trials(tmp_path: Path, step_s: int) -> None:
    file = tmp_path / "step"
    file.write_bytes(bytes(8))
    shim = compiled("stepped_clock.so", [SOURCE], [*STRICT, "-shared", "-fPIC", "-ldl"])
    command = Command(tmp_path, PROGRAMS, LD_PRELOAD=str(shim), HOSTBENCH_TEST_STEP_FILE=str(file))
    process = command.start(*RUN)
    assert process.stderr is not None
    while "[1/4]" not in (line := process.stderr.readline()):
        assert line, "the first trial was not shown"
    set_step(file, step_s)
    ended = end_of(process)
    assert ended.code == ExitCode.OK, ended.errors
    (job,) = command.jobs()
    document = json.loads((job / "result.json").read_text())
    (case,) = document["cases"]
    trials = [trial["value"] for trial in case["trials"]]
    assert len(trials) == 4 and max(trials) < 1.5 * min(trials)
    job_s = document["job"]["finished_unix_s"] - document["job"]["created_unix_s"]
    assert abs(job_s - step_s) < 60
    # What comes next is measured, listed and found, though its time may be the earlier one.
    assert command.run(*RUN).code == ExitCode.OK
    listed = command.run("list", "--json").document["jobs"]
    assert sorted(one["state"] for one in listed) == ["succeeded", "succeeded"]
