"""hostbench compare: what it prints, its exit codes, and what it refuses."""

import re
import shutil
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.model.decision import Comparison
from hostbench.model.result import Verdict
from hostbench.results.ids import job_ids
from tests.each import each
from tests.faults.command import Command, Ended
from tests.unit.decided import stored_job

# Four jobs that repeat well, four that do as they did, four at 0.95 of it.
FACTORS = (1.0, 1.0005, 0.9995, 1.0001, 0.9998, 1.0002, 1.0004, 0.9997, 0.95, 0.951, 0.9505, 0.9496)
BEFORE, AGAIN, SLOWER = ("*-000[0-3]", "*-000[4-7]", "*-000[89ab]")


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    command = Command(tmp_path_factory.mktemp("compare"))
    for number, factor in enumerate(FACTORS):
        stored_job(command.results, number, factor)
    return command


def comparison(ended: Ended) -> Comparison:
    (one,) = ended.document["comparisons"]
    return Comparison.model_validate(one, strict=False)


@each(
    ("arguments", "code", "first"),
    [
        ((BEFORE, AGAIN), ExitCode.OK, "same: of "),
        ((BEFORE, SLOWER), ExitCode.WORSE, "worse: of "),
        ((SLOWER, BEFORE), ExitCode.OK, "better: of "),
        ((BEFORE, SLOWER, "--margin", "10"), ExitCode.OK, "same: of "),
    ],
)
def test_the_exit_code_is_the_word(
    command: Command, arguments: tuple[str, ...], code: ExitCode, first: str
) -> None:
    ended = command.run("compare", *arguments)
    assert (ended.code, ended.errors) == (code, "")
    assert ended.output.startswith(first)
    assert max(map(len, ended.output.splitlines())) <= 80


@each(
    ("command_name", "meaning"),
    [
        ("compare", "0  same or better, or what --require allows"),
        ("ab", "0  B is better than A, or the same"),
        ("history", "0  the history is printed"),
    ],
)
def test_help_has_the_exit_codes_of_the_command(
    command: Command, command_name: str, meaning: str
) -> None:
    ended = command.run(command_name, "--help")
    assert ended.code == ExitCode.OK
    _, _, table = ended.output.partition("Exit codes:")
    assert meaning in table and "measured (the verdicts" not in table


def test_what_is_undecided_and_what_is_required(command: Command, tmp_path: Path) -> None:
    """Of two jobs alone nothing can be decided."""
    few = Command(tmp_path)
    for number in (0, 1):
        stored_job(few.results, number)
    undecided = few.run("compare", "latest-1", "latest")
    assert undecided.code == ExitCode.UNDECIDED
    text = " ".join(undecided.output.split())
    assert "measure until there are 4 jobs on each side, or 12 earlier jobs" in text
    assert few.run("compare", "latest-1", "latest", "--require", "not-worse").code == ExitCode.OK
    complete = command.run("compare", BEFORE, AGAIN, "--require", "complete")
    assert complete.code == ExitCode.NOT_COMPARABLE
    assert "Not comparable: " in complete.output


def test_json_has_every_figure(command: Command) -> None:
    found = comparison(command.run("compare", BEFORE, SLOWER, "--json"))
    assert (found.word, len(found.a.jobs), len(found.b.jobs)) == ("worse", 4, 4)
    changes = [one for case in found.cases for one in case.changes.values()]
    assert changes
    for one in changes:
        assert one.low is not None and one.high is not None and one.least_effect_ratio is not None
        assert 0.94 < one.low < one.high < 0.96
        assert one.least_effect_ratio < 0.05


def test_sides_are_times_of_one_directory(command: Command) -> None:
    moment = "2026-01-09T00:00:00+00:00"
    found = comparison(command.run("compare", f"..{moment}", f"{moment}..", "--json"))
    assert (found.word, len(found.a.jobs), len(found.b.jobs)) == ("worse", 8, 4)


def test_several_sides_stand_beside_the_first(command: Command) -> None:
    ended = command.run("compare", BEFORE, AGAIN, SLOWER, "--json")
    assert [one["word"] for one in ended.document["comparisons"]] == ["same", "worse"]
    assert ended.code == ExitCode.WORSE


def test_files_of_another_directory(command: Command, tmp_path: Path) -> None:
    """As CI has them: the jobs of the main branch in one folder, those of a change in another."""
    ids = job_ids(command.results)
    for folder, jobs in (("main", ids[:4]), ("change", ids[8:])):
        for job in jobs:
            shutil.copytree(command.results / job, tmp_path / folder / job)
    other = Command(tmp_path / "own")
    other.results.parent.mkdir()
    ended = other.run("compare", str(tmp_path / "main"), str(tmp_path / "change"))
    assert ended.code == ExitCode.WORSE
    assert not other.results.exists()


