"""The results directory that the orchestrators share. It has the answers about jobs that Redis no
longer has.

Beside a job's journal and document is job.json: the job as the API last showed it, running or in
its final state.
"""

import contextlib
from collections.abc import Iterator

from pydantic import ValidationError

from hostbench.model.jobs import TERMINAL, JobView, StackState
from hostbench.model.result import JobState, JobSummary
from hostbench.results.ids import is_job_id, submitted_unix_s
from hostbench.results.index import JobIndex
from hostbench.results.store import JobDirectory, ResultsStore, summary_of, write_whole

JOB = "job.json"
# Reserved for the accepted jobs: with less free space, no new job is accepted.
FREE_BYTES_LEAST = 64 << 20
FORGOTTEN = "it did not end properly, and Redis no longer knows it; what was measured is kept"

_STATES = {
    JobState.RUNNING: StackState.RUNNING,
    JobState.SUCCEEDED: StackState.SUCCEEDED,
    JobState.FAILED: StackState.FAILED,
    JobState.INTERRUPTED: StackState.LOST,
}


class Archive:
    """The jobs of the results directory."""

    def __init__(self, results: ResultsStore) -> None:
        self.results = results
        self.index = JobIndex(results.root)

    def directory(self, job_id: str) -> JobDirectory:
        """Return where a job's files are, or would be. `job_id` must be a valid id."""
        assert is_job_id(job_id)
        return JobDirectory(self.results.root / job_id)

    def refusal(self) -> str | None:
        """Return why no new job is accepted, with the remedy; None: there is room."""
        try:
            return self.results.shortage(FREE_BYTES_LEAST)
        except OSError as error:
            return f"{self.results.root} cannot be used: {error.strerror}"

    def has(self, job_id: str) -> bool:
        """Return whether the job has measured anything."""
        directory = self.directory(job_id)
        return directory.has_begun or directory.document.exists()

    def keep(self, view: JobView) -> None:
        """Store the state of a job, if the job has a directory."""
        directory = self.directory(view.id)
        if directory.path.is_dir():
            with contextlib.suppress(OSError):
                write_whole(directory.path / JOB, view.model_dump_json(indent=1).encode())

    def view(self, job_id: str) -> JobView | None:
        """Return a job that Redis does not have, or None."""
        directory = self.directory(job_id)
        if not directory.path.is_dir():
            return None
        kept = self._kept(directory)
        if kept is not None and kept.state in TERMINAL:
            return kept
        summary = summary_of(directory)
        if summary is None:
            return None
        return self.as_measured(summary, kept)

    def _kept(self, directory: JobDirectory) -> JobView | None:
        with contextlib.suppress(OSError, ValidationError):
            return JobView.model_validate_json((directory.path / JOB).read_bytes())
        return None

    def as_measured(self, summary: JobSummary, kept: JobView | None = None) -> JobView:
        """Return the job by its journal or document, with what else is stored about it."""
        state = _STATES[summary.state]
        return JobView(
            id=summary.id,
            state=state,
            since_unix_s=summary.finished_unix_s or summary.created_unix_s,
            reason=FORGOTTEN if state is StackState.LOST else None,
            suite=summary.suite,
            hosts=kept.hosts if kept else [summary.hostname],
            priority=kept.priority if kept else 0,
            spec=kept.spec if kept else None,
            submitted_unix_s=kept.submitted_unix_s if kept else summary.created_unix_s,
            started_unix_s=summary.created_unix_s,
            ended_unix_s=summary.finished_unix_s,
            verdicts=summary.verdicts,
            sessions=kept.sessions if kept else 1,
        )

    def newest(self, before: tuple[float, str] | None) -> Iterator[tuple[float, str]]:
        """Yield (time, id) of the stored jobs before a place in that order, newest first."""
        for job_id in reversed(self.results.ids()):
            place = (submitted_unix_s(job_id), job_id)
            if before is None or place < before:
                yield place
