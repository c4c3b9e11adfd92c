"""What the command takes by itself: which modules a start imports, and the CPU time of a start, of
a plan of hundreds of cases, and of a report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.report_documents import full_run, stored

ROOT = Path(__file__).parents[2]
RUNS, LONG_RUNS = 5, 2
# Modules that need not be there: what they serve is not what the command is for.
NOT_FOR_HELP = {
    "pydantic", "rich", "yaml", "jinja2", "httpx", "hostbench.model.result", "services"
}  # fmt: skip
NOT_FOR_LIST = NOT_FOR_HELP - {"rich"} | {"typer", "hostbench.plan"}


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
    takes_at_most(most, [argument], environment(tmp_path))


@pytest.mark.exhaustive
def test_the_cpu_time_of_a_plan(tmp_path: Path) -> None:
    """Of the suite full without what is run to find out how long it takes. 31 times as much as the
    interpreter alone was measured for 651 cases."""
    suite = yaml.safe_load((ROOT / "suites/full.yaml").read_text())
    suite["cases"] = [
        case
        for case in suite["cases"]
        if "duration_s" in case.get("params", {})
        and case["workload"] not in {"cpu.gemm", "cpu.linpack"}
    ]
    path = tmp_path / "most.yaml"
    path.write_text(yaml.safe_dump(suite))
    given = environment(tmp_path)
    command = [sys.executable, "-m", "hostbench", "plan", str(path), "--json"]
    plan = subprocess.check_output(command, cwd=ROOT, env=given)
    assert len(json.loads(plan)["cases"]) > 300
    takes_at_most(60, ["plan", str(path)], given, LONG_RUNS)


@pytest.mark.exhaustive
def test_the_cpu_time_of_a_report(tmp_path: Path) -> None:
    """Of 182 cases with three trials each: 26 to 38 times as much as the interpreter alone was
    measured. The whole suite full takes 1.6 s (benchmarks/README.md)."""
    document = full_run(3)
    stored(document, tmp_path)
    page = tmp_path / "page.html"
    command = ["report", document.job.id, "--output", str(page)]
    takes_at_most(60, command, environment(tmp_path), LONG_RUNS)
    assert page.stat().st_size > 200_000


def takes_at_most(
    most: float, arguments: list[str], given: dict[str, str], runs: int = RUNS
) -> None:
    """Hold the CPU time of a command to so many times that of the interpreter alone."""
    bare, command = ["-c", "pass"], ["-m", "hostbench", *arguments]
    cpu_s(command, given)  # compiles what is not yet
    took = [(cpu_s(command, given), cpu_s(bare, given)) for _ in range(runs)]
    ours, interpreter = (min(of) for of in zip(*took, strict=True))
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
