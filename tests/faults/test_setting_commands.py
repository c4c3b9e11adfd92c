"""hostbench ab: settings by parameter, environment and command; and however a test is ended, the
setting is restored."""

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.model.decision import FigureKind, SettingTest, Word
from hostbench.run.ab import ATTEMPTS_MOST, REPEATED_MOST
from tests.each import each
from tests.faults.command import PROGRAMS, Command, end_of, write_program
from tests.patience import comes_true, wait_until

MOMENT = (
    "ab", "--workload", "cpu.fma", "--param", "duration_s=0.05", "--param", "warmup_s=0",
    "--param", "threads=1", "--idle-policy", "force", "--blocks", "8",
)  # fmt: skip
LONG = (
    "ab", "--workload", "cpu.fma", "--param", "duration_s=60", "--param", "threads=1",
    "--idle-policy", "force",
)  # fmt: skip
CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HANGUP,
}
# Real trials, whose rates are what the setting makes of them: a file or a variable says how much.
PLANTED = """\
import json, os, subprocess, sys
from pathlib import Path
setting = Path(__file__).with_name("setting")
factor = float(setting.read_text() if setting.exists() else os.environ.get("PLANTED", "1"))
with subprocess.Popen([REAL, *sys.argv[1:]], stdout=subprocess.PIPE, close_fds=False) as real:
    for line in real.stdout:
        event = json.loads(line)
        if event.get("event") == "end":
            if "DISTURBED" in os.environ:
                event["basis"] = "whole_run"
                event["disturbance"]["clean_slice_ratio"] = 0.1
            for name, value in event["metrics"].items():
                if name.startswith("operations_per_second") and value is not None:
                    event["metrics"][name] = value * factor
            line = json.dumps(event).encode() + b"\\n"
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
sys.exit(real.returncode)
"""


