"""The results directory: one directory for each job, and an index."""

import contextlib
import dataclasses
import os
import secrets
from pathlib import Path

from pydantic import ValidationError

from hostbench.base.errors import HostbenchError, ResourceError, UsageError, did_you_mean, shown
from hostbench.judge.peer import peer_pairs
from hostbench.model.result import (
    RECORD,
    JobState,
    JobSummary,
    ResultDocument,
    StateRecord,
)
from hostbench.plan.estimate import Plan
from hostbench.results.csv import case_table
from hostbench.results.document import Progress, assemble, replay, summarise
from hostbench.results.ids import job_ids, new_job_id, results_directory
from hostbench.results.journal import (
    cannot_write,
    cut_sentence,
    has_begun,
    is_being_written,
    read_with_rest,
)
from hostbench.results.sealed import read_document, sealed

JOURNAL, DOCUMENT, CSV = "journal.ndjson", "result.json", "result.csv"
REPORT = "report.html"
LATEST = "latest"
# The bytes of a trial with its events, of each of its threads and of each of its samples, in
# journal and document together. The values are generous, so that a job does not start what it
# cannot store.
TRIAL_BYTES = 24_000
THREAD_BYTES = 800
SAMPLE_BYTES = 600
# With its output (the supervisor keeps 32 KiB of it), in journal and document.
PEER_TRIAL_BYTES = 160_000
HEADER_BYTES = 200_000
TAIL_BYTES = 4096


def rebuild_remedy(directory: Path) -> str:
    """Return how to recover a job whose document cannot be read."""
    if not has_begun(directory / JOURNAL):
        return "take the file that hostbench wrote, or measure again: no journal is beside it"
    return f"build it again from its journal with: {resume_command(directory)}"


def resume_command(directory: Path) -> str:
    """Return the command that continues a job, wherever it is stored."""
    elsewhere = directory.absolute().parent != results_directory(None).absolute()
    where = f" --results {directory.parent}" if elsewhere else ""
    return f"hostbench run --resume {directory.name}{where}"


class JobDirectory:
    """One job's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.journal = path / JOURNAL
        self.document = path / DOCUMENT
        self.report = path / REPORT

    @property
    def has_begun(self) -> bool:
        """Whether its journal holds a whole record."""
        return has_begun(self.journal)

    def progress(self) -> Progress:
        """Return the job's progress, from its journal."""
        records, cut_bytes = read_with_rest(self.journal)
        cut = cut_sentence(self.journal, cut_bytes) if cut_bytes else None
        return dataclasses.replace(replay(records), cut=cut)

    def state_unless_ended(self) -> JobState:
        """Return the state of a job whose journal does not record its end."""
        running = is_being_written(self.journal)
        return JobState.RUNNING if running else JobState.INTERRUPTED

    def load(self) -> ResultDocument:
        """Return the stored document, or for an unfinished job the document from its journal so
        far.

        Raise UsageError for a document that is cut short, has an unknown schema, or was changed
        since it was written.
        """
        stored = self._stored()
        return stored or sealed(assemble(self.progress(), self.state_unless_ended()))

    def _stored(self) -> ResultDocument | None:
        rebuild = rebuild_remedy(self.path)
        try:
            content = self.document.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"cannot read {self.document}: {error.strerror}; {rebuild}") from None
        return read_document(content, str(self.document), rebuild)

    def store(self, document: ResultDocument) -> ResultDocument:
        """Write result.json, then result.csv, each as a whole or not at all. Return the document
        with its digest."""
        document = sealed(document)
        self.keep((document.model_dump_json(indent=1) + "\n").encode(), document)
        return document

    def keep(self, content: bytes, document: ResultDocument) -> None:
        """Do the same with the bytes of a sealed document, which stay as they are."""
        is_first = not self.document.exists()
        table = case_table(document).encode()
        for path, written in ((self.document, content), (self.path / CSV, table)):
            try:
                write_whole(path, written)
            except OSError as error:
                # A first document without its table would look final while the job ends as failed.
                if is_first:
                    with contextlib.suppress(ResourceError):
                        self.unstore()
                raise cannot_write(path, error) from None

    def unstore(self) -> None:
        """Remove the files that would look final while the job is measured again."""
        for path in (self.document, self.path / CSV, self.report):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise cannot_write(path, error) from None
        # A result that reappeared after a power failure would hide what the journal has since
        # gained.
        self.sync()

    def sync(self) -> None:
        """Make the directory's list of files as durable as their content. Raise ResourceError."""
        try:
            sync_directory(self.path)
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def discard(self) -> None:
        """Remove the directory of a job that never began, unless another process has created a file
        there."""
        with contextlib.suppress(OSError):
            self.path.rmdir()


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a temporary file in the same directory, sync and rename it, and sync the directory.
    `mode`: its permissions, whatever the umask is. Raise OSError, with nothing left behind."""
    # Process ids of containers, and threads, are not unique.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Make the names in a directory as durable as the files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_durable(path: Path) -> None:
    """Create a directory and its missing parents. Raise OSError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_directory(one.parent)


