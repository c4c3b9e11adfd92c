"""Bad input is one line that names the value, what is allowed and the remedy; nothing is begun.

The messages themselves are held in tests/unit; here is what the command makes of them.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.cli.command_line import run_command_line
from tests.faults.command import PROGRAMS, Command, scripted_programs

FMA = ("run", "--workload", "cpu.fma", "--param")
Answer = tuple[int, str, str]


@pytest.fixture
def hostbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Answer]]:
    """The command inside this process: exit code, standard output, standard error."""
    monkeypatch.setenv("HOSTBENCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("HOSTBENCH_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(PROGRAMS))
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in numbers]

    def call(*arguments: str) -> Answer:
        code = run_command_line(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield call
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([*FMA, "threads=0"], ["'0'", "1 to 4096 or all"]),
        ([*FMA, "threads=-1"], ["'-1'", "1 to 4096 or all"]),
        ([*FMA, "threads=abc"], ["'abc'", "1 to 4096 or all"]),
        ([*FMA, "threads=1000000"], ["'1000000'", "1 to 4096 or all"]),
        ([*FMA, "thread=1"], ["'thread'", "did you mean 'threads'?"]),
        ([*FMA, "dtype=fp16"], ["'fp16'", "fp64 or fp32"]),
        ([*FMA, "isa=avx3"], ["'avx3'", "avx2"]),
        ([*FMA, "duration_s=0"], ["'0'", "0.01 to 604800 s"]),
        ([*FMA, "duration-s=-1"], ["'-1'", "0.01 to 604800 s"]),
        ([*FMA, "duration_s=nan"], ["'nan'", "0.01 to 604800 s"]),
        ([*FMA, "work=0"], ["'0'", "1 to 1e+18"]),
        ([*FMA, "work=99999999999999999999"], ["99999999999999999999", "1 to 1e+18"]),
        ([*FMA, "work=5", "--param", "duration_s=1"], ["duration_s", "work", "leave out"]),
        ([*FMA, "cpus=8000"], ["8000", "CPUs out of"]),
        ([*FMA, "cpus=x"], ["'x'", "CPUs out of"]),
        ([*FMA, "lifeline_fd=3"], ["lifeline_fd", "operator"]),
        ([*FMA, "threads"], ["'threads'", "name=value"]),
        ([*FMA, "threads=1", "--param", "threads=2"], ["threads", "twice"]),
        (["run", "--param", "threads=1"], ["threads=1", "--workload"]),
        (["run", "--workload", "cpu.fmaa"], ["'cpu.fmaa'", "did you mean 'cpu.fma'?"]),
        (["run", "--workload", "fma"], ["'fma'", "cpu.fma"]),
        (["run", "--workload", "cqu.fma"], ["'cqu'", "did you mean 'cpu'?"]),
        (["run", "quick", "--workload", "cpu.fma"], ["'quick'", "leave out one"]),
        (["run", "quik"], ["'quik'", "did you mean 'quick'?", ".yaml"]),
        (["run", "/nosuch/mine.yaml"], ["/nosuch/mine.yaml", "No such file"]),
        (["run", "/"], ["/", "Is a directory"]),
        (["run", "--trials", "0"], ["'0'", "1 to 1000"]),
        (["run", "--trials", "abc"], ["--trials", "'abc'", "1 to 1000"]),
        (["run", "--wait", "-1"], ["-1", "0 or more"]),
        (["run", "--wait", "nan"], ["nan", "0 or more"]),
        (["run", "--idle-policy", "maybe"], ["maybe", "flag"]),
        (["run", "--resume", "nosuch"], ["'nosuch'", "hostbench run"]),
        (["run", "--resume", "x", "--trials", "3"], ["--resume", "--trials"]),
        (["run", "quick", "--resume", "x"], ["--resume", "suite"]),
        (["run", "--json", "--csv"], ["--json", "--csv", "leave out one"]),
        (["run", "--jsn"], ["--jsn"]),
        (["run", "one", "two"], ["two"]),
        ([], ["command", "--help"]),
        (["run", ""], ["''", ".yaml"]),
        (["runn"], ["runn", "run"]),
        (["show"], ["'job'"]),
        (["show", "nosuch"], ["'nosuch'", "hostbench run"]),
        (["show", "../.."], ["'../..'", "hostbench run"]),
        (["show", "latest"], ["'latest'", "hostbench run"]),
        (["show", "latest", "--samples"], ["--samples", "--csv"]),
        (["list", "nosuch"], ["nosuch", "jobs"]),
        (["list", "--limit", "-1"], ["-1", "0"]),
    ],
)
def test_one_line_and_exit_code_2(
    hostbench: Callable[..., Answer], arguments: list[str], parts: list[str]
) -> None:
    code, output, errors = hostbench(*arguments)
    assert code == ExitCode.USAGE
    assert len(errors.splitlines()) == 1
    for part in parts:
        assert part in errors
    assert output == "" or "--json" in arguments


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["is empty", "name and cases"]),
        ("name: a\ncases: &x\n  - *x\n", [":2:", "anchor &x"]),
        ("name: a\ncases:\n  - wrkload: cpu.fma\n", [":3:", "did you mean 'workload'?"]),
        ("name: a\ncases:\n  - {workload: cpu.fma, params: {threads: 0}}\n", ["threads 0"]),
        ("name: a\ncases:\n  - {workload: cpu.fma, grid: {isa: [avx3]}}\n", ["avx3"]),
    ],
)
def test_bad_suites(
    hostbench: Callable[..., Answer], tmp_path: Path, content: str, parts: list[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    code, output, errors = hostbench("run", str(path))
    assert (code, output, len(errors.splitlines())) == (ExitCode.USAGE, "", 1)
    for part in parts:
        assert part in errors


def test_json_says_errors_as_json_too(hostbench: Callable[..., Answer]) -> None:
    import json

    code, output, errors = hostbench("run", "quik", "--json")
    error = json.loads(output)["error"]
    assert error["exit_code"] == code == ExitCode.USAGE
    assert error["message"] in errors


def test_programs_that_are_not_there(
    hostbench: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(tmp_path))
    code, _, errors = hostbench("run", "--workload", "cpu.fma")
    assert code == ExitCode.RESOURCE
    assert str(tmp_path / "cpu-bench") in errors and "HOSTBENCH_PROGRAMS" in errors


def test_a_program_that_is_no_program(
    hostbench: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu-bench").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "cpu-bench").chmod(0o755)
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(tmp_path))
    code, _, errors = hostbench("run", "--workload", "cpu.fma")
    assert code == ExitCode.RESOURCE
    assert "cannot start" in errors and "make programs" in errors


def test_an_instruction_set_this_cpu_lacks_is_skipped(command: Command) -> None:
    lacking = "neon" if os.uname().machine == "x86_64" else "avx2"
    ended = command.run(
        "run", "--workload", "cpu.fma", "--param", f"isa={lacking}", "--idle-policy", "force",
        "--json",
    )  # fmt: skip
    assert ended.code == ExitCode.NOTHING_RAN
    (case,) = ended.document["cases"]
    assert case["verdict"] == "skipped"
    assert lacking in case["reasons"][0]["text"]


def test_a_host_that_is_busy_with_another_run(tmp_path: Path) -> None:
    command = Command(tmp_path, scripted_programs(tmp_path), SCRIPT="sleeps")
    long = ("run", "--workload", "cpu.fma", "--param", "duration_s=60", "--idle-policy", "force")
    first = command.start(*long)
    try:
        command.wait_for_program()
        second = command.run("run", "--workload", "cpu.clock")
        assert second.code == ExitCode.BUSY
        assert command.jobs()[0].name in second.last_line
        assert f"pid '{first.pid}'" in second.last_line or f"pid {first.pid}" in second.last_line
        assert "--wait SECONDS" in second.last_line
        assert len(command.jobs()) == 1
    finally:
        first.terminate()
        first.communicate(timeout=60)
    assert command.is_gone_soon()
