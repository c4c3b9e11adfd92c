"""The commands that decide, about jobs of an orchestrator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.client.real_stack import HOST, Stack
from tests.each import each

JOBS = 2


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own: jobs of other tests would have other cases of the same title."""
    with Stack(tmp_path_factory.mktemp("stack")).running() as running:
        yield running


@pytest.fixture(scope="module")
def jobs(stack: Stack) -> list[str]:
    """The ids of two jobs of one case."""
    return [stack.done() for _ in range(JOBS)]


def test_a_history_is_that_of_the_orchestrators_jobs(stack: Stack, jobs: list[str]) -> None:
    ended = stack.command.run("history", "cpu.clock 1 thread", "--stack", "--json")
    assert ended.code == ExitCode.OK, ended.errors
    calls = stack.orchestrator.client
    query = {"case": "cpu.clock 1 thread"}
    (answer,) = calls.get(f"/hosts/{HOST}/history", params=query).json()["histories"]
    assert ended.document == answer and answer["host"] == HOST
    # A busy machine disturbs some, which are counted all the same.
    of_jobs = [point["job"] for point in answer["points"]]
    assert set(jobs) <= set(of_jobs) or answer["left_out"]
    shown = stack.command.run("history", "cpu.clock 1 thread", "--url", stack.orchestrator.url)
    assert f"cpu.clock 1 thread on {HOST}, " in shown.output and "undecided" in shown.output
    # No job has a case of the workloads that say most of a host.
    none = stack.command.run("history", "--stack", "--suite", "ad-hoc")
    assert none.output.strip() == f"No job of {HOST} has a headline case; name a case."


def test_a_comparison_is_the_orchestrators(stack: Stack, jobs: list[str]) -> None:
    ended = stack.command.run("compare", *jobs, "--stack", "--json")
    (one,) = ended.document["comparisons"]
    query = dict(zip("ab", jobs, strict=True))
    assert one == stack.orchestrator.client.get("/compare", params=query).json()
    assert [one["a"]["jobs"], one["b"]["jobs"]] == [[job] for job in jobs]
    codes = {
        "worse": ExitCode.WORSE,
        "undecided": ExitCode.UNDECIDED,
        "not comparable": ExitCode.NOT_COMPARABLE,
    }
    assert ended.code == codes.get(one["word"], ExitCode.OK), ended.errors


def test_baselines_are_those_that_the_orchestrator_finds(stack: Stack, jobs: list[str]) -> None:
    ended = stack.command.run("baseline", "list", "--stack", "--json")
    assert ended.code == ExitCode.OK
    assert ended.document == stack.orchestrator.client.get("/baselines").json()
    for job in ("latest", jobs[0]):
        checked = stack.command.run("baseline", "check", job, "--stack")
        assert checked.code == ExitCode.UNDECIDED
        assert checked.output.startswith("no reference: ")


@each(
    ("arguments", "why"),
    [
        (("history", "cpu.clok", "--stack"), "did you mean 'cpu.clock"),
        (("history", "--stack", "--host", "absent"), "no stored job is of a host 'absent'"),
        (("history", "--stack", "--host", "a/../b"), "--host 'a/../b' is not the name of a host"),
        (("history", "--stack", "--results", "."), "--results applies to local files"),
        (("compare", "latest", "latest", "--stack"), "is on both sides"),
        (("compare", "./a.json", "latest", "--stack"), "there is no job './a.json'"),
        (("baseline", "check", "nope", "--stack"), "'nope' is not the id of a job"),
        (("baseline", "check", "latest", "--stack", "--baseline", "x"), "--baseline applies to"),
    ],
)
def test_bad_requests_are_one_line(
    stack: Stack, jobs: list[str], arguments: tuple[str, ...], why: str
) -> None:
    assert jobs
    ended = stack.command.run(*arguments)
    assert (ended.code, ended.output) == (ExitCode.USAGE, "")
    assert len(ended.errors.splitlines()) == 1
    assert why in ended.errors


def test_an_orchestrator_is_called_only_where_one_is_wanted(
    stack: Stack, jobs: list[str], tmp_path: Path
) -> None:
    """The environment of these commands names one."""
    assert jobs
    ended = stack.command.run("history", "cpu.clock 1 thread", "--results", str(tmp_path))
    assert ended.code == ExitCode.USAGE
    assert "measure some with hostbench run" in ended.errors
