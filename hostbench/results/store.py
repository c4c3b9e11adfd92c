"""The results directory: one directory a job, and an index of them."""

import contextlib
import os
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
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
from hostbench.results.journal import cannot_write, has_begun, is_being_written, read_journal
from hostbench.results.sealed import read_document, sealed

JOURNAL, DOCUMENT, CSV = "journal.ndjson", "result.json", "result.csv"
REPORT = "report.html"
LATEST = "latest"
_JOB_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9][a-z0-9-]*-[0-9a-f]{4}", re.ASCII)
# Of one trial with its events, of each thread in it and of each of its samples, in journal and
# document together; generous, so that a job does not begin what it cannot store.
TRIAL_BYTES = 24_000
THREAD_BYTES = 800
SAMPLE_BYTES = 600
# With what it printed, of which the supervisor keeps 32 KiB, in journal and document.
PEER_TRIAL_BYTES = 160_000
HEADER_BYTES = 200_000
INDEX = "index.ndjson"
ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.INTERRUPTED})
TAIL_BYTES = 4096


def results_directory(given: Path | None) -> Path:
    """--results, else HOSTBENCH_RESULTS, else ./results."""
    return given or Path(os.environ.get("HOSTBENCH_RESULTS") or "results")


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
        """Whether its journal says anything."""
        return has_begun(self.journal)

    def progress(self) -> Progress:
        """Where the job stands, from its journal."""
        return replay(read_journal(self.journal))

    def state_unless_ended(self) -> JobState:
        """The state of a job whose journal does not say how it ended."""
        running = is_being_written(self.journal)
        return JobState.RUNNING if running else JobState.INTERRUPTED

    def load(self) -> ResultDocument:
        """The stored document, or what the journal of an unfinished job says so far.

        Raises UsageError for a document that is cut short, of an unknown schema, or changed since
        it was written.
        """
        stored = self._stored()
        return stored or sealed(assemble(self.progress(), self.state_unless_ended()))

    def _stored(self) -> ResultDocument | None:
        rebuild = f"build it again from its journal with: hostbench run --resume {self.id}"
        try:
            content = self.document.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"cannot read {self.document}: {error.strerror}; {rebuild}") from None
        return read_document(content, str(self.document), rebuild)

    def store(self, document: ResultDocument) -> ResultDocument:
        """Writes result.json, then result.csv; each appears whole or not at all. Returns the
        document with its digest."""
        document = sealed(document)
        text = document.model_dump_json(indent=1) + "\n"
        for path, content in ((self.document, text), (self.path / CSV, case_table(document))):
            try:
                write_whole(path, content.encode())
            except OSError as error:
                raise cannot_write(path, error) from None
        return document

    def unstore(self) -> None:
        """Removes what would look final while the job is being measured again."""
        for path in (self.document, self.path / CSV, self.report):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise cannot_write(path, error) from None

    def discard(self) -> None:
        """Removes the directory of a job that never began, unless another process has put a file
        there."""
        with contextlib.suppress(OSError):
            self.path.rmdir()


def write_whole(path: Path, content: bytes) -> None:
    """A temporary file in the same directory, synced, renamed, and the directory synced. Raises
    OSError, and then leaves nothing behind."""
    # Containers share their process ids, threads theirs.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Makes the names in a directory as durable as the files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def new_job_id(suite: str) -> str:
    """The time makes it sortable, the rest keeps two of one second apart."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{suite}-{secrets.token_hex(2)}"


def is_job_id(text: str) -> bool:
    """Whether it is of that form, and so names no other place."""
    return _JOB_ID.fullmatch(text) is not None


def submitted_unix_s(job_id: str) -> float:
    """The time in a job id, to the second; 0 when there is no such time."""
    try:
        return datetime.strptime(job_id.partition("-")[0], "%Y%m%dT%H%M%S%z").timestamp()
    except ValueError:
        return 0.0


class ResultsStore:
    """All jobs below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, suite: str, needed_bytes: int, job_id: str | None = None) -> JobDirectory:
        """A new job's directory, called `job_id` where that was given out before: then it may be
        there already. Raises ResourceError when it cannot be made or has no room."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            space = os.statvfs(self.root)
            if space.f_bavail * space.f_frsize < needed_bytes:
                raise ResourceError(
                    f"{self.root} has {space.f_bavail * space.f_frsize} bytes left, this job may "
                    f"need {needed_bytes}; free space there, or choose another directory with "
                    "--results or HOSTBENCH_RESULTS"
                )
            return self._make_as(job_id, exist_ok=True) if job_id else self._make(suite)
        except OSError as error:
            raise cannot_write(self.root, error) from None

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
        """The ids of all jobs, oldest first."""
        try:
            with os.scandir(self.root) as entries:
                return sorted(entry.name for entry in entries if _JOB_ID.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(
                f"cannot read {self.root}: {error.strerror}; "
                "choose another directory with --results or HOSTBENCH_RESULTS"
            ) from None

    def job(self, job_id: str) -> JobDirectory:
        """The job called `job_id`, or the latest. Raises UsageError naming the nearest."""
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
    """What a job may need at most in its directory."""
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
