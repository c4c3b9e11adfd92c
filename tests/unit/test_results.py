"""Journal, document, index: what is on disk when something goes wrong."""

import dataclasses
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import BusyError, ResourceError, UsageError
from hostbench.model.result import JobState, JobSummary, Record, StateRecord
from hostbench.plan.estimate import Plan
from hostbench.results.document import assemble, replay, summarise
from hostbench.results.index import INDEX, JobIndex
from hostbench.results.journal import (
    JournalWriter,
    is_being_written,
    read_journal,
    read_with_rest,
)
from hostbench.results.store import (
    JobDirectory,
    ResultsStore,
    needed_bytes,
    summary_of,
)
from hostbench.run.session import begin_journal
from tests.unit.records import bare_trial, done, planned, session

JOBS = 5000


def finished_job(store: ResultsStore, state: JobState = JobState.SUCCEEDED) -> JobDirectory:
    """A job with one case, on disk as a real run leaves it."""
    job = store.create("quick", needed_bytes=0)
    with JournalWriter(job.journal, create=True) as journal:
        records: list[Record] = [session(job=job.id), bare_trial(value=100.0), done()]
        for record in records:
            journal.append(record)
        progress = replay(records)
        progress.ended = StateRecord(
            time_unix_s=1.8e9, state=state, summary=summarise(progress, state, 1.8e9)
        )
        job.store(assemble(progress))
        journal.append(progress.ended)
    return job


def unfinished_job(store: ResultsStore) -> JobDirectory:
    job = store.create("quick", needed_bytes=0)
    with JournalWriter(job.journal, create=True) as journal:
        journal.append(session(job=job.id))
        journal.append(bare_trial(value=100.0))
    return job


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results")


# ---- journal ----


def test_the_journal_says_what_was_written(store: ResultsStore) -> None:
    job = finished_job(store)
    kinds = [record.record for record in read_journal(job.journal)]
    assert kinds == ["session", "trial", "case", "state"]


def test_a_torn_last_line_never_counted(store: ResultsStore) -> None:
    job = unfinished_job(store)
    whole = job.journal.read_bytes()
    for torn in (b"{", b'{"record":"trial","ca', whole.splitlines()[-1]):
        job.journal.write_bytes(whole + torn)
        assert len(read_journal(job.journal)) == 2
    with JournalWriter(job.journal, create=False) as journal:
        journal.append(done())
    assert [record.record for record in read_journal(job.journal)] == ["session", "trial", "case"]


def test_a_power_cut_at_any_moment_loses_at_most_the_record_that_was_being_written(
    store: ResultsStore,
) -> None:
    job = finished_job(store)
    whole = job.journal.read_bytes()
    ends = [match.end() for match in re.finditer(rb"\n", whole)]
    records = read_journal(job.journal)
    first, page = ends[0], 4096
    job.unstore()
    for cut in sorted({first, *ends, *range(first, len(whole), 97)}):
        kept = sum(end <= cut for end in ends)
        # The size may be there before the content; and the second page before the first.
        next_end = min((end for end in ends if end > cut), default=cut)
        zeros = bytes(next_end - cut)
        for content in {
            whole[:cut],
            whole[:cut] + zeros,
            whole[:cut] + zeros[:page] + whole[cut + page : next_end],
        }:
            job.journal.write_bytes(content)
            found, rest = read_with_rest(job.journal)
            assert found == records[:kept], cut
            assert rest == len(content) - ends[kept - 1], cut
            reason = job.load().reason
            if rest:
                assert reason is not None and f"{rest:,} byte" in reason, reason
    # The next session cuts it off.
    job.journal.write_bytes(whole[: ends[1]] + bytes(5000))
    with JournalWriter(job.journal, create=False) as journal:
        assert journal.cut_bytes == 5000
        journal.append(done())
    assert [one.record for one in read_journal(job.journal)] == ["session", "trial", "case"]


def test_a_damaged_line_in_the_middle_is_named(store: ResultsStore) -> None:
    job = finished_job(store)
    lines = job.journal.read_bytes().splitlines(keepends=True)
    lines[1] = b"garbage\n"
    job.journal.write_bytes(b"".join(lines))
    with pytest.raises(UsageError, match=r"journal\.ndjson:2: not a record.*start a new job"):
        read_journal(job.journal)


def test_a_job_begins_where_a_killed_one_left_no_record(store: ResultsStore) -> None:
    job_id = "20261121T000000Z-quick-0000"
    job = store.create("quick", 0, job_id)
    JournalWriter(job.journal, create=True).close()
    with job.journal.open("ab") as journal:
        journal.write(b'{"record":"sess')
    assert not job.has_begun
    with begin_journal(store.create("quick", 0, job_id), session(job=job_id)):
        assert len(read_journal(job.journal)) == 1
    assert JobDirectory(job.path).has_begun


