"""Results of every schema that a hostbench ever wrote are listed, shown, reported and compared.

fixtures/schemaN/ has whole results of schema N. A new schema brings its own.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.cli.command_line import run_command_line
from hostbench.model.result import RECORD, ResultDocument, SessionRecord
from hostbench.results.store import DOCUMENT, JOURNAL
from tests.each import each

FIXTURES = Path(__file__).parent / "fixtures"
SCHEMAS = get_args(ResultDocument.model_fields["schema_version"].annotation)
STORED = {
    path.parent.name: path.parent for path in sorted(FIXTURES.glob(f"schema*/*/{DOCUMENT}.gz"))
}
COMPARED = {ExitCode.OK, ExitCode.WORSE, ExitCode.UNDECIDED, ExitCode.NOT_COMPARABLE}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory with all of them."""
    directory = tmp_path_factory.mktemp("results")
    for job, source in STORED.items():
        (directory / job).mkdir()
        for name in (DOCUMENT, JOURNAL):
            content = gzip.decompress((source / f"{name}.gz").read_bytes())
            (directory / job / name).write_bytes(content)
    return directory


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed."""
    code = run_command_line([str(one) for one in arguments])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out


def holds(now: Any, then: Any) -> bool:
    """Whether everything that stood in a document is in what is shown of it; fields were added."""
    if isinstance(then, dict):
        return all(name in now and holds(now[name], value) for name, value in then.items())
    if isinstance(then, list):
        return len(now) == len(then) and all(map(holds, now, then))
    return bool(now == then)


def test_there_is_a_result_of_every_schema() -> None:
    written = {
        json.loads(gzip.decompress((path / f"{DOCUMENT}.gz").read_bytes()))["schema"]
        for path in STORED.values()
    }
    assert written == set(SCHEMAS)


def test_they_are_listed(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "list", "--results", results, "--json")
    assert code == ExitCode.OK
    assert {job["id"] for job in json.loads(text)["jobs"]} == STORED.keys()


@each("job", list(STORED))
def test_they_are_shown(results: Path, capsys: pytest.CaptureFixture[str], job: str) -> None:
    code, text = run(capsys, "show", job, "--results", results, "--json")
    shown, stored = json.loads(text), json.loads((results / job / DOCUMENT).read_text())
    assert code == ExitCode.OK and shown["schema"] == stored["schema"]
    assert holds(shown, stored)
    assert run(capsys, "show", job, "--results", results)[0] == ExitCode.OK
    assert run(capsys, "show", job, "--results", results, "--csv")[1].count("\n") > 1


@each("job", list(STORED))
def test_they_are_reported(results: Path, capsys: pytest.CaptureFixture[str], job: str) -> None:
    for form in ("html", "markdown", "csv", "openmetrics"):
        code, text = run(
            capsys, "report", job, "--results", results, "--format", form, "--output", "-"
        )
        assert code == ExitCode.OK and re.search(r"\bcpu\b", text), form


@each("job", list(STORED))
def test_they_are_compared(results: Path, capsys: pytest.CaptureFixture[str], job: str) -> None:
    """With a result of each schema; what is found depends on the jobs."""
    for other in STORED.keys() - {job}:
        code, text = run(capsys, "compare", job, other, "--results", results, "--json")
        assert code in COMPARED
        (comparison,) = json.loads(text)["comparisons"]
        assert comparison["cases"], (job, other)


@each("job", list(STORED))
def test_their_journals_are_read(results: Path, job: str) -> None:
    """With the events of the programs of then, which every trial holds."""
    lines = (results / job / JOURNAL).read_bytes().splitlines()
    records = [RECORD.validate_json(line) for line in lines]
    assert isinstance(records[0], SessionRecord)
    kinds = {event["event"] for line in lines for event in json.loads(line).get("events", ())}
    assert {"start", "end", "skip"} <= kinds
