"""Results of hostbench before documents had a digest, and before journals held figures.

fixtures/schema1/ has a finished job with a case or two of every subsystem but GPUs (with peers, a
skipped one and a naive one) and an interrupted one, and the CSV and the points (as line protocol)
that the hostbench of that time made of both.
"""

import gzip
import io
import json
from pathlib import Path

import pytest

from hostbench.cli.render import show_result
from hostbench.model.result import (
    JobState,
    Record,
    ResultDocument,
    SessionRecord,
    StateRecord,
    Verdict,
)
from hostbench.page.output import Format, rendered
from hostbench.results.csv import case_table
from hostbench.results.document import assemble, replay
from hostbench.results.journal import JournalWriter, read_journal
from hostbench.results.sealed import UNSEALED
from hostbench.results.store import JobDirectory, JobIndex, ResultsStore
from hostbench.run.resume import resumption
from orchestrator.influx.points import document_points, line

FIXTURES = Path(__file__).parent / "fixtures" / "schema1"
FINISHED, INTERRUPTED = "20261123T002654Z-old-178d", "20261123T002826Z-old-18a6"
BOTH = pytest.mark.parametrize("job_id", [FINISHED, INTERRUPTED])


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    for path in FIXTURES.glob("*/*.gz"):
        if path.name.startswith(("journal", "result.json")):
            target = tmp_path / path.parent.name / path.stem
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(gzip.decompress(path.read_bytes()))
    return ResultsStore(tmp_path)


def was(job_id: str, name: str) -> str:
    """What the hostbench of that time made of a job."""
    return gzip.decompress((FIXTURES / job_id / f"{name}.gz").read_bytes()).decode()


def points(document: ResultDocument) -> list[str]:
    return [line(point) for point in document_points(document)]


@BOTH
def test_csv_and_points_are_what_they_were(store: ResultsStore, job_id: str) -> None:
    document = store.job(job_id).load()
    assert case_table(document) == was(job_id, "result.csv")
    assert points(document) == was(job_id, "points.txt").splitlines()


def test_the_list(store: ResultsStore) -> None:
    found = {one.id: (one.state, dict(one.verdicts)) for one in JobIndex(store).summaries()}
    disturbed, skipped = Verdict.DISTURBED, Verdict.SKIPPED
    assert found == {
        FINISHED: (JobState.SUCCEEDED, {disturbed: 5, skipped: 2}),
        INTERRUPTED: (JobState.INTERRUPTED, {disturbed: 2, skipped: 1}),
    }


def test_the_table_says_that_there_is_no_digest(store: ResultsStore) -> None:
    text = io.StringIO()
    show_result(store.job(FINISHED).load(), text)
    assert UNSEALED in " ".join(text.getvalue().split())


@pytest.mark.parametrize("form", [Format.HTML, Format.MARKDOWN])
@BOTH
def test_the_report(store: ResultsStore, job_id: str, form: Format) -> None:
    text = rendered(store.job(job_id), form)
    for word in ("naive", "likwid-bench", "neon needs an aarch64 CPU"):
        assert word in text, word
    # A document that is made from its journal now has a digest.
    assert (UNSEALED in text) is (job_id == FINISHED)


def test_a_document_that_is_built_again_is_of_the_present_schema(store: ResultsStore) -> None:
    job = store.job(FINISHED)
    old = job.load()
    assert (old.schema_version, old.digest) == (1, None)
    job.store(assemble(job.progress()))
    new = job.load()
    assert (new.schema_version, new.digest and new.digest[:7]) == (2, "sha256:")
    update = {"schema_version": 1, "digest": None}
    assert json.loads(new.model_copy(update=update).model_dump_json()) == json.loads(
        old.model_dump_json()
    )


def test_an_old_journal_is_resumed(store: ResultsStore) -> None:
    """Its finished cases are kept; those of the finished job stand for what is measured now."""
    job, progress = store.job(INTERRUPTED), store.job(INTERRUPTED).progress()
    now = progress.session
    kept = resumption(progress, now).kept
    assert len(kept) == 3
    later = records_of(store.job(FINISHED), without=kept)
    with JournalWriter(job.journal, create=False) as journal:
        for record in (now.model_copy(update={"kept": kept}), *later):
            journal.append(record)
    before, after = was(INTERRUPTED, "points.txt").splitlines(), points(job.load())
    of_kept = [one for one in before if any(f"case={case}" in one for case in kept)]
    assert of_kept and set(of_kept) <= set(after)
    assert all(case.verdict is not None for case in assemble(job.progress()).cases)


def records_of(job: JobDirectory, without: tuple[str, ...]) -> list[Record]:
    found = read_journal(job.journal)
    assert replay(found).done.keys() >= set(without)
    return [
        record
        for record in found
        if not isinstance(record, SessionRecord | StateRecord)
        if getattr(record, "case", None) not in without
    ]
