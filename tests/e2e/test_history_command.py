"""hostbench history: what it prints, its JSON, and what it refuses."""

import random
import re
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.model.decision import History, HostHistory
from hostbench.model.result import ResultDocument
from tests.each import each
from tests.faults.command import Command
from tests.unit.decided import stored_job

CASE = "cpu.fma fp64 avx2 1 thread"
BEFORE, AFTER = 10, 9


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Jobs of a host that became slower by 7 %."""
    command = Command(tmp_path_factory.mktemp("history"))
    rng = random.Random(2)
    for number in range(BEFORE + AFTER):
        factor = (1.0 if number < BEFORE else 0.93) * (1 + rng.gauss(0, 0.004))
        stored_job(command.results, number, factor)
    return command


def test_a_change_has_a_date_a_size_and_an_interval(command: Command) -> None:
    ended = command.run("history", CASE)
    assert (ended.code, ended.errors) == (ExitCode.OK, "")
    lines = ended.output.splitlines()
    assert lines[0].startswith(f"{CASE} on a, 19 jobs, undisturbed: changed once.")
    assert len(lines[1]) == BEFORE + AFTER and set(lines[1]) <= set("▁▂▃▄▅▆▇█")
    assert lines[2].index("^") in range(BEFORE - 1, BEFORE + 2)
    assert "worse −" in ended.output
    assert max(map(len, lines)) <= 80


def test_json_has_all_of_it(command: Command) -> None:
    found = History.model_validate(command.run("history", CASE, "--json").document, strict=False)
    assert (found.word, len(found.points)) == ("worse", BEFORE + AFTER)
    (change,) = found.changes
    assert change.low < 0.93 < change.high < 1
    assert change.least_effect_ratio < 0.05


def test_a_terminal_without_bars_has_other_characters(command: Command, tmp_path: Path) -> None:
    ascii_only = Command(tmp_path, PYTHONIOENCODING="ascii")
    ascii_only.results.symlink_to(command.results)
    line = ascii_only.run("history", CASE).output.splitlines()[1]
    assert len(line) == BEFORE + AFTER and set(line) <= set("_.-:=+*#")


def test_few_jobs_are_undecided(command: Command) -> None:
    ended = command.run("history", CASE, "--until", "2026-01-05")
    assert ended.code == ExitCode.OK
    assert "undecided: finding a change needs 8 jobs" in " ".join(ended.output.split())


def test_hosts_are_not_mixed(tmp_path: Path) -> None:
    two = Command(tmp_path)
    for number, host in enumerate(("a", "b")):
        stored_job(two.results, number, host=host)
    ended = two.run("history", CASE)
    assert ended.code == ExitCode.USAGE
    assert ended.last_line.endswith("on 2 hosts; choose one with --host, such as a or b")
    assert "on b, 1 job" in two.run("history", CASE, "--host", "b").output


@each(
    ("arguments", "why"),
    [
        (("cpu.fma",), "may be any of 17 cases; give one: 'cpu.fma fp32 avx2 1 thread'"),
        (("cpu.fam",), "no stored job has a case 'cpu.fam'; did you mean 'cpu.fma'?"),
        ((CASE, "--host", "z"), "they are of the hosts a and the suites full"),
        ((CASE, "--since", "soon"), "--since 'soon' is not a time"),
        ((CASE, "--figure", "best"), "undisturbed"),
        (("--format", "html"), "--format html draws one case; name it"),
        (("--host", "z"), "leave no stored job; jobs are of the hosts: a"),
    ],
)
def test_bad_input_is_one_line(command: Command, arguments: tuple[str, ...], why: str) -> None:
    ended = command.run("history", *arguments)
    assert (ended.code, ended.output) == (ExitCode.USAGE, "")
    assert len(ended.errors.splitlines()) == 1
    assert why in ended.errors


def test_no_jobs(tmp_path: Path) -> None:
    for arguments in ((CASE,), ()):
        ended = Command(tmp_path).run("history", *arguments)
        assert ended.code == ExitCode.USAGE
        assert "measure some with hostbench run" in ended.last_line


def test_jobs_that_were_interrupted(tmp_path: Path) -> None:
    """Alone, there is something to finish. After others, a case keeps its title, its unit and its
    direction, which are known only once it was measured."""
    there = Command(tmp_path)
    interrupted = stored_job(there.results, 2)
    whole = interrupted.document.read_text()
    interrupted.document.unlink()
    ended = there.run("history", CASE)
    assert ended.code == ExitCode.USAGE
    assert (
        " has 1 job, and none has ended; finish" in ended.last_line
        and interrupted.id in ended.last_line
    )
    for number in range(2):
        stored_job(there.results, number)
    document = ResultDocument.model_validate_json(whole)
    cases = tuple(
        case.model_copy(update={"verdict": None, "label": "1 thread", "metrics": {}})
        for case in document.cases
    )
    interrupted.store(document.model_copy(update={"cases": cases}))
    history = there.run("history", CASE, "--json").document
    assert (history["title"], len(history["points"])) == (CASE, 2)
    assert history["unit"] == "operation/s"
    assert history["left_out"] == ["1 job left out: the job did not finish the case"]


def test_documents_that_are_all_refused_are_named(tmp_path: Path) -> None:
    """The first of them with what is wrong and the remedy, and how many more there are."""
    refused = Command(tmp_path)
    documents = [stored_job(refused.results, number).document for number in range(5)]
    texts = [document.read_text() for document in documents]
    documents[0].write_text(texts[0][:1000])
    documents[1].write_text(texts[1].replace('"schema": 2', '"schema": 99', 1))
    for document, text in zip(documents[2:], texts[2:], strict=True):
        document.write_text(re.sub(r'"value": (\d)', r'"value": 9\1', text, count=1))
    for arguments in ((CASE,), (), (CASE, "--host", "a")):
        ended = refused.run("history", *arguments)
        assert (ended.code, ended.output) == (ExitCode.USAGE, "")
        (line,) = ended.errors.splitlines()
        assert "no stored job has a document that can be used, 5 refused: " in line
        assert f"{documents[0]} is cut short or damaged" in line
        assert "take the file that hostbench wrote, or measure again" in line
        assert f"{documents[1]} has schema 99, this hostbench reads 1 and 2; read it with" in line
        assert f"{documents[2]} was changed after it was written: its digest is " in line
        assert line.endswith("; and 2 more documents")
        assert str(documents[3]) not in line
    message = refused.run("history", CASE, "--json").document["error"]["message"]
    assert str(documents[2]) in message and message.endswith("; and 2 more documents")
    documents[4].write_text(texts[4])
    ended = refused.run("history", CASE)
    assert ended.code == ExitCode.OK
    printed = " ".join(ended.output.split())
    assert printed.count("1 job left out: ") == 4 and "has schema 99" in printed


def test_without_a_case_all_headline_cases_are_shown(command: Command) -> None:
    ended = command.run("history")
    assert (ended.code, ended.errors) == (ExitCode.OK, "")
    text = " ".join(ended.output.split())
    # One was disturbed in every job: what was delivered of it is there all the same.
    assert text.count(" on a, 19 jobs, undisturbed: changed once.") == 11
    assert text.count(" on a, 19 jobs, delivered: changed once.") == 1
    assert "at most 5 % of such answers, of 12 histories together, show a change" in text
    assert text.count("show a change") == 1
    found = HostHistory.model_validate(command.run("history", "--json").document, strict=False)
    assert len(found.histories) == 12 and {one.word for one in found.histories} == {"worse"}


def test_a_page_in_a_file(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = command.run("history", CASE, "--format", "html", "--output", str(page))
    assert (ended.code, ended.output, ended.errors) == (ExitCode.OK, "", "")
    assert page.read_text().startswith("<!doctype html>")
    refused = command.run("history", CASE, "--format", "html", "--json")
    assert refused.code == ExitCode.USAGE
    assert "leave out --format and --output" in refused.last_line