@each(
    ("arguments", "why"),
    [
        (("latest", "latest"), "is on both sides"),
        (("nothing", "latest"), "there is no job 'nothing'"),
        (("*-9999", "latest"), "no job with a document has an id like"),
        (("latest-1", "latest", "--margin", "0"), "give percent from 0.1 to 50"),
        (("latest-1", "latest", "--margin", "wide"), "give percent from 0.1 to 50"),
        (("latest-1", "latest", "--since", "soon"), "--since 'soon' is not a time"),
        (("latest-1", "latest", "--host", "z"), "they are of the hosts a and the suites full"),
        (("latest",), "Missing argument 'B'"),
        (("latest-1", "latest", "--output", "."), "is a directory"),
        (("latest-1", "latest", "--require", "all"), "not-worse"),
        (("/dev/null", "latest"), "/dev/null is no file; give a result.json, or a directory"),
        (("{baseline}", "latest"), "is a 'hostbench.baseline' and not a 'hostbench.result'; give"),
    ],
)
def test_bad_input_is_one_line(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text('{"kind": "hostbench.baseline", "schema": 1}')
    ended = command.run("compare", *(one.format(baseline=baseline) for one in arguments))
    assert (ended.code, ended.output) == (ExitCode.USAGE, "")
    assert len(ended.errors.splitlines()) == 1
    assert why in ended.errors


def test_an_edited_document_is_refused(command: Command, tmp_path: Path) -> None:
    edited = Command(tmp_path)
    stored_job(edited.results, 0)
    job = stored_job(edited.results, 1)
    text = job.document.read_text()
    job.document.write_text(re.sub(r'"value": (\d)', r'"value": 9\1', text, count=1))
    ended = edited.run("compare", "latest-1", "latest")
    assert ended.code == ExitCode.USAGE
    assert "was changed after it was written" in ended.last_line
    assert len(ended.errors.splitlines()) == 1
    for number in range(2, 9):
        stored_job(edited.results, number)
    history = edited.run("history", "cpu.clock", "--json").document
    assert len(history["points"]) == 8
    (why,) = history["left_out"]
    assert why.startswith(f"1 job left out: {job.document} was changed")
    headlines = edited.run("history", "--json").document
    assert {len(one["points"]) for one in headlines["histories"]} == {8}
    assert headlines["left_out"] == [why]
    shown = " ".join(edited.run("history").output.split())
    assert shown.count("1 job left out: ") == 1 and "was changed after it was written" in shown


def test_where_nothing_can_be_compared_the_remedy_is_named(
    command: Command, tmp_path: Path
) -> None:
    disturbed = Command(tmp_path)
    job = stored_job(disturbed.results, 0)
    without = {"verdict": Verdict.DISTURBED, "delivered_ratio": None}
    document = job.load()
    job.store(
        document.model_copy(
            update={
                "digest": None,
                "cases": tuple(case.model_copy(update=without) for case in document.cases),
            }
        )
    )
    ended = command.run("compare", "latest", str(disturbed.results))
    assert ended.code == ExitCode.NOT_COMPARABLE
    text = " ".join(ended.output.split())
    assert "no job of side B has a figure of it" in text
    assert "Compare jobs that have clean or noisy cases in common; hostbench doctor" in text


def test_a_page_and_markdown(command: Command, tmp_path: Path) -> None:
    """The exit code is the word all the same."""
    page = tmp_path / "page.html"
    ended = command.run("compare", BEFORE, SLOWER, "--format", "html", "--output", str(page))
    assert (ended.code, ended.output, ended.errors) == (ExitCode.WORSE, "", "")
    assert page.read_text().startswith("<!doctype html>")
    ended = command.run("compare", BEFORE, SLOWER, "--format", "markdown")
    assert ended.code == ExitCode.WORSE
    assert "| case | A | B | change | interval | smallest found | word |" in ended.output


@each(
    ("arguments", "why"),
    [
        (("--output", "."), "--output . is a directory; give the name of a file"),
        (("--format", "pdf"), "'text', 'markdown', 'html'"),
        (("--format", "html", "--json"), "leave out --format and --output"),
    ],
)
def test_bad_output_is_one_line(command: Command, arguments: tuple[str, ...], why: str) -> None:
    ended = command.run("compare", BEFORE, AGAIN, *arguments)
    assert ended.code == ExitCode.USAGE
    assert len(ended.errors.splitlines()) == 1
    assert why in ended.errors
