"""Jobs in one results directory, whose figures are planted: the later ones know the earlier."""

from pathlib import Path
from typing import Any

from hostbench.base.exitcode import ExitCode
from tests.faults.command import Command, scripted_programs

RUN = ("run", "--workload", "cpu.fma", "--trials", "3", "--idle-policy", "force", "--json")


def measured(command: Command, rate: float) -> Any:
    """The case of a run at this rate."""
    command.environment["SCRIPT_RATE"] = str(rate)
    ended = command.run(*RUN)
    assert ended.code == ExitCode.OK
    (case,) = ended.document["cases"]
    return case


def test_a_host_that_is_slow_now_and_then(tmp_path: Path) -> None:
    """Slow during the whole of a job, so that the trials of the job agree."""
    programs = scripted_programs(tmp_path)
    command = Command(tmp_path, programs, SCRIPT="")
    for rate in (1e9, 1e9):
        case = measured(command, rate)
        assert (case["verdict"], case["reasons"]) == ("clean", [])
        assert "between_jobs" not in case
    # The job that is slow itself, and then one that is not.
    for rate, jobs in ((0.5e9, 3), (1e9, 4)):
        case = measured(command, rate)
        assert case["verdict"] == "noisy" and case["figure"]["value"] == rate
        (reason,) = case["reasons"]
        assert reason["code"] == "varies_between_jobs"
        seen = case["between_jobs"]
        assert (seen["jobs"], seen["low"], seen["high"], seen["off"]) == (jobs, 0.5e9, 1e9, 1)
    shown = " ".join(command.run("show", "latest").output.split())
    assert "500.0 Mop/s to 1.000 Gop/s in this and 3 earlier jobs of this host" in shown
    assert "1 figure of cpu varies from job to job on this host" in shown
    # A job that is put together again from its journal says the same without the others.
    newest = command.jobs()[-1]
    stored = (newest / "result.json").read_bytes()
    for job in command.jobs()[:-1]:
        job.rename(tmp_path / job.name)
    assert command.run("run", "--resume", newest.name).code == ExitCode.OK
    assert (newest / "result.json").read_bytes() == stored
    for job in tmp_path.glob("*-ad-hoc-*"):
        job.rename(command.results / job.name)
    # Decisions about several jobs take all four.
    history = command.run("history", "cpu.fma", "--json").document
    assert len(history["points"]) == 4 and not history["left_out"]
    # Another program may measure something else: its record begins anew.
    with (programs / "cpu-bench").open("a") as file:
        file.write("\n# another program\n")
    assert measured(command, 1e9)["verdict"] == "clean"
