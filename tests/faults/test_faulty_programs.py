"""Whatever a program does, it ends as a failed trial with a clear reason, never as a figure."""

from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.cli.progress import PlainProgress
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import HostInventory
from hostbench.model.limit import Limit
from hostbench.model.subsystem import Subsystem
from hostbench.model.suite import IdleRules, Repeats, Suite, SuiteCase
from hostbench.results.store import ResultsStore
from hostbench.run import execute
from hostbench.run.job import JobRunner
from tests.faults.command import Command, Ended, scripted_programs
from tests.patience import SOON_S

RUN = ("run", "--workload", "cpu.fma", "--trials", "2", "--idle-policy", "force", "--json")


def scripted(tmp_path: Path, script: str, **environment: str) -> Command:
    return Command(tmp_path, scripted_programs(tmp_path), SCRIPT=script, **environment)


def only_case(ended: Ended) -> Any:
    (case,) = ended.document["cases"]
    return case


@pytest.mark.parametrize(
    ("script", "code", "part"),
    [
        ("garbage", "malformed_output", "hello, here is a figure"),
        ("nan", "malformed_output", "finite"),
        ("cut", "malformed_output", "ends inside a line"),
        ("endless_line", "malformed_output", "more than"),
        ("crash", "killed", "signal 11; its output: about to crash"),
        ("no_last_event", "no_last_event", "exit code 0 without an end"),
        ("contradiction", "exit_code_contradicts", "exit code 1 contradicts"),
        ("other_params", "malformed_output", "second start"),
    ],
)
@pytest.mark.sampled(3)
def test_a_broken_protocol_is_a_failed_trial(
    tmp_path: Path, script: str, code: str, part: str
) -> None:
    command = scripted(tmp_path, script)
    ended = command.run(*RUN)
    assert ended.code == ExitCode.CASE_FAILED
    case = only_case(ended)
    assert case["verdict"] == "failed"
    assert case["metrics"] == {}
    (trial,) = case["trials"]
    assert trial["value"] is None
    assert trial["failure"]["code"] == code
    assert part in trial["failure"]["message"]
    assert command.is_gone_soon()


@pytest.mark.parametrize(
    ("script", "exit_code", "verdict"),
    [("wrong", ExitCode.CORRUPT, "corrupt"), ("no_memory", ExitCode.RESOURCE, "failed")],
)
def test_the_programs_own_error_decides_verdict_and_exit_code(
    tmp_path: Path, script: str, exit_code: ExitCode, verdict: str
) -> None:
    ended = scripted(tmp_path, script).run(*RUN)
    assert ended.code == exit_code
    assert only_case(ended)["verdict"] == verdict


def test_a_wrong_result_stays_when_the_job_is_resumed(tmp_path: Path) -> None:
    command = scripted(tmp_path, "wrong")
    assert command.run(*RUN).code == ExitCode.CORRUPT
    command.environment["SCRIPT"] = ""
    resumed = command.run("run", "--resume", "latest", "--json")
    assert resumed.code == ExitCode.CORRUPT, resumed.errors
    assert only_case(resumed)["verdict"] == "corrupt"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("hang_after_end", "no end 5 s after its last event"),
        ("hang_closed", "no exit 5 s after the end of its output"),
    ],
)
def test_a_program_that_does_not_end_after_its_last_word(
    tmp_path: Path, script: str, why: str
) -> None:
    command = scripted(tmp_path, script)
    case = only_case(command.run(*RUN))
    assert case["verdict"] == "failed"
    assert [trial["failure"]["message"] for trial in case["trials"]] == [why]
    assert command.is_gone_soon()


def test_a_hang_that_ignores_sigterm_is_killed_at_the_timeout(tmp_path: Path) -> None:
    command = scripted(tmp_path, "hang")
    suite = tmp_path / "hang.yaml"
    suite.write_text(
        "name: hang\nidle: {policy: force}\ncases:\n  - {workload: cpu.fma, timeout_s: 0.5}\n"
    )
    ended = command.run("run", str(suite), "--json", timeout_s=SOON_S)
    assert ended.code == ExitCode.CASE_FAILED
    failure = only_case(ended)["trials"][0]["failure"]
    assert failure["code"] == "timeout" and "timeout_s" in failure["message"]
    assert command.is_gone_soon()


def test_what_a_program_leaves_behind_does_not_live_on(tmp_path: Path) -> None:
    command = scripted(tmp_path, "child_left_behind")
    assert command.run(*RUN).code == ExitCode.OK
    assert command.is_gone_soon()


def test_a_program_that_is_replaced_in_the_middle_of_a_job(tmp_path: Path) -> None:
    ended = scripted(tmp_path, "replaced").run(*RUN)
    assert ended.code == ExitCode.CASE_FAILED
    trials = only_case(ended)["trials"]
    assert trials[-1]["failure"]["code"] == "program_changed"


def test_what_a_program_warns_of_is_shown(tmp_path: Path) -> None:
    ended = scripted(tmp_path, "warns").run(*RUN[:-1])
    assert "the clock is odd" in " ".join(ended.output.split())


@pytest.mark.parametrize(
    ("script", "part"), [("list_garbage", "not a workload table"), ("list_fails", "cannot list")]
)
def test_a_program_without_a_table(tmp_path: Path, script: str, part: str) -> None:
    command = scripted(tmp_path, script)
    ended = command.run(*RUN[:-1])
    assert ended.code == ExitCode.RESOURCE
    assert len(ended.errors.splitlines()) == 1
    assert part in ended.errors and "make programs" in ended.errors
    assert command.jobs() == []


class PlantedLimits(Subsystem):
    """A subsystem that knows this CPU."""

    def limits(self, host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
        del host, start, end
        return {"operations_per_second": Limit(value=1e9, unit="operation/s")}


@pytest.mark.parametrize(
    ("rate", "verdict", "state"),
    [("1.02e9", "clean", "succeeded"), ("1.03e9", "invalid", "failed")],
)
def test_a_planted_figure_above_the_limit_becomes_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: str, verdict: str, state: str
) -> None:
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(scripted_programs(tmp_path)))
    monkeypatch.setenv("HOSTBENCH_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("SCRIPT_RATE", rate)
    planted = PlantedLimits(name="cpu", title="CPU", port=1)
    monkeypatch.setattr(execute, "find_subsystem", lambda _name: planted)
    suite = Suite(
        name="planted",
        idle=IdleRules(policy="force"),
        repeats=Repeats(min_trials=3, max_trials=3),
        cases=(SuiteCase(workload="cpu.fma"),),
    )
    interrupt = Interrupt()
    with (tmp_path / "log").open("w") as log:
        store = ResultsStore(tmp_path / "results")
        runner = JobRunner(store, interrupt, PlainProgress(log), 0)
        document = runner.run(suite)
    interrupt.close()
    assert (document.cases[0].verdict, document.job.state) == (verdict, state)
