"""hostbench report over the real program: where the report goes, and what is refused."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.results.journal import JournalWriter
from tests.faults.command import Command, Ended, WithReport

FORCE = ("--idle-policy", "force")
SMALL = """
name: small
idle: {policy: force}
repeats: {min_trials: 2, max_trials: 2}
cases:
  - workload: cpu.fma
    params: {duration_s: 0.05, warmup_s: 0}
    grid: {dtype: [fp64, fp32], threads: [1, all]}
  - workload: cpu.add_sub
    params: {duration_s: 0.4, warmup_s: 0, sample_interval_s: 0.1, threads: 1}
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return WithReport(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def measured(command: Command) -> Ended:
    suite = command.results.parent / "small.yaml"
    suite.write_text(SMALL)
    return command.run("run", str(suite))


@pytest.fixture
def job(command: Command, measured: Ended) -> Path:
    return command.jobs()[0]


def one_line(ended: Ended) -> str:
    assert ended.code == ExitCode.USAGE, ended
    assert ended.output == "" and len(ended.errors.splitlines()) == 1
    return ended.last_line


def test_a_run_ends_with_its_report(measured: Ended, job: Path) -> None:
    assert measured.code in (ExitCode.OK, ExitCode.INVALID)
    assert measured.last_line == f"report: {job / 'report.html'}"
    page = (job / "report.html").read_text()
    assert page.startswith("<!doctype html>") and job.name in page
    assert "Over time" in page and "Spread of the trials" in page


def test_the_path_is_all_that_is_printed(command: Command, job: Path) -> None:
    before = (job / "report.html").read_bytes()
    (job / "report.html").unlink()
    ended = command.run("report", "latest")
    assert (ended.code, ended.errors) == (ExitCode.OK, "")
    assert ended.output == f"{job / 'report.html'}\n"
    # What the document says is all there is to it: the same page again.
    assert (job / "report.html").read_bytes() == before


def test_markdown_and_csv_go_to_standard_output(command: Command, job: Path) -> None:
    text = command.run("report", job.name, "--format", "markdown").output
    assert text.startswith("# small on ") and "| case | figure |" in text
    table = command.run("report", job.name, "--format", "csv").output
    assert table == (job / "result.csv").read_text()


@pytest.mark.parametrize("form", ["html", "markdown", "csv"])
@pytest.mark.sampled(3)
def test_into_a_file(command: Command, job: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "out"
    ended = command.run("report", "latest", "--format", form, "--output", str(target))
    assert ended.output == f"{target}\n"
    assert target.stat().st_size > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_to_standard_output(command: Command, job: Path, tmp_path: Path) -> None:
    assert command.run("report", "latest", "--output", "-").output == (
        (job / "report.html").read_text()
    )
    csv = ("report", "latest", "--format", "csv", "--output")
    printed = command.run(*csv, "-").output
    assert printed == (job / "result.csv").read_text()
    assert command.run(*csv, "/dev/stdout").output.startswith(printed)


def test_a_link_stays_a_link(command: Command, job: Path, tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    command.run("report", "latest", "--format", "csv", "--output", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").stat().st_size > 0


def test_a_device_stays_a_device(command: Command, job: Path) -> None:
    ended = command.run("report", "latest", "--format", "csv", "--output", "/dev/null")
    assert ended.code == ExitCode.OK
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


# ---- refused ----


@pytest.mark.parametrize("bad", ["nosuch", "../results", "a/b", "", "20261120T174501Z-quick-3f2a"])
@pytest.mark.sampled(3)
def test_an_unknown_job(command: Command, job: Path, bad: str) -> None:
    assert "there is no job" in one_line(command.run("report", bad))


def test_no_job_at_all(tmp_path: Path) -> None:
    assert "there is no job 'latest'" in one_line(Command(tmp_path).run("report", "latest"))


def test_an_unknown_format(command: Command, job: Path) -> None:
    message = one_line(command.run("report", "latest", "--format", "pdf"))
    assert "html" in message and "markdown" in message and "csv" in message


@pytest.mark.parametrize("output", [".", "..", "/", ""])
@pytest.mark.sampled(2)
def test_a_directory_is_no_file(command: Command, job: Path, output: str) -> None:
    message = one_line(command.run("report", "latest", "--output", output))
    assert "is a directory" in message and "report.html" in message


@pytest.mark.parametrize("name", ["result.json", "journal.ndjson", "result.csv"])
@pytest.mark.sampled(3)
def test_the_record_is_not_overwritten(command: Command, job: Path, name: str) -> None:
    before = (job / name).read_bytes()
    ended = command.run("report", "latest", "--output", str(job / ".." / job.name / name))
    assert "is the job's own record" in one_line(ended)
    assert (job / name).read_bytes() == before


@pytest.mark.parametrize(
    ("form", "output", "why"),
    [
        ("html", "/nowhere/at/all.html", "No such file or directory"),
        ("html", "/dev/full", "No space left on device"),
        ("csv", "/dev/null/x", "Not a directory"),
        ("csv", "x" * 300, "File name too long"),
    ],
)
@pytest.mark.sampled(2)
def test_an_output_that_cannot_be_written(
    command: Command, job: Path, form: str, output: str, why: str
) -> None:
    ended = command.run("report", "latest", "--format", form, "--output", output)
    assert ended.code == ExitCode.RESOURCE
    assert ended.output == "" and len(ended.errors.splitlines()) == 1
    assert re.search(why, ended.last_line) and "--output" in ended.last_line


# ---- documents that are not what they should be ----


@pytest.fixture
def damaged(command: Command, job: Path, tmp_path: Path) -> Command:
    """A copy of the job that a test may spoil."""
    copy = WithReport(tmp_path)
    (copy.results / job.name).mkdir(parents=True)
    for path in job.iterdir():
        (copy.results / job.name / path.name).write_bytes(path.read_bytes())
    return copy


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "cut short or damaged"),
        (b'{"schema": 1, "kind": "hostbench.res', "cut short or damaged"),
        (b"\xff\xfe\x00", "cut short or damaged"),
        (b"[" * 100_000, "cut short or damaged"),
        (b"[]", "is no JSON object and not a 'hostbench.result'"),
        (b'{"schema": 2, "kind": "hostbench.result"}', "was changed after it was written"),
        (b'{"schema": 1, "kind": "something"}', "is a 'something' and not a 'hostbench.result'"),
        (b'{"schema": 1, "a": NaN}', "is not a result document"),
    ],
)
@pytest.mark.sampled(4)
def test_not_a_document(damaged: Command, content: bytes, why: str) -> None:
    (damaged.jobs()[0] / "result.json").write_bytes(content)
    message = one_line(damaged.run("report", "latest"))
    assert why in message and "hostbench run --resume" in message


@pytest.mark.exhaustive
def test_an_edited_figure(damaged: Command) -> None:
    path = damaged.jobs()[0] / "result.json"
    document = json.loads(path.read_text())
    document["cases"][2]["metrics"]["operations_per_second"]["statistics"]["median"] *= 1.02
    path.write_text(json.dumps(document))
    for form in ("html", "markdown", "csv"):
        message = one_line(damaged.run("report", "latest", "--format", form))
        assert "result.json was changed after it was written" in message
    # What the message recommends helps.
    assert damaged.run("run", "--resume", "latest").code in (ExitCode.OK, ExitCode.INVALID)
    assert damaged.run("report", "latest", "--format", "csv").code == ExitCode.OK


def test_a_job_that_runs(damaged: Command) -> None:
    job = damaged.jobs()[0]
    (job / "result.json").unlink()
    lines = (job / "journal.ndjson").read_bytes().splitlines(keepends=True)
    (job / "journal.ndjson").write_bytes(b"".join(lines[:4]))
    with JournalWriter(job / "journal.ndjson", create=False):
        ended = damaged.run("report", "latest", "--format", "markdown")
    assert ended.code == ExitCode.OK
    assert "The job is still running: 0 of 5 cases are complete." in ended.output
    page = Path(damaged.run("report", "latest").output.strip()).read_text()
    assert "The job was interrupted. 0 of 5 cases are complete." in page
    # Going on takes back the page that tells of a part, and ends with that of the whole.
    assert damaged.run("run", "--resume", "latest").last_line.startswith("report: ")
    assert "was interrupted" not in (job / "report.html").read_text()


# ---- a report that fails costs nothing else ----


@pytest.fixture
def run() -> tuple[str, ...]:
    return (
        "run", "--workload", "cpu.clock", "--param", "duration_s=0.05", "--param", "warmup_s=0",
        "--param", "threads=1", "--trials", "2", *FORCE,
    )  # fmt: skip


def test_a_broken_library(tmp_path: Path, run: tuple[str, ...]) -> None:
    command = WithReport(tmp_path)
    (tmp_path / "jinja2").mkdir()
    (tmp_path / "jinja2" / "__init__.py").write_text("raise RuntimeError('broken\\nhere')\n")
    path = os.pathsep.join([str(tmp_path), command.environment["PYTHONPATH"]])
    command.environment["PYTHONPATH"] = path
    ended = command.run(*run)
    assert ended.code == ExitCode.OK
    assert "no report was written: RuntimeError: broken here; try: hostbench report" in (
        ended.last_line
    )
    assert "cpu.clock" in ended.output and len(command.documents()) == 2
    assert "Traceback" not in ended.errors


def test_a_run_does_not_pay_for_the_report_before_it_has_measured() -> None:
    """Jinja2 is imported when the page is made, and by no other command."""
    command = "import hostbench.cli.app, hostbench.cli.commands, sys; print(*sys.modules)"
    names = set(
        subprocess.run(
            [sys.executable, "-c", command], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    assert "jinja2" not in names
