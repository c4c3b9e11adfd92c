"""The index of a results directory: one line a change of a job, so that listing thousands of jobs
reads one file.

It is only a cache. Jobs it does not know are read from their journals, those that are gone are
dropped, and an unreadable or missing index is built again.
"""

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from hostbench.document import summarise
from hostbench.errors import HostbenchError
from hostbench.models.result import (
    RECORD,
    JobState,
    JobSummary,
    ResultDocument,
    StateRecord,
)
from hostbench.results import JobDirectory, ResultsStore

INDEX = "index.ndjson"
ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.INTERRUPTED})
TAIL_BYTES = 4096


class JobIndex:
    """The jobs of one store, newest last."""

    def __init__(self, store: ResultsStore) -> None:
        self._store = store
        self._path = store.root / INDEX

    def note(self, summary: JobSummary) -> None:
        """Remembers how a job stands. Best effort: the journal is what counts."""
        with contextlib.suppress(OSError):
            _append(self._path, [summary])

    def summaries(self) -> list[JobSummary]:
        """All jobs, oldest first; a job that cannot be read is left out."""
        known, lines = self._read()
        found = []
        learnt = []
        for job_id in self._store.ids():
            summary = known.get(job_id)
            # A job that was running may have ended without telling the index.
            if summary is None or summary.state not in ENDED:
                fresh = summary_of(JobDirectory(self._store.root / job_id))
                if fresh is not None and fresh != summary and fresh.state in ENDED:
                    learnt.append(fresh)
                summary = fresh
            if summary is not None:
                found.append(summary)
        self._remember(found, learnt, lines)
        return found

    def _read(self) -> tuple[dict[str, JobSummary], int]:
        """The last word on every job, and how many lines that took."""
        known: dict[str, JobSummary] = {}
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return known, 0
        for line in lines:
            with contextlib.suppress(ValidationError):
                summary = JobSummary.model_validate_json(line)
                known[summary.id] = summary
        return known, len(lines)

    def _remember(self, found: list[JobSummary], learnt: list[JobSummary], lines: int) -> None:
        """Appends what was learnt; writes the file anew when most of it is outdated."""
        # A results directory that may only be read is listed all the same.
        with contextlib.suppress(OSError):
            if lines > 2 * len(found) + 100:
                self._rewrite(summary for summary in found if summary.state in ENDED)
            elif learnt:
                _append(self._path, learnt)

    def _rewrite(self, summaries: Iterable[JobSummary]) -> None:
        temporary = self._path.with_name(f".{INDEX}.{secrets.token_hex(4)}.tmp")
        temporary.write_bytes(_lines(summaries))
        temporary.replace(self._path)


def _lines(summaries: Iterable[JobSummary]) -> bytes:
    return b"".join(summary.model_dump_json().encode() + b"\n" for summary in summaries)


def _append(path: Path, summaries: Iterable[JobSummary]) -> None:
    """One write, so that two runs that append at once do not mix their lines."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, _lines(summaries))
    finally:
        os.close(descriptor)


def summary_of(job: JobDirectory) -> JobSummary | None:
    """How a job stands, from its own files; None when they do not say.

    The last record of a job that ended holds its summary: no need to read the rest.
    """
    ended = _last_record(job.journal)
    if ended is not None:
        return ended.summary
    with contextlib.suppress(HostbenchError):
        return summarise(job.progress(), job.state_unless_ended(), None)
    with contextlib.suppress(OSError, ValidationError):
        return ResultDocument.model_validate_json(job.document.read_bytes()).job
    return None


def _last_record(journal: Path) -> StateRecord | None:
    """The last record of a journal when it says how the job ended."""
    with contextlib.suppress(OSError, ValidationError):
        with journal.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read()
        *lines, _torn = tail.split(b"\n")
        record = RECORD.validate_json(lines[-1]) if lines else None
        if isinstance(record, StateRecord):
            return record
    return None
