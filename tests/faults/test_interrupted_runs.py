"""However a run is ended, no process is left, nothing looks final, and it can go on."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from tests.faults.command import Command, end_of, scripted_programs
from tests.patience import SOON_S, comes_true

LONG = (
    "run", "--workload", "cpu.fma", "--param", "duration_s=60", "--param", "threads=1",
    "--idle-policy", "force",
)  # fmt: skip
MOMENT = (
    "run", "--workload", "cpu.clock", "--param", "duration_s=0.05", "--param", "warmup_s=0",
    "--param", "threads=1", "--idle-policy", "force",
)  # fmt: skip
# No limit is known of it that a loaded host's clock could seem to exceed.
SHORT_THEN_LONG = """
name: mine
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
cases:
  - workload: cpu.clock
    params: {duration_s: 0.1, warmup_s: 0, threads: 1}
  - workload: cpu.clock
    params: {duration_s: SECONDS, warmup_s: 0, threads: 1}
"""
CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HANGUP,
}


def states(command: Command) -> list[str]:
    listed = command.run("list", "--json")
    return [job["state"] for job in listed.document["jobs"]]


@pytest.mark.parametrize("number", list(CODES))
@pytest.mark.sampled(3)
def test_one_signal(command: Command, number: signal.Signals) -> None:
    process = command.start(*LONG)
    command.wait_for_program()
    process.send_signal(number)
    ended = end_of(process)
    assert ended.code == CODES[number]
    assert ended.output == ""
    (job,) = command.jobs()
    assert ended.last_line == (
        f"hostbench: interrupted by {number.name}; 0 of 1 cases are measured and kept; "
        f"continue with: hostbench run --resume {job.name}"
    )
    assert command.documents() == []
    assert command.is_gone_soon()
    assert states(command) == ["interrupted"]


@pytest.mark.parametrize("gap_s", [0, 0.001, 0.02, 0.2])
@pytest.mark.parametrize("numbers", [(signal.SIGINT,) * 2, (signal.SIGTERM, signal.SIGINT)])
@pytest.mark.sampled(5)
def test_two_signals_in_a_row(
    command: Command, numbers: tuple[signal.Signals, ...], gap_s: float
) -> None:
    process = command.start(*LONG)
    command.wait_for_program()
    for number in numbers:
        process.send_signal(number)
        time.sleep(gap_s)
    ended = end_of(process)
    assert ended.code in {CODES[number] for number in numbers}
    assert "Traceback" not in ended.errors
    assert command.documents() == []
    assert command.is_gone_soon()


@pytest.mark.parametrize("delay_s", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.3])
@pytest.mark.sampled(3)
def test_signals_at_any_moment(command: Command, delay_s: float) -> None:
    """The suite takes about a second: the signals fall before, into and between its trials."""
    suite = command.results.parent / "mine.yaml"
    suite.write_text(SHORT_THEN_LONG.replace("SECONDS", "0.3"))
    process = command.start("run", str(suite))
    time.sleep(delay_s)
    for _ in range(2):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.005)
    ended = end_of(process)
    assert "Traceback" not in ended.errors
    assert command.is_gone_soon()
    finished = ended.code == ExitCode.OK
    assert ended.code in (ExitCode.OK, ExitCode.TERMINATED, -signal.SIGTERM)
    assert [path.name for path in command.documents()] == (
        ["result.csv", "result.json"] if finished else []
    )


def test_a_program_that_ignores_signals_is_killed(tmp_path: Path) -> None:
    command = Command(tmp_path, scripted_programs(tmp_path), SCRIPT="hang")
    process = command.start("run", "--workload", "cpu.fma", "--idle-policy", "force")
    command.wait_for_hanging_program()
    process.terminate()
    began = time.monotonic()
    assert end_of(process).code == ExitCode.TERMINATED
    assert 1.5 < time.monotonic() - began < SOON_S
    assert command.is_gone_soon()


def test_a_further_signal_shortens_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "gracious"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import hostbench.programs.child as child\nchild.TERMINATE_GRACE_S = 600.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(place))
    command = Command(tmp_path, scripted_programs(tmp_path), SCRIPT="hang")
    process = command.start("run", "--workload", "cpu.fma", "--idle-policy", "force")
    command.wait_for_hanging_program()

    def ends_at_the_second_signal() -> bool:
        process.terminate()
        time.sleep(0.2)  # a signal that comes while the one before waits to be heard is lost
        return process.poll() is not None

    assert comes_true(ends_at_the_second_signal)
    assert end_of(process).code == ExitCode.TERMINATED
    assert command.is_gone_soon()


def test_kill_9_leaves_no_program_and_no_lock(command: Command) -> None:
    process = command.start(*LONG)
    command.wait_for_program()
    process.kill()
    end_of(process)
    assert command.is_gone_soon()
    assert command.documents() == []
    assert states(command) == ["interrupted"]
    again = command.run(*MOMENT, "--trials", "1")
    assert again.code == ExitCode.OK


def test_a_lock_outlives_the_command_as_long_as_its_program(tmp_path: Path) -> None:
    """The scripted program does not know the lifeline: it lives on."""
    command = Command(tmp_path, scripted_programs(tmp_path), SCRIPT="hang")
    process = command.start("run", "--workload", "cpu.fma", "--idle-policy", "force")
    program = command.wait_for_hanging_program()
    process.kill()
    process.wait()
    assert command.run("run", "--workload", "cpu.fma").code == ExitCode.BUSY
    os.kill(program, signal.SIGKILL)
    assert command.is_gone_soon()
    end_of(process)


def test_nohup_is_respected(command: Command) -> None:
    process = command.start(*LONG, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    command.wait_for_program()
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    assert end_of(process).code == ExitCode.TERMINATED


# ---- going on ----


def interrupted(command: Command) -> str:
    """A job whose first case is measured and whose second was interrupted; its id."""
    suite = command.results.parent / "mine.yaml"
    suite.write_text(SHORT_THEN_LONG.replace("SECONDS", "2"))
    process = command.start("run", str(suite))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[1/2 cases]") and line.rstrip().endswith(
            ("clean", "disturbed", "noisy")
        ):
            break
    command.wait_for_program()
    process.terminate()
    assert end_of(process).code == ExitCode.TERMINATED
    (job,) = command.jobs()
    return job.name


def trials(document: Any) -> list[list[float]]:
    return [[trial["time_unix_s"] for trial in case["trials"]] for case in document["cases"]]


def test_resume_keeps_what_was_measured(command: Command) -> None:
    job = interrupted(command)
    before = trials(command.run("show", job, "--json").document)
    assert [len(case) for case in before] == [1, 0]
    ended = command.run("run", "--resume", job, "--json")
    assert ended.code == ExitCode.OK
    assert "1 of 2 cases kept; 1 measured again: not finished" in ended.errors
    after = trials(ended.document)
    assert after[0] == before[0]
    assert len(after[1]) == 1
    assert ended.document["job"]["state"] == "succeeded"
    assert [path.name for path in command.documents()] == ["result.csv", "result.json"]
    assert command.run("show", job, "--json").document == ended.document
    assert states(command) == ["succeeded"]


@pytest.mark.exhaustive
def test_resume_measures_again_what_another_program_measured(command: Command) -> None:
    job = interrupted(command)
    programs = command.results.parent / "programs"
    programs.mkdir()
    real = Path(command.environment["HOSTBENCH_PROGRAMS"]) / "cpu-bench"
    # Bytes behind the last section change the file and not the program.
    (programs / "cpu-bench").write_bytes(real.read_bytes() + b"another build")
    (programs / "cpu-bench").chmod(0o755)
    command.environment["HOSTBENCH_PROGRAMS"] = str(programs)
    ended = command.run("run", "--resume", job, "--json")
    assert ended.code == ExitCode.OK
    assert "0 of 2 cases kept; 1 measured again: measured with cpu-bench" in ended.errors
    assert [len(case) for case in trials(ended.document)] == [1, 1]


@pytest.mark.exhaustive
def test_resume_after_kill_9_in_the_middle_of_a_line(command: Command) -> None:
    job = interrupted(command)
    journal = command.results / job / "journal.ndjson"
    lines = journal.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["record"] != "state"]
    journal.write_bytes(b"".join(kept) + b'{"record":"trial","case":"')
    ended = command.run("run", "--resume", "latest", "--json")
    assert ended.code == ExitCode.OK
    assert [len(case) for case in trials(ended.document)] == [1, 1]


def test_a_document_cut_short_is_built_again_from_the_journal(command: Command) -> None:
    first = command.run(*MOMENT, "--trials", "2", "--json")
    (job,) = command.jobs()
    document = job / "result.json"
    document.write_bytes(document.read_bytes()[:1000])
    shown = command.run("show", job.name)
    assert shown.code == ExitCode.USAGE
    assert len(shown.errors.splitlines()) == 1
    assert str(document) in shown.errors and f"--resume {job.name}" in shown.errors
    rebuilt = command.run("run", "--resume", job.name, "--json")
    assert rebuilt.code == first.code
    assert rebuilt.document == first.document
    assert json.loads(document.read_text()) == first.document


def test_a_running_job_cannot_be_resumed(tmp_path: Path) -> None:
    command = Command(tmp_path, scripted_programs(tmp_path), SCRIPT="sleeps")
    process = command.start(*LONG)
    command.wait_for_program()
    (job,) = command.jobs()
    assert states(command) == ["running"]
    ended = command.run("run", "--resume", job.name)
    assert ended.code == ExitCode.BUSY
    process.terminate()
    end_of(process)
    assert command.is_gone_soon()


def test_policy_fail_ends_a_run_on_a_busy_host(command: Command) -> None:
    suite = command.results.parent / "mine.yaml"
    suite.write_text(
        "name: mine\nidle: {policy: fail, timeout_s: 0}\ncases:\n  - workload: cpu.clock\n"
    )
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as load:
        ended = command.run("run", str(suite))
        load.kill()
    assert ended.code == ExitCode.NOT_IDLE
    assert "the host was not idle" in ended.last_line
    assert "--idle-policy flag" in ended.last_line
    assert command.documents() == []
    assert states(command) == ["failed"]
