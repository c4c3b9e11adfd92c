"""The index of what a listing shows of the jobs in a results directory."""

import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hostbench.model.summary import JobState, JobSummary, Verdict
from hostbench.results.ids import job_ids

INDEX = "index.ndjson"
# What a line raises that JobIndex did not write.
DAMAGED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.INTERRUPTED})


class JobIndex:
    """The jobs of a results directory, newest last."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / INDEX

    def note(self, summary: JobSummary) -> None:
        """Record the state of a job. Best effort: the journal is authoritative."""
        with contextlib.suppress(OSError):
            _append(self._path, [summary])

    def summaries(self) -> list[JobSummary]:
        """Return all jobs, oldest first, without those that cannot be read."""
        known, lines = self._read()
        found = []
        learnt = []
        for job_id in job_ids(self._root):
            summary = known.get(job_id)
            # A job that was running may have ended without an entry in the index.
            if summary is None or summary.state not in ENDED:
                fresh = _fresh_summary(self._root / job_id)
                if fresh is not None and fresh != summary and fresh.state in ENDED:
                    learnt.append(fresh)
                summary = fresh
            if summary is not None:
                found.append(summary)
        self._remember(found, learnt, lines)
        return found

    def _read(self) -> tuple[dict[str, JobSummary], int]:
        """Return the last entry of every job, and the number of lines read."""
        known: dict[str, JobSummary] = {}
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return known, 0
        for line in lines:
            # A damaged line: the job's own files are read again.
            with contextlib.suppress(*DAMAGED):
                summary = _summary(json.loads(line))
                known[summary.id] = summary
        return known, len(lines)

    def _remember(self, found: list[JobSummary], learnt: list[JobSummary], lines: int) -> None:
        """Append what was learnt; rewrite the file when most of it is outdated."""
        # A read-only results directory is listed, too.
        with contextlib.suppress(OSError):
            if lines > 2 * len(found) + 100:
                self._rewrite(summary for summary in found if summary.state in ENDED)
            elif learnt:
                _append(self._path, learnt)

    def _rewrite(self, summaries: Iterable[JobSummary]) -> None:
        temporary = self._path.with_name(f".{INDEX}.{os.urandom(4).hex()}.tmp")
        temporary.write_bytes(_lines(summaries))
        temporary.replace(self._path)


def _summary(fields: dict[str, Any]) -> JobSummary:
    """Return the summary in a line of the index. Raise what is in DAMAGED."""
    verdicts = {Verdict(name): int(count) for name, count in fields["verdicts"].items()}
    finished_unix_s, took_s = fields["finished_unix_s"], fields.get("took_s")
    return JobSummary(
        id=str(fields["id"]),
        suite=str(fields["suite"]),
        state=JobState(fields["state"]),
        hostname=str(fields["hostname"]),
        created_unix_s=float(fields["created_unix_s"]),
        finished_unix_s=None if finished_unix_s is None else float(finished_unix_s),
        cases=int(fields["cases"]),
        verdicts=verdicts,
        took_s=None if took_s is None else float(took_s),
    )


def _lines(summaries: Iterable[JobSummary]) -> bytes:
    return b"".join(json.dumps(asdict(summary)).encode() + b"\n" for summary in summaries)


def _append(path: Path, summaries: Iterable[JobSummary]) -> None:
    """Append in a single write, so that two runs at once do not mix their lines."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, _lines(summaries))
        # The index must not lose that a job runs again, because ended jobs are not read again.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fresh_summary(job: Path) -> JobSummary | None:
    # Most jobs are in the index, so their documents need not be parsed.
    from hostbench.results.store import JobDirectory, summary_of

    return summary_of(JobDirectory(job))
