"""The power fails at any moment of a job that fails, is taken up again, and ends: what the user
was shown is on disk, and what is lost is named."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.model.result import JobState, SessionRecord, TrialRecord
from hostbench.results.index import JobIndex
from hostbench.results.journal import read_journal
from hostbench.results.store import JobDirectory, ResultsStore
from tests.faults.command import Command, end_of, scripted_programs
from tests.faults.recorded_volume import STRACE, Call, Volume, calls_of

RUN = ("run", "--workload", "cpu.clock", "--trials", "2", "--idle-policy", "force")
# What the user is shown of a job, and of a trial.
JOB, TRIAL = re.compile(rb"^job \S+ in "), re.compile(rb"\] .* #\d+: ")
RESULT = re.compile(rb"^result: ")
# How its sessions end.
STATES = (JobState.FAILED, JobState.SUCCEEDED)
LOST = "are no whole record"


def recorded(command: Command, trace: Path) -> list[Call]:
    """The calls of a run that fails and of its resumption."""
    strace = (*STRACE, "-o", str(trace))
    failed = end_of(command.start(*RUN, prefix=strace))
    if "ptrace" in failed.errors.lower():
        pytest.skip(f"strace may not trace here: {failed.errors}")
    assert failed.code == ExitCode.RESOURCE, failed.errors
    command.environment["SCRIPT"] = ""
    resumed = end_of(command.start("run", "--resume", "latest", prefix=strace))
    assert resumed.code == ExitCode.OK, resumed.errors
    return list(calls_of(trace))


class Shown:
    """What the user has been shown so far."""

    def __init__(self) -> None:
        self.job, self.trials, self.results = False, 0, 0

    def take(self, message: bytes) -> None:
        self.job |= JOB.search(message) is not None
        self.trials += TRIAL.search(message) is not None
        self.results += RESULT.search(message) is not None


def put_down(content: dict[str, bytes | None], root: str, results: Path) -> None:
    """Make a results directory with this content."""
    shutil.rmtree(results, ignore_errors=True)
    for path in sorted(content):
        file, text = results / Path(path).relative_to(root), content[path]
        if text is None:
            file.mkdir()
        else:
            file.write_bytes(text)


def check(results: Path, shown: Shown) -> JobDirectory | None:
    """Everything that was shown is there; returns the job."""
    store = ResultsStore(results)
    begun = [job for job in map(store.job, store.ids()) if job.has_begun]
    if not begun:
        assert not shown.job
        return None
    (job,) = begun
    records, document = read_journal(job.journal), job.load()
    assert sum(isinstance(record, TrialRecord) for record in records) >= shown.trials
    sessions = sum(isinstance(record, SessionRecord) for record in records)
    progress = job.progress()
    if progress.ended is None and job.document.exists():
        # It was stored just before the end was recorded, not by an earlier session.
        assert document.job.state is STATES[sessions - 1]
    if document.job.state is JobState.INTERRUPTED and progress.cut is not None:
        assert document.reason == progress.cut
    if shown.results >= sessions:
        assert document.job.state is STATES[sessions - 1]
        assert [one.state for one in JobIndex(results).summaries()] == [document.job.state]
    return job


def power_cuts(
    calls: list[Call], root: str
) -> Iterator[tuple[str, dict[str, bytes | None], Shown]]:
    """What may be there after each call, with what had been shown by then."""
    volume, shown = Volume(root), Shown()
    for number, call in enumerate(calls):
        changed = volume.apply(call)
        if call.message:
            shown.take(call.message)
        elif not changed:
            continue
        for name, content in volume.after_a_power_cut():
            yield f"after call {number}, {call.name} {call.paths}: {name}", content, shown


@pytest.mark.timeout(400)
def test_a_power_cut_at_any_moment(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    command = Command(tmp_path, scripted_programs(tmp_path), SCRIPT="no_memory")
    root = str(command.results)
    calls = recorded(command, tmp_path / "trace")
    results = tmp_path / "after"
    to_resume: dict[int, dict[str, bytes | None]] = {}
    checked: set[int] = set()
    for name, content, shown in power_cuts(calls, root):
        same = hash((tuple(content.items()), tuple(vars(shown).items())))
        if same in checked:
            continue
        checked.add(same)
        put_down(content, root, results)
        try:
            job = check(results, shown)
        except Exception as error:
            error.add_note(name)
            raise
        if job is not None and job.progress().cut is not None:
            to_resume[len(read_journal(job.journal))] = content
    assert len(checked) > 100
    # The first, the last, and one between them, by the length of the journal.
    assert len(to_resume) > 3
    chosen = sorted(to_resume)
    for length in (chosen[0], chosen[len(chosen) // 2], chosen[-1]):
        put_down(to_resume[length], root, command.results)
        resumed = command.run("run", "--resume", "latest")
        assert resumed.code == ExitCode.OK, resumed.errors
        assert LOST in resumed.errors
