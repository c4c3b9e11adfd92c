"""The index of what there is to list of the jobs of a results directory."""

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
# What a line that no JobIndex wrote raises.
DAMAGED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.INTERRUPTED})


class JobIndex:
    """The jobs of a results directory, newest last."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / INDEX

    def note(self, summary: JobSummary) -> None:
        """Remember how a job stands. Best effort: the journal is what counts."""
        with contextlib.suppress(OSError):
            _append(self._path, [summary])

    def summaries(self) -> list[JobSummary]:
        """All jobs, oldest first; a job that cannot be read is left out."""
        known, lines = self._read()
        found = []
        learnt = []
        for job_id in job_ids(self._root):
            summary = known.get(job_id)
            # A job that was running may have ended without telling the index.
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
        """The last word on every job, and how many lines that took."""
        known: dict[str, JobSummary] = {}
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return known, 0
        for line in lines:
            # A damaged line: the job is asked again.
            with contextlib.suppress(*DAMAGED):
                summary = _summary(json.loads(line))
                known[summary.id] = summary
        return known, len(lines)

    def _remember(self, found: list[JobSummary], learnt: list[JobSummary], lines: int) -> None:
        """Append what was learnt; write the file anew when most of it is outdated."""
        # A results directory that may only be read is listed all the same.
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
    """A line of the index. Raise what is in DAMAGED."""
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
    """One write, so that two runs that append at once do not mix their lines."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, _lines(summaries))
        # That a job runs again must not be forgotten: what has ended is not looked at again.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fresh_summary(job: Path) -> JobSummary | None:
    # Most jobs stand in the index, and then their documents need not be understood.
    from hostbench.results.store import JobDirectory, summary_of

    return summary_of(JobDirectory(job))
