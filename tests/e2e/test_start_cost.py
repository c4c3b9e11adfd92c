"""What the command takes before it does anything: which modules are imported, and the CPU time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS = 5
# Modules that need not be there: what they serve is not what the command is for.
NOT_FOR_HELP = {"pydantic", "rich", "yaml", "jinja2", "httpx", "hostbench.model", "services"}
NOT_FOR_LIST = NOT_FOR_HELP - {"rich", "hostbench.model"} | {
    "typer", "hostbench.model.result", "hostbench.plan"
}  # fmt: skip


def environment(tmp_path: Path) -> dict[str, str]:
    """Where modules stay compiled, and there are no jobs."""
    given = {**os.environ, "HOSTBENCH_RESULTS": str(tmp_path)}
    given.pop("PYTHONDONTWRITEBYTECODE", None)
    return given


@pytest.mark.parametrize(
    ("argument", "left_out"), [("--help", NOT_FOR_HELP), ("list", NOT_FOR_LIST)]
)
def test_what_is_imported(tmp_path: Path, argument: str, left_out: set[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hostbench", argument],
        cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "hostbench.cli.command_line" in imported
    assert not imported & left_out


# 3.5 to 6 and 3.7 times as much as the interpreter alone was measured (benchmarks/README.md): on a
# loaded machine the CPU times of both grow alike. With pydantic either is above 8.
@pytest.mark.parametrize(("argument", "most"), [("--help", 8.0), ("list", 6.0)])
def test_cpu_time(tmp_path: Path, argument: str, most: float) -> None:
    bare, command = ["-c", "pass"], ["-m", "hostbench", argument]
    given = environment(tmp_path)
    cpu_s(command, given)  # compiles what is not yet
    runs = [(cpu_s(command, given), cpu_s(bare, given)) for _ in range(RUNS)]
    ours, interpreter = (min(of) for of in zip(*runs, strict=True))
    assert ours <= most * interpreter, f"{ours:.3f} s beside {interpreter:.3f} s"


def cpu_s(arguments: list[str], given: dict[str, str]) -> float:
    """The CPU time of one Python process, in seconds."""
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=given, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