def test_a_second_begin_of_a_job_spoils_nothing(store: ResultsStore) -> None:
    job = unfinished_job(store)
    before = read_journal(job.journal)
    with pytest.raises(ResourceError):
        begin_journal(store.create("quick", 0, job.id), session(job=job.id))
    with JournalWriter(job.journal, create=False), pytest.raises(BusyError):
        begin_journal(store.create("quick", 0, job.id), session(job=job.id))
    assert read_journal(job.journal) == before


def test_an_empty_journal(store: ResultsStore) -> None:
    job = unfinished_job(store)
    job.journal.write_bytes(b"")
    with pytest.raises(UsageError, match=r"is empty.*start a new one"):
        read_journal(job.journal)


def test_a_job_is_running_as_long_as_its_journal_is_open(store: ResultsStore) -> None:
    job = unfinished_job(store)
    assert not is_being_written(job.journal)
    with JournalWriter(job.journal, create=False):
        assert is_being_written(job.journal)
        assert job.load().job.state is JobState.RUNNING
        with pytest.raises(BusyError, match=f"{job.id} is running"):
            JournalWriter(job.journal, create=False)
    assert job.load().job.state is JobState.INTERRUPTED


def test_a_full_disk_leaves_no_half_record(
    store: ResultsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = unfinished_job(store)
    before = job.journal.read_bytes()

    def half_written(descriptor: int, text: bytes, offset: int) -> int:
        if os.fstat(descriptor).st_size > len(before):
            raise OSError(28, "No space left on device")
        return real_pwrite(descriptor, text[:10], offset)

    real_pwrite = os.pwrite
    with JournalWriter(job.journal, create=False) as journal:
        monkeypatch.setattr(os, "pwrite", half_written)
        with pytest.raises(ResourceError, match=r"No space left.*--results"):
            journal.append(done())
    assert job.journal.read_bytes() == before


# ---- document ----


@pytest.mark.parametrize("keep", [0, 1, 500, -1, -2])
def test_a_document_cut_short(store: ResultsStore, keep: int) -> None:
    job = finished_job(store)
    content = job.document.read_bytes().rstrip()
    job.document.write_bytes(content[:keep])
    with pytest.raises(UsageError) as caught:
        job.load()
    assert str(job.document) in caught.value.message
    assert "cut short" in caught.value.message
    assert f"hostbench run --resume {job.id}" in caught.value.message


@pytest.mark.parametrize("schema", ["0", "null", '"1"', "true", "1.5"])
def test_a_document_of_another_schema_version(store: ResultsStore, schema: str) -> None:
    job = finished_job(store)
    text = job.document.read_text().replace('"schema": 2', f'"schema": {schema}', 1)
    job.document.write_text(text)
    with pytest.raises(UsageError, match=r"has schema .*, this hostbench reads 1 and 2; build it"):
        job.load()


@pytest.mark.parametrize("schema", [3, 99])
def test_a_document_of_a_future_schema(store: ResultsStore, schema: int) -> None:
    """Also one with fields that nothing here knows."""
    job = finished_job(store)
    job.document.write_text(json.dumps({"schema": schema, "kind": "hostbench.result", "new": {}}))
    with pytest.raises(UsageError) as caught:
        job.load()
    assert caught.value.message == (
        f"{job.document} has schema {schema}, this hostbench reads 1 and 2; read it with a newer "
        "hostbench"
    )
    assert JobIndex(store.root).summaries()[-1].id == job.id


def test_a_document_with_something_unknown_in_it(store: ResultsStore) -> None:
    job = finished_job(store)
    raw = json.loads(job.document.read_text())
    raw["schema"], raw["kindd"] = 1, raw.pop("kind")
    job.document.write_text(json.dumps(raw))
    with pytest.raises(UsageError, match=r"not a result document: kind.*--resume"):
        job.load()


def test_a_document_appears_whole_or_not_at_all(
    store: ResultsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = finished_job(store)
    document = job.load()
    job.unstore()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResourceError, match="No space left"):
        job.store(document)
    assert [path.name for path in job.path.iterdir()] == ["journal.ndjson"]


def test_a_document_whose_table_has_no_room_is_taken_back(
    store: ResultsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = finished_job(store)
    document = job.load()
    before = sorted(job.path.iterdir())

    def full(path: Path, content: bytes) -> None:
        if path.suffix == ".csv":
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("hostbench.results.store.write_whole", full)
    with pytest.raises(ResourceError, match=r"result\.csv: No space left"):
        job.store(document)
    assert sorted(job.path.iterdir()) == before
    job.unstore()
    with pytest.raises(ResourceError, match=r"result\.csv: No space left"):
        job.store(document)
    assert [path.name for path in job.path.iterdir()] == ["journal.ndjson"]


# ---- store ----


def test_ids_are_sortable_and_unique(store: ResultsStore) -> None:
    ids = [store.create("quick", 0).id for _ in range(20)]
    assert len(set(ids)) == 20
    assert store.ids() == sorted(ids)
    assert store.job("latest").id == store.ids()[-1]


@pytest.mark.parametrize("bad", ["nosuch", "", "..", "../x", "20261120T174501Z-quick-3f2"])
def test_unknown_job(store: ResultsStore, bad: str) -> None:
    finished_job(store)
    with pytest.raises(UsageError, match=r"there is no job.*hostbench list"):
        store.job(bad)


def test_no_job_at_all(store: ResultsStore) -> None:
    with pytest.raises(UsageError, match="there is no job 'latest'"):
        store.job("latest")


def test_a_results_directory_without_room(store: ResultsStore) -> None:
    with pytest.raises(ResourceError, match=r"bytes left.*needs? \d+|may need \d+"):
        store.create("quick", 1 << 60)
    assert store.ids() == []


def test_a_results_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match=r"Not a directory.*--results or HOSTBENCH_RESULTS"):
        ResultsStore(tmp_path / "file" / "results").create("quick", 0)


def test_the_need_grows_with_the_samples() -> None:
    def need(**params: Any) -> int:
        suite = session().suite
        return needed_bytes(Plan(suite=suite, cases=(planned(params=params),)))

    short = need(duration_s=1.0, sample_interval_s=1.0)
    long = need(duration_s=600.0, sample_interval_s=1.0)
    assert long > short + 5 * 599 * 500
    assert need(work=5) < short


# ---- index ----


def test_the_index_is_built_when_missing_and_when_stale(store: ResultsStore) -> None:
    first = finished_job(store)
    assert [one.id for one in JobIndex(store.root).summaries()] == [first.id]
    assert (store.root / INDEX).exists()
    second = unfinished_job(store)
    found = {one.id: one.state for one in JobIndex(store.root).summaries()}
    assert found == {first.id: JobState.SUCCEEDED, second.id: JobState.INTERRUPTED}
    shutil.rmtree(first.path)
    assert [one.id for one in JobIndex(store.root).summaries()] == [second.id]


def test_a_job_that_was_running_is_looked_at_again(store: ResultsStore) -> None:
    job = finished_job(store)
    running = summary_of(job)
    assert running is not None
    JobIndex(store.root).note(dataclasses.replace(running, state=JobState.RUNNING))
    assert [one.state for one in JobIndex(store.root).summaries()] == [JobState.SUCCEEDED]


def test_a_damaged_index_costs_nothing(store: ResultsStore) -> None:
    job = finished_job(store)
    JobIndex(store.root).summaries()
    whole = json.loads((store.root / INDEX).read_bytes())
    changes = [{"state": "x"}, {"verdicts": []}, {"verdicts": {"x": 1}}, {"cases": float("inf")},
               {"created_unix_s": "today"}, {"finished_unix_s": 10**400}]  # fmt: skip
    changed = [json.dumps(whole | one | {"hostname": "damaged"}).encode() for one in changes]
    lines = [b"\xff", b"{", b"[]", b'{"id": 1}', b"[" * 100_000, *changed]
    (store.root / INDEX).write_bytes(b"".join(line + b"\n" for line in lines))
    (found,) = JobIndex(store.root).summaries()
    assert found == summary_of(job)


def test_an_outgrown_index_is_written_anew(store: ResultsStore) -> None:
    job = finished_job(store)
    summary = summary_of(job)
    assert summary is not None
    for _ in range(200):
        JobIndex(store.root).note(summary)
    JobIndex(store.root).summaries()
    assert len((store.root / INDEX).read_bytes().splitlines()) == 1


def test_a_job_directory_without_anything_is_left_out(store: ResultsStore) -> None:
    store.create("quick", 0)
    assert JobIndex(store.root).summaries() == []


@pytest.mark.timeout(60)
def test_listing_5000_jobs_takes_less_than_a_second(store: ResultsStore) -> None:
    template = finished_job(store)
    summary = summary_of(template)
    assert summary is not None
    last_line = template.journal.read_bytes().splitlines()[-1]
    for number in range(1, JOBS):
        job_id = f"20260101T{number:06d}Z-quick-{number:04x}"
        (store.root / job_id).mkdir()
        line = last_line.replace(template.id.encode(), job_id.encode())
        (store.root / job_id / "journal.ndjson").write_bytes(line + b"\n")
    built = _timed(store)
    assert built < 20.0
    # The quickest of some: other work may hold up one of them.
    assert min(_timed(store) for _ in range(5)) < 1.0


def _timed(store: ResultsStore) -> float:
    began = time.perf_counter()
    summaries: list[JobSummary] = JobIndex(store.root).summaries()
    assert len(summaries) == JOBS
    return time.perf_counter() - began