class ResultsStore:
    """All jobs below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, suite: str, needed_bytes: int, job_id: str | None = None) -> JobDirectory:
        """Create a new job's directory and return it. Raise ResourceError when that fails or there
        is no room.

        `job_id`: an id that was given out earlier; its directory may already exist.
        """
        try:
            _make_durable(self.root)
            if (shortage := self.shortage(needed_bytes)) is not None:
                raise ResourceError(shortage)
            return self._make_as(job_id, exist_ok=True) if job_id else self._make(suite)
        except OSError as error:
            raise cannot_write(self.root, error) from None

    def shortage(self, needed_bytes: int) -> str | None:
        """Return why a job has no room, with the remedy; None: it has. Raise OSError."""
        space = os.statvfs(self.root)
        left_bytes = space.f_bavail * space.f_frsize
        if left_bytes >= needed_bytes:
            return None
        return (
            f"{self.root} has {left_bytes} bytes left, this job may need {needed_bytes}; free "
            "space there, or choose another directory with --results or HOSTBENCH_RESULTS"
        )

    def _make(self, suite: str) -> JobDirectory:
        while True:
            with contextlib.suppress(FileExistsError):
                return self._make_as(new_job_id(suite))

    def _make_as(self, job_id: str, *, exist_ok: bool = False) -> JobDirectory:
        path = self.root / job_id
        path.mkdir(exist_ok=exist_ok)
        sync_directory(self.root)
        return JobDirectory(path)

    def ids(self) -> list[str]:
        """Return the ids of all jobs, oldest first."""
        return job_ids(self.root)

    def job(self, job_id: str) -> JobDirectory:
        """Return the job with this id, or the latest. Raise UsageError, which names the nearest
        id."""
        ids = self.ids()
        if job_id == LATEST and ids:
            return JobDirectory(self.root / ids[-1])
        if job_id in ids:
            return JobDirectory(self.root / job_id)
        if not ids:
            raise UsageError(
                f"there is no job {shown(job_id)}: {self.root.absolute()} holds none; measure "
                "with hostbench run, or name another directory with --results or HOSTBENCH_RESULTS"
            )
        raise UsageError(
            f"there is no job {shown(job_id)} in {self.root}; {did_you_mean(job_id, ids)}"
            "give an id that hostbench list shows, or latest"
        )


def needed_bytes(plan: Plan) -> int:
    """Return the most bytes that a job may need in its directory."""
    needed = HEADER_BYTES
    for case in plan.cases:
        duration_s, interval_s = case.params.get("duration_s"), case.params.get("sample_interval_s")
        samples = 0.0
        if isinstance(duration_s, int | float) and isinstance(interval_s, int | float):
            samples = duration_s / interval_s
        threads = case.params.get("threads")
        rows = threads * THREAD_BYTES if isinstance(threads, int) else 0
        needed += int(case.repeats.max_trials * (TRIAL_BYTES + rows + samples * SAMPLE_BYTES))
        needed += len(case.peers) * peer_pairs(case) * PEER_TRIAL_BYTES
    return needed


def summary_of(job: JobDirectory) -> JobSummary | None:
    """Return a job's summary from its own files, or None when they do not have it.

    The last record of an ended job holds its summary, so the rest is not read.
    """
    ended = _last_record(job.journal)
    if ended is not None:
        return ended.summary
    with contextlib.suppress(HostbenchError):
        progress = job.progress()
        if progress.ended is not None:
            return progress.ended.summary
        return summarise(progress, job.state_unless_ended(), None)
    with contextlib.suppress(OSError, ValidationError):
        return ResultDocument.model_validate_json(job.document.read_bytes()).job
    return None


def _last_record(journal: Path) -> StateRecord | None:
    """Return the last record of a journal if it records the job's end."""
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
