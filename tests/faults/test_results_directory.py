"""A results directory that cannot take a result is reported before the first trial, or when it
fills up; nothing half-written is left that looks final."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.faults.command import Command, Ended

RUN = (
    "run", "--workload", "cpu.clock", "--param", "duration_s=0.05", "--param", "warmup_s=0",
    "--param", "threads=1", "--idle-policy", "force",
)  # fmt: skip
REMEDY = "--results or HOSTBENCH_RESULTS"


def refused(command: Command, ended: Ended, reason: str) -> None:
    assert ended.code == ExitCode.RESOURCE
    assert ended.output == ""
    assert reason in ended.last_line and REMEDY in ended.last_line
    assert str(command.results) in ended.last_line
    assert "trial" not in ended.errors.replace("trials", "")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a tmpfs with the given options where the results go."""
    results = tmp_path / "results"

    def mount(options: str) -> Path:
        results.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", results], capture_output=True
        )
        if done.returncode != 0:
            pytest.skip("mounting a tmpfs needs root and a kernel that lets it")
        return results

    yield mount
    subprocess.run(["umount", results], capture_output=True)


def test_read_only(command: Command, mounted: Callable[[str], Path]) -> None:
    mounted("ro,size=1m")
    refused(command, command.run(*RUN), "Read-only file system")


def test_full(command: Command, mounted: Callable[[str], Path]) -> None:
    results = mounted("size=64k")
    refused(command, command.run(*RUN), "bytes left")
    assert list(results.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_permission(command: Command) -> None:
    command.results.mkdir(mode=0o555)
    refused(command, command.run(*RUN), "Permission denied")


def test_below_a_file(command: Command) -> None:
    command.results.touch()
    refused(command, command.run(*RUN), "exists")
    assert command.run("list").code == ExitCode.USAGE


@pytest.mark.parametrize("size_bytes", [0, 1000])
def test_no_room_for_the_first_record(command: Command, size_bytes: int) -> None:
    ended = command.run(*RUN, preexec_fn=_limit_of_files(size_bytes))
    refused(command, ended, "File too large")
    assert command.jobs() == []


@pytest.fixture(scope="module")
def journal_and_document(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """What the same job writes where there is room: how much that is depends on the host."""
    free = Command(tmp_path_factory.mktemp("free"))
    assert free.run(*RUN, "--trials", "5").code == ExitCode.OK
    (job,) = free.jobs()
    return (job / "journal.ndjson").read_bytes(), (job / "result.json").read_bytes()


def test_filling_up_in_the_middle_of_a_job(
    command: Command, journal_and_document: tuple[bytes, bytes]
) -> None:
    journal, _ = journal_and_document
    head = journal.index(b"\n") + 1
    half = head + (len(journal) - head) // 2
    ended = command.run(*RUN, "--trials", "5", preexec_fn=_limit_of_files(half))
    assert ended.code == ExitCode.RESOURCE
    assert "File too large" in ended.last_line and REMEDY in ended.last_line
    (job,) = command.jobs()
    assert f"hostbench run --resume {job.name}" in ended.last_line
    assert command.documents() == []
    assert head < len((job / "journal.ndjson").read_bytes()) <= half
    assert (job / "journal.ndjson").read_bytes().endswith(b"}\n")
    assert command.run("run", "--resume", job.name).code == ExitCode.OK


def test_filling_up_with_the_document(
    command: Command, journal_and_document: tuple[bytes, bytes]
) -> None:
    """The journal fits and the larger document does not."""
    journal, document = journal_and_document
    between = (len(journal) + len(document)) // 2
    ended = command.run(*RUN, "--trials", "5", preexec_fn=_limit_of_files(between))
    assert ended.code == ExitCode.RESOURCE
    assert "result.json" in ended.last_line
    assert command.documents() == []
    (job,) = command.jobs()
    assert [path.name for path in job.iterdir()] == ["journal.ndjson"]


def _limit_of_files(size_bytes: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))

    return limit