class Log:
    """What the commands of a test write down."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "log"

    def says(self, word: str) -> str:
        return f"echo {word} >> {shlex.quote(str(self.path))}"

    def words(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []

    def options(self, **other: str) -> tuple[str, ...]:
        """The options of commands that log; some of them other ones."""
        commands = {"a": self.says("a"), "b": self.says("b"), "restore": self.says("restored")}
        given = (commands | other).items()
        return tuple(text for name, command in given for text in (f"--{name}-command", command))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Command]:
    """A command whose cpu-bench does as much as its setting says."""
    programs = tmp_path / "programs"
    programs.mkdir()
    text = PLANTED.replace("REAL", repr(str(PROGRAMS / "cpu-bench")))
    write_program(programs / "cpu-bench", text)
    yield (one := Command(tmp_path, programs))
    assert one.is_gone_soon()


def test_of(document: Any) -> SettingTest:
    return SettingTest.model_validate(document, strict=False)


test_of.__test__ = False  # type: ignore[attr-defined]


def test_a_parameter_that_matters(command: Command) -> None:
    """One lane does an eighth of eight, also on a host that others use."""
    ended = command.run(*MOMENT, "--a", "isa=avx2", "--b", "isa=scalar", "--json", timeout_s=110)
    assert ended.code == ExitCode.WORSE, ended.errors
    found = test_of(ended.document)
    delivered = found.figures[FigureKind.DELIVERED]
    assert delivered.word is Word.WORSE
    assert delivered.high is not None and delivered.high < 0.9
    assert (found.a.params["isa"], found.b.params["isa"]) == ("avx2", "scalar")
    assert found.blocks == 8 and len(found.trials) == 4 * (found.blocks + found.repeated)
    orders = {
        "".join(trial.side for trial in found.trials[i : i + 4])
        for i in range(0, len(found.trials), 4)
    }
    assert orders <= {"abba", "baab"}
    assert not command.jobs()


@pytest.mark.exhaustive
@pytest.mark.timeout(400)
def test_a_variable_that_matters(planted: Command) -> None:
    variables = ("--a-env", "PLANTED=1", "--b-env", "PLANTED=0.1")
    ended = planted.run(*MOMENT, "--blocks", "24", *variables, timeout_s=300)
    assert ended.code == ExitCode.WORSE, ended.errors
    assert ended.output.startswith("worse: B is worse than A (")
    assert "with PLANTED=0.1" in ended.output
    assert max(map(len, ended.output.splitlines())) <= 80


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_disturbed_trials_have_no_undisturbed_figure(planted: Command) -> None:
    """Their blocks are measured again, up to a bound; what was delivered counts all the same."""
    variables = ("--a-env", "PLANTED=1", "--b-env", "PLANTED=0.1", "--b-env", "DISTURBED=1")
    ended = planted.run(*MOMENT, *variables, "--json", timeout_s=280)
    assert ended.code == ExitCode.WORSE, ended.errors
    found = test_of(ended.document)
    assert (found.blocks, found.repeated) == (8, REPEATED_MOST)
    assert {trial.block for trial in found.trials} == set(range(8))
    assert max(trial.attempt for trial in found.trials) == ATTEMPTS_MOST - 1
    assert list(found.figures) == [FigureKind.DELIVERED]
    assert found.figures[FigureKind.DELIVERED].word is Word.WORSE
    assert (
        "40 of 40 trials of B have no undisturbed figure" in found.no_figure[FigureKind.UNDISTURBED]
    )


@pytest.mark.exhaustive
@pytest.mark.timeout(400)
def test_a_command_that_matters(planted: Command, tmp_path: Path, log: Log) -> None:
    """It changes a file that a trial reads; afterwards the file is as it was."""
    file = shlex.quote(str(tmp_path / "programs" / "setting"))
    commands = log.options(a=f"echo 1 > {file}", b=f"echo 0.1 > {file}", restore=f"rm {file}")
    # Eight blocks decide; more may begin, where others leave some without a figure.
    ended = planted.run(*MOMENT, "--blocks", "24", *commands, timeout_s=300)
    assert ended.code == ExitCode.WORSE, ended.errors
    assert ended.output.startswith("worse: B is worse than A (")
    assert not (tmp_path / "programs" / "setting").exists()


def test_each_trial_follows_the_command_of_its_side(command: Command, log: Log) -> None:
    ended = command.run(*MOMENT, *log.options(), "--json")
    found = test_of(ended.document)
    assert log.words() == [*(trial.side for trial in found.trials), "restored"]
    assert found.not_restored is None


def test_a_command_that_fails(command: Command, log: Log) -> None:
    ended = command.run(*MOMENT, *log.options(b="echo no such device >&2; exit 5"))
    assert (ended.code, ended.output) == (ExitCode.CASE_FAILED, "")
    assert (
        "hostbench: the command of side B 'echo no such device >&2; exit 5' ended with exit code "
        "5; its output: no such device; run it by hand until it succeeds; 0 blocks measured until "
        "then" in ended.last_line
    )
    assert log.words()[-1] == "restored"


def test_a_command_that_is_killed(command: Command, log: Log) -> None:
    ended = command.run(*MOMENT, *log.options(b="kill -9 $$"))
    assert ended.code == ExitCode.CASE_FAILED
    assert "side B 'kill -9 $$' was killed by signal 9; its output: none" in ended.last_line
    assert log.words()[-1] == "restored"


def test_a_command_that_hangs(command: Command, log: Log) -> None:
    hangs = "trap '' TERM; sleep 600; sleep 600"
    began_s = time.monotonic()
    ended = command.run(*MOMENT, *log.options(a=hangs), "--command-timeout", "0.5")
    assert time.monotonic() - began_s < 30
    assert ended.code == ExitCode.CASE_FAILED
    assert (
        "did not end within 0.5 s; its output: none; --command-timeout allows more"
        in ended.last_line
    )
    assert log.words()[-1] == "restored"
    assert command.is_gone_soon()


@pytest.mark.exhaustive
def test_what_a_command_starts_stays(command: Command, log: Log, tmp_path: Path) -> None:
    """It is the setting, until the restore command ends it."""
    pid = shlex.quote(str(tmp_path / "pid"))
    starts = f"[ -e {pid} ] || {{ sleep 600 & echo $! > {pid}; }}"
    ended = command.run(*MOMENT, *log.options(b=starts, restore=f"kill $(cat {pid})"))
    assert ended.code in (ExitCode.OK, ExitCode.WORSE, ExitCode.UNDECIDED), ended.errors
    assert command.is_gone_soon()


def test_a_restore_command_that_fails(command: Command, log: Log) -> None:
    """The result is there all the same, and the exit code says that something is left to do."""
    fails = log.says("tried") + "; exit 3"
    ended = command.run(*MOMENT, *log.options(restore=fails))
    assert ended.code == ExitCode.NOT_RESTORED
    assert "blocks of four trials" in ended.output
    assert "ended with exit code 3; its output: none; undo the setting by hand" in ended.last_line
    assert log.words()[-2:] == ["tried", "tried"] and log.words().count("tried") == 2


@pytest.mark.exhaustive
def test_a_restore_command_that_succeeds_the_second_time(command: Command, log: Log) -> None:
    once = (
        f"grep -q first {log.path} && {log.says('restored')} || {{ {log.says('first')}; exit 1; }}"
    )
    ended = command.run(*MOMENT, *log.options(b="exit 5", restore=once))
    assert ended.code != ExitCode.NOT_RESTORED
    assert log.words()[-2:] == ["first", "restored"]


def test_both_fail(command: Command, log: Log) -> None:
    ended = command.run(*MOMENT, *log.options(a="exit 4", restore="exit 3"))
    assert (ended.code, ended.output) == (ExitCode.NOT_RESTORED, "")
    assert "ended with exit code 4" in ended.last_line and "exit code 3" in ended.last_line
    assert ended.last_line.count("undo the setting by hand") == 1


@pytest.mark.parametrize("number", list(CODES))
def test_a_signal_to_all_of_the_terminal(
    command: Command, log: Log, number: signal.Signals
) -> None:
    process = command.start(*LONG, *log.options(), start_new_session=True)
    wait_for_trial(command)
    os.killpg(process.pid, number)
    ended = end_of(process)
    assert (ended.code, ended.output) == (CODES[number], "")
    assert ended.last_line.startswith(f"hostbench: interrupted by {number.name}; 0 blocks")
    assert log.words()[-1] == "restored" and log.words().count("restored") == 1
    assert command.is_gone_soon()


def test_ctrl_c_while_a_command_runs_and_while_it_is_undone(command: Command, log: Log) -> None:
    slow = f"{log.says('begins')}; sleep 1; {log.says('restored')}"
    never_ends = f"{log.says('set')}; sleep 600"
    options = log.options(a=never_ends, b=never_ends, restore=slow)
    process = command.start(*LONG, *options, start_new_session=True)
    wait_until(log.words)
    os.killpg(process.pid, signal.SIGINT)
    wait_until(lambda: "begins" in log.words())
    os.killpg(process.pid, signal.SIGINT)
    assert end_of(process).code == ExitCode.INTERRUPTED
    assert log.words() == ["set", "begins", "restored"]
    assert command.is_gone_soon()


def test_kill_9_restores_and_holds_the_host_until_then(command: Command, log: Log) -> None:
    slow = f"{log.says('begins')}; sleep 3; {log.says('restored')}"
    process = command.start(*LONG, *log.options(restore=slow))
    wait_for_trial(command)
    process.kill()
    wait_until(lambda: "begins" in log.words())
    busy = command.run("run", "--workload", "cpu.clock", "--idle-policy", "force")
    assert busy.code == ExitCode.BUSY
    assert comes_true(lambda: log.words()[-1] == "restored")
    end_of(process)
    assert command.is_gone_soon()
    assert log.words().count("restored") == 1


@pytest.mark.exhaustive
def test_kill_9_while_a_command_runs(command: Command, log: Log) -> None:
    """The command is ended before what it did is undone."""
    never_ends = f"{log.says('set')}; sleep 600; {log.says('late')}"
    process = command.start(*LONG, *log.options(a=never_ends, b=never_ends))
    wait_until(log.words)
    process.kill()
    assert comes_true(lambda: log.words() == ["set", "restored"])
    end_of(process)
    assert command.is_gone_soon()


@pytest.mark.exhaustive
def test_kill_9_and_a_restore_command_that_fails(command: Command, log: Log) -> None:
    process = command.start(*LONG, *log.options(restore="echo stuck; exit 3"))
    wait_for_trial(command)
    process.kill()
    ended = end_of(process)
    assert ended.last_line == (
        "hostbench: the restore command 'echo stuck; exit 3' ended with exit code 3; its output: "
        "stuck; undo the setting by hand"
    )


def test_the_lifeline_is_killed(command: Command, log: Log) -> None:
    """Another one restores."""
    process = command.start(*LONG, *log.options())
    wait_for_trial(command)
    for pid in lifelines(command):
        os.kill(pid, signal.SIGKILL)
    process.terminate()
    assert end_of(process).code == ExitCode.TERMINATED
    assert log.words()[-1] == "restored"


def wait_for_trial(command: Command) -> None:
    """Until a program measures."""
    wait_until(lambda: any(b"-bench\0fma\0" in line for line in lines(command)))


def lines(command: Command) -> Iterator[bytes]:
    """The command lines of what it has started."""
    for pid in command.processes():
        with contextlib.suppress(OSError):
            yield Path(f"/proc/{pid}/cmdline").read_bytes()


def lifelines(command: Command) -> list[int]:
    found = [
        pid
        for pid in command.processes()
        if b"setting_lifeline.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert found
    return found


def test_a_busy_host_is_not_touched(command: Command, log: Log) -> None:
    process = command.start("run", *LONG[1:])
    wait_for_trial(command)
    ended = command.run(*MOMENT, *log.options())
    assert ended.code == ExitCode.BUSY
    assert log.words() == []
    process.terminate()
    end_of(process)


def test_what_cannot_run_here(command: Command, log: Log) -> None:
    ended = command.run(
        *MOMENT[:3], *MOMENT[9:], *log.options(), "--a", "isa=sve", "--b", "isa=sse2"
    )
    assert ended.code == ExitCode.NOTHING_RAN
    assert "side A, cpu.fma" in ended.last_line and "cannot run here" in ended.last_line


BY_COMMAND = ("--a-command", ":", "--b-command", ":")


@each(
    ("arguments", "why"),
    [
        ((), "A and B have no settings; give each a parameter"),
        (BY_COMMAND, "--restore-command is missing"),
        (("--a-command", ":"), "--b-command and --restore-command is missing"),
        (("--restore-command", ":"), "--a-command and --b-command is missing"),
        ((*BY_COMMAND, "--restore-command", " "), "--restore-command is missing"),
        (("--a", "isa"), "--a 'isa' is not name=value"),
        (("--a", "isa=avx3"), "avx3"),
        (("--b", "nonsense=1"), "nonsense"),
        (("--a-env", "A B=1"), "--a-env 'A B=1' is not NAME=VALUE"),
        (
            ("--a", "threads=1", "--blocks", "7"),
            "--blocks '7' is not allowed: give a whole number from 8 to 96",
        ),
        (("--a", "threads=1", "--margin", "90"), "--margin '90' is not a share"),
        (("--a", "threads=1", "--command-timeout", "0"), "--command-timeout '0' is out of range"),
        (("--a", "threads=1", "--command-timeout", "inf"), "give above 0 to 3600"),
        (("--a", "threads=1", "--workload", "cpu.fam"), "did you mean 'cpu.fma'"),
    ],
)
def test_bad_input_is_one_line(command: Command, arguments: tuple[str, ...], why: str) -> None:
    ended = command.run(*MOMENT[:3], "--idle-policy", "force", *arguments)
    assert (ended.code, ended.output) == (ExitCode.USAGE, "")
    assert len(ended.errors.splitlines()) == 1
    assert why in ended.errors
