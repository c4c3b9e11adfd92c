"""Results of hostbench before documents had a digest, and before journals held figures.

fixtures/schema1/ has a finished job with a case or two of every subsystem but GPUs (with peers, a
skipped one and a naive one) and an interrupted one, and the CSV and the points (as line protocol)
that the hostbench of that time made of both.
"""

import csv
import gzip
import io
import re
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
from hostbench.results.index import JobIndex
from hostbench.results.journal import JournalWriter, read_journal
from hostbench.results.sealed import UNSEALED
from hostbench.results.store import JobDirectory, ResultsStore
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


def points_of_then(job_id: str) -> list[str]:
    """Those that it made, with the job as a field where it was a tag."""
    return [
        re.sub(
            r"^([^ ]*),job=([^,]+)((?:\\ |[^ ])*) (.*) (\d+)$",
            lambda of: f"{of[1]}{of[3]} {with_job(of[4], of[2])} {of[5]}",
            one,
        )
        for one in was(job_id, "points.txt").splitlines()
    ]


def with_job(fields: str, job: str) -> str:
    return ",".join(sorted([*fields.split(","), f'job="{job}"']))


def points(document: ResultDocument) -> list[str]:
    """Without the figure as text, which came later."""
    lines = [line(point) for point in document_points(document)]
    return [re.sub(r'\bfigure="[^"]*",', "", one) for one in lines]


@BOTH
def test_csv_and_points_are_what_they_were(store: ResultsStore, job_id: str) -> None:
    """But for columns that came later; and an interrupted job, whose figures are computed when they
    are read, has today's intervals, and no ratio of what was disturbed."""
    document = store.job(job_id).load()
    before, now = rows(was(job_id, "result.csv")), rows(case_table(document))
    assert before[0].keys() < now[0].keys()
    then, today = set(before[0]), points(document)
    if job_id == INTERRUPTED:
        then -= INTERVAL_COLUMNS | {"ours_over_peer"}
    else:
        assert today == points_of_then(job_id)
    for old, new in zip(before, now, strict=True):
        assert {name: old[name] for name in then} == {name: new[name] for name in then}


INTERVAL_COLUMNS = {
    *(
        "verdict",
        "reasons",
        "standard_deviation",
        "interval_low",
        "interval_high",
        "interval_confidence",
    ),
    *("half_width_ratio", "ours_over_peer_low", "ours_over_peer_high"),
}


def rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table)))


def test_the_list(store: ResultsStore) -> None:
    found = {one.id: (one.state, dict(one.verdicts)) for one in JobIndex(store.root).summaries()}
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
    for was_one, is_one in zip(old.cases, new.cases, strict=True):
        assert was_one.trials == is_one.trials and was_one.label == is_one.label
        assert was_one.metrics.keys() == is_one.metrics.keys()
        assert was_one.figure is None
        assert (is_one.figure is None) is (is_one.verdict is Verdict.SKIPPED)


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
    before, after = points_of_then(INTERRUPTED), points(job.load())
    of_kept = {series(one) for one in before if any(f"case={case}" in one for case in kept)}
    assert of_kept and of_kept <= set(map(series, after))
    assert all(case.verdict is not None for case in assemble(job.progress()).cases)


def series(point: str) -> str:
    """Its measurement and tags."""
    return re.split(r"(?<!\\) ", point)[0]


def records_of(job: JobDirectory, without: tuple[str, ...]) -> list[Record]:
    found = read_journal(job.journal)
    assert replay(found).done.keys() >= set(without)
    return [
        record
        for record in found
        if not isinstance(record, SessionRecord | StateRecord)
        if getattr(record, "case", None) not in without
    ]
