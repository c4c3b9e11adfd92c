"""Which jobs an expression means, and the index of their figures."""

import json
import os
import shutil
import sqlite3
import time
from datetime import datetime
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.decisions.index import INDEX, FigureIndex, read_figures
from hostbench.decisions.sets import JobFilter, compared_sides, earlier_jobs, jobs_of, moment
from hostbench.model.decision import FigureKind
from hostbench.results.ids import job_ids
from tests.each import each
from tests.unit.decided import stored_job

ANY = JobFilter()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six jobs of host a and two of host b."""
    root = tmp_path_factory.mktemp("results")
    for number in range(6):
        stored_job(root, number, 1 + number / 100)
    for number in (6, 7):
        stored_job(root, number, host="b", suite="quick")
    return root


@pytest.fixture
def results(stored: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(stored, tmp_path / "results"))


def numbers(found: list[str]) -> list[int]:
    return [int(job[-4:], 16) for job in found]


@each(
    ("expression", "expected"),
    [
        ("latest", [7]),
        ("latest-2", [5]),
        ("20260103T000000Z-full-0002", [2]),
        ("*-quick-*", [6, 7]),
        ("2026010[12]*", [0, 1]),
        ("latest, *-0000,latest", [0, 7]),
        ("host=b", [6, 7]),
        ("host=b,*-0000", [0, 6, 7]),
        ("..2026-01-02T00:00:00+00:00", [0]),
        ("2026-01-07T00:00:00+00:00..", [6, 7]),
        ("2026-01-03T00:00:00+00:00..2026-01-05T00:00:00+00:00", [2, 3]),
    ],
)
def test_an_expression(stored: Path, expression: str, expected: list[int]) -> None:
    with FigureIndex(stored) as index:
        found = [job.job for job in jobs_of(expression, index, ANY)]
    assert numbers(found) == expected


@each("expression", ["result.json", ".", "../{job}", "{root}"])
def test_files_and_directories(stored: Path, tmp_path: Path, expression: str) -> None:
    job = job_ids(stored)[3]
    os.chdir(stored / job)
    name = expression.format(job=job, root=stored)
    with FigureIndex(tmp_path) as index:
        found = [one.job for one in jobs_of(name, index, ANY)]
    assert found == (job_ids(stored) if "root" in expression else [job])


@each(
    ("expression", "wanted", "why"),
    [
        ("lastest", ANY, "there is no job 'lastest'"),
        ("latest-9", ANY, "8 jobs of the results directory have a document"),
        ("20260103T000000Z-full-0003", ANY, "did you mean '20260104T000000Z-full-0003'"),
        ("*-disk-*", ANY, "no job with a document has an id like"),
        ("latest,,latest", ANY, "has an empty part"),
        ("", ANY, "has an empty part"),
        ("host=c", ANY, "no job with a document is of 'host=c'; "),
        ("2027-01-01..", ANY, "no job with a document is of '2027-01-01..'; "),
        ("soon..", ANY, "'soon..': 'soon' is not a time"),
        ("nowhere/result.json", ANY, "there is no nowhere/result.json"),
        ("*", JobFilter(host="c"), "they are of the hosts a, b and the suites full, quick"),
        ("*", JobFilter(since_unix_s=4e9), "leave none of them"),
    ],
)
def test_an_expression_that_names_nothing(
    stored: Path, expression: str, wanted: JobFilter, why: str
) -> None:
    with FigureIndex(stored) as index, pytest.raises(UsageError) as refused:
        jobs_of(expression, index, wanted)
    assert why in refused.value.message


def test_sides_by_time_have_no_job_in_common(stored: Path) -> None:
    moment = "2026-01-04T00:00:00+00:00"
    with FigureIndex(stored) as index:
        sides = compared_sides((f"..{moment}", f"{moment}.."), index, JobFilter(host="a")).sides
    assert [numbers([job.job for job in side]) for side in sides] == [[0, 1, 2], [3, 4, 5]]


def test_jobs_of_two_hosts_may_have_one_id(tmp_path: Path) -> None:
    names = tuple(str(tmp_path / host) for host in "ab")
    for host in "ab":
        stored_job(tmp_path / host, 0, host=host)
    with FigureIndex(tmp_path) as index:
        a, b = compared_sides((names[0], names[1]), index, ANY).sides
        assert [job.job for job in a] == [job.job for job in b]
        with pytest.raises(UsageError, match="is on both sides"):
            compared_sides((names[0], names[0]), index, ANY)


def test_a_directory_without_jobs_stays_as_it_is(stored: Path, tmp_path: Path) -> None:
    """It may be any that was named by mistake."""
    with FigureIndex(stored) as index, pytest.raises(UsageError) as refused:
        jobs_of(str(tmp_path), index, ANY)
    assert "holds no job with a document; give a results directory" in refused.value.message
    with FigureIndex(tmp_path) as index:
        assert index.ids() == []
    assert list(tmp_path.iterdir()) == []
    assert (stored / INDEX).exists()


def test_a_filter(stored: Path) -> None:
    with FigureIndex(stored) as index:
        until = datetime.fromisoformat("2026-01-03T00:00:00+00:00").timestamp()
        found = jobs_of("*", index, JobFilter(host="a", suite="full", until_unix_s=until))
        assert numbers([job.job for job in found]) == [0, 1]
        others = earlier_jobs([found], index)
        assert numbers([job.job for job in others]) == [2, 3, 4, 5]


@each(
    ("text", "ago_s"),
    [("90m", 5400), ("12h", 43200), ("3d", 259200), ("2w", 1209600)],
)
def test_a_moment(text: str, ago_s: float) -> None:
    assert moment("--since", text) == pytest.approx(time.time() - ago_s, abs=5)


@each("text", ["yesterday", "2026-13-01", "", "3y", "-3d", "9" * 40])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match=r"--since .* is not a time; give a date"):
        moment("--since", text)


def test_the_index_follows_the_jobs(results: Path) -> None:
    with FigureIndex(results) as index:
        before = index.ids()
        assert before == job_ids(results)
        shutil.rmtree(results / before[0])
        new = stored_job(results, 20, 2.0)
        assert index.ids() == [*before[1:], new.id]
    with FigureIndex(results) as index:
        (of_new,) = index.jobs([new.id])
        case = next(case for case in of_new.cases.values() if case.undisturbed)
        values = [figure.undisturbed or 0.0 for figure in index.of_case(case.case).values()]
        assert values[-1] == pytest.approx(values[0] * 2 / 1.01)
        assert [job.job for job in index.heads()] == index.ids()


def test_a_document_that_was_edited_has_no_figures(results: Path) -> None:
    job = job_ids(results)[0]
    path = results / job / "result.json"
    with FigureIndex(results) as index:
        assert jobs_of(job, index, ANY)
        path.write_text(path.read_text().replace('"value": 1', '"value": 2', 1))
        assert job not in [head.job for head in index.heads()]
        with pytest.raises(UsageError, match="was changed after it was written"):
            jobs_of(job, index, ANY)
        # Its host is not known for certain, but its time is in its id.
        with pytest.raises(UsageError, match="was changed after it was written"):
            jobs_of("host=b", index, ANY)
        assert jobs_of("2026-01-03..", index, ANY)
        path.unlink()
        with pytest.raises(UsageError, match="the job has not ended"):
            jobs_of(job, index, ANY)


@each("content", [b"", b"not a database", b"\0" * 5000])
def test_a_damaged_index_is_made_again(results: Path, content: bytes) -> None:
    (results / INDEX).write_bytes(content)
    for _ in range(2):
        with FigureIndex(results) as index:
            assert index.ids() == job_ids(results)
    assert sqlite3.connect(results / INDEX).execute("SELECT count(*) FROM jobs").fetchone() == (8,)


def test_a_directory_that_is_not_there_has_no_jobs(tmp_path: Path) -> None:
    with FigureIndex(tmp_path / "none") as index:
        assert index.ids() == []
        with pytest.raises(UsageError, match="there is no job 'x'"):
            jobs_of("x", index, ANY)
    assert not (tmp_path / "none").exists()


def test_a_job_that_was_indexed_is_read_soon(results: Path) -> None:
    """So that two jobs of six hundred cases are compared in less than two seconds."""
    job = job_ids(results)[0]
    with FigureIndex(results) as index:
        index.ids()
        began_s = time.process_time()
        assert index.jobs([job])
        assert time.process_time() - began_s < 0.2


@each("content", ['{"schema": 2}', '{"schema": 1, "host": 3}', '{"schema": 1}', "[]"])
def test_what_is_no_document(tmp_path: Path, content: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"result\.json"):
        read_figures(path)


def test_figures_are_those_of_the_document(results: Path) -> None:
    job = job_ids(results)[2]
    document = json.loads((results / job / "result.json").read_text())
    figures = read_figures(results / job / "result.json")
    usable = [case for case in document["cases"] if case["verdict"] in ("clean", "noisy")]
    assert usable
    for case in usable:
        for kind in FigureKind:
            value = case[kind]["value"] if case[kind] else None
            assert figures.cases[case["case"]].value(kind) == value
    others = [figures.cases[case["case"]] for case in document["cases"] if case not in usable]
    assert others
    assert all(one.undisturbed is None for one in others)
    assert all(one.why_not or one.delivered is not None for one in others)
    assert figures.facts["kernel"] == document["host"]["kernel"]
