"""An index of the figures of all jobs in a results directory, so that a comparison of two figures
does not read a thousand documents.

It holds nothing that the documents do not hold. It updates itself when it is used, removes what was
deleted, and may be deleted itself. For a read-only directory, the index is in memory; also for a
directory without jobs, so that nothing is written into a directory that was named by mistake.
"""

import contextlib
import json
import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from hostbench.base.errors import UsageError, shown
from hostbench.decisions.figures import job_figures
from hostbench.decisions.status import job_statuses
from hostbench.model.decision import CaseFigure, JobFigures, SubsystemStatus
from hostbench.results.ids import JOB_ID, has_job, job_ids
from hostbench.results.sealed import checked_json, not_a_document
from hostbench.results.store import DOCUMENT, rebuild_remedy, resume_command

Subject = TypeVar("Subject")
INDEX = "figures.sqlite"
# The version of the tables: with another number, the index is made again.
LAYOUT = 8
BUSY_S = 10.0
# A reader that makes no index waits less: it asks again soon.
READ_S = 1.0
# Counted among the verdicts of a job: cases that it did not finish.
UNFINISHED = "unfinished"
_TABLES = """
CREATE TABLE jobs (job TEXT PRIMARY KEY, stamp TEXT, head TEXT);
CREATE TABLE figures ("case" TEXT, job TEXT, figure TEXT, PRIMARY KEY ("case", job)) WITHOUT ROWID;
CREATE INDEX of_job ON figures (job, json_extract(figure, '$.workload'));
CREATE TABLE statuses (host TEXT, subsystem TEXT, job TEXT, status TEXT,
    PRIMARY KEY (host, subsystem, job));
CREATE INDEX status_of_job ON statuses (job);
CREATE TABLE results (job TEXT PRIMARY KEY, host TEXT, suite TEXT, begun REAL, cases INTEGER,
    verdicts TEXT);
CREATE INDEX result_by_host ON results (host, begun);
CREATE INDEX result_by_suite ON results (suite, begun);
CREATE INDEX result_by_time ON results (begun)
"""
# Steps from case to case by the key: with a thousand jobs, each case has as many rows. The title of
# a case that was not measured lacks what the program chose, and such a figure has no unit: so the
# newest one with a value, if there is any.
NEWEST_OF_EACH_CASE = (
    'WITH RECURSIVE one(name) AS (SELECT MIN("case") FROM figures UNION ALL '
    'SELECT (SELECT MIN("case") FROM figures WHERE "case" > name) FROM one '
    "WHERE name IS NOT NULL) SELECT COALESCE("
    '(SELECT figure FROM figures WHERE "case" = name '
    "AND json_extract(figure, '$.why_not') IS NULL ORDER BY job DESC LIMIT 1), "
    '(SELECT figure FROM figures WHERE "case" = name ORDER BY job DESC LIMIT 1)) '
    "FROM one WHERE name IS NOT NULL"
)
_TABLE_NAMES = ("jobs", "figures", "statuses", "results")


class FigureIndex:
    """The figures of the jobs in a results directory. Jobs without a document have none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._connection = _opened(root / INDEX if job_ids(root) else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    def ids(self) -> list[str]:
        """Return the ids of all jobs that have a document, oldest first."""
        self.refresh()
        rows = self._connection.execute("SELECT job FROM jobs WHERE stamp != '' ORDER BY job")
        return [job for (job,) in rows]

    def heads(self, ids: Sequence[str] | None = None) -> list[JobFigures]:
        """Return the jobs whose documents can be trusted, oldest first, without their figures: all,
        or those of these ids."""
        self.refresh(ids)
        rows = self._connection.execute(
            "SELECT head FROM jobs WHERE head IS NOT NULL AND (?1 IS NULL OR job IN "
            "(SELECT value FROM json_each(?1))) ORDER BY job",
            (None if ids is None else json.dumps(ids),),
        )
        return [JobFigures.model_validate_json(head) for (head,) in rows]

    def jobs(self, ids: Sequence[str], refused: list[str] | None = None) -> list[JobFigures]:
        """Return the jobs of these ids with all their figures.

        Raise UsageError for a job without a document, or with one that cannot be trusted; with
        `refused`, leave the job out and add the sentence there.
        """
        self.refresh(ids)
        return [job for one in ids if (job := unless_refused(self._job, one, refused)) is not None]

    def newest_alike(self, jobs: Sequence[JobFigures], most: int) -> list[JobFigures]:
        """Return the newest `most` other jobs of the same machines and suites, oldest first, with
        all their figures."""
        self.refresh()
        rows = self._connection.execute(
            "SELECT job FROM jobs WHERE job NOT IN (SELECT value FROM json_each(?)) AND "
            "(json_extract(head, '$.machine'), json_extract(head, '$.suite')) IN "
            "(SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)) "
            "ORDER BY job DESC LIMIT ?",
            (
                json.dumps([job.job for job in jobs]),
                json.dumps([(job.machine, job.suite) for job in jobs]),
                most,
            ),
        )
        return self.jobs([job for (job,) in rows][::-1])

    def refused(self) -> list[str]:
        """Return why documents of jobs cannot be trusted, each as part of a sentence."""
        rows = self._connection.execute(
            "SELECT job FROM jobs WHERE head IS NULL AND stamp != '' ORDER BY job"
        )
        found = []
        for (job,) in rows:
            try:
                read_figures(self.root / job / DOCUMENT)
            except UsageError as error:
                found.append(error.message)
        return found

    def of_case(self, case: str) -> dict[str, CaseFigure]:
        """Return the figures of one case by job, those of the oldest job first."""
        self.refresh()
        rows = self._connection.execute(
            'SELECT job, figure FROM figures WHERE "case" = ? ORDER BY job', (case,)
        )
        return {job: CaseFigure.model_validate_json(figure) for job, figure in rows}

    def newest_of_case(self, case: str, ids: Sequence[str], most: int) -> list[CaseFigure]:
        """Return the figures of one case in the newest `most` of these jobs that have it, the
        newest first. The jobs are not read anew."""
        rows = self._connection.execute(
            'SELECT figure FROM figures WHERE "case" = ? AND job IN '
            "(SELECT value FROM json_each(?)) ORDER BY job DESC LIMIT ?",
            (case, json.dumps(ids), most),
        )
        return [CaseFigure.model_validate_json(figure) for (figure,) in rows]

    def newest_of_each_case(self) -> list[CaseFigure]:
        """Return one figure of every case: the newest with a value, or the newest if none has
        one."""
        self.refresh()
        rows = self._connection.execute(NEWEST_OF_EACH_CASE)
        return [CaseFigure.model_validate_json(figure) for (figure,) in rows]

    def _job(self, job: str) -> JobFigures:
        row = self._connection.execute("SELECT head FROM jobs WHERE job = ?", (job,)).fetchone()
        if row is None:
            raise UsageError(f"there is no job {shown(job)}")
        if row[0] is None:
            return read_figures(self.root / job / DOCUMENT)
        rows = self._connection.execute("SELECT figure FROM figures WHERE job = ?", (job,))
        cases = [CaseFigure.model_validate_json(figure) for (figure,) in rows]
        head = JobFigures.model_validate_json(row[0])
        document = self.root / job / DOCUMENT
        own = {"cases": {case.case: case for case in cases}, "document": document}
        return head.model_copy(update=own)

    def refresh(self, ids: Sequence[str] | None = None) -> None:
        """Read what is new or changed in these jobs (None: in all), and remove those that are
        gone."""
        if ids is None:
            wanted = job_ids(self.root)
            rows = self._connection.execute("SELECT job, stamp FROM jobs")
        else:
            wanted = [job for job in ids if has_job(self.root, job)]
            rows = self._connection.execute(
                "SELECT job, stamp FROM jobs WHERE job IN (SELECT value FROM json_each(?))",
                (json.dumps(ids),),
            )
        known = dict(rows)
        with contextlib.suppress(sqlite3.OperationalError), self._connection:
            for job in known.keys() - set(wanted):
                self._forget(job)
        for job in wanted:
            if (stamp := document_stamp(self.root, job)) != known.get(job):
                with self._connection:
                    self._forget(job)
                    self._take(job, stamp, self.root / job / DOCUMENT)

    def _forget(self, job: str) -> None:
        for table in _TABLE_NAMES:
            self._connection.execute(f"DELETE FROM {table} WHERE job = ?", (job,))  # noqa: S608

    def _take(self, job: str, stamp: str, document: Path) -> None:
        head = None
        with contextlib.suppress(UsageError):
            if not stamp:
                raise UsageError(f"{document} is no file")
            found = read_figures(document)
            head = found.model_copy(update={"cases": {}, "statuses": ()}).model_dump_json()
            self._connection.executemany(
                "INSERT INTO figures VALUES (?, ?, ?)",
                ((case.case, job, case.model_dump_json()) for case in found.cases.values()),
            )
            self._connection.executemany(
                "INSERT INTO statuses VALUES (?, ?, ?, ?)",
                ((one.host, one.subsystem, job, one.model_dump_json()) for one in found.statuses),
            )
            verdicts = Counter(case.verdict or UNFINISHED for case in found.cases.values())
            self._connection.execute(
                "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?)",
                (
                    job,
                    found.host,
                    found.suite,
                    found.created_unix_s,
                    len(found.cases),
                    json.dumps(verdicts),
                ),
            )
        self._connection.execute("INSERT INTO jobs VALUES (?, ?, ?)", (job, stamp, head))


def unless_refused(
    read: Callable[[Subject], JobFigures], subject: Subject, refused: list[str] | None
) -> JobFigures | None:
    """Return what `read` returns. With `refused`, a UsageError becomes a sentence there, and the
    result is None."""
    try:
        return read(subject)
    except UsageError as error:
        if refused is None:
            raise
        refused.append(error.message)
        return None


def read_figures(document: Path) -> JobFigures:
    """Return the figures of a result document. Raise UsageError if the file is not one."""
    remedy = "give a result.json that hostbench wrote"
    if document.name == DOCUMENT and JOB_ID.fullmatch(document.absolute().parent.name):
        remedy = rebuild_remedy(document.absolute().parent)
    try:
        content = document.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"{document} is not there: the job has not ended; finish it with: "
            f"{resume_command(document.absolute().parent)}"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {document}: {error.strerror}; {remedy}") from None
    raw = checked_json(content, str(document), remedy)
    try:
        statuses = job_statuses(raw, os.environ)
        own = {"statuses": statuses, "document": document}
        return job_figures(raw).model_copy(update=own)
    except ValidationError as error:
        raise not_a_document(error, str(document), remedy) from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{document} is not a result document: {type(error).__name__} at {error}; {remedy}"
        ) from None


def newest_statuses(root: Path) -> list[SubsystemStatus]:
    """Return the newest status of each subsystem of each host, as the index in a results directory
    has them: no document is read. Raise sqlite3.Error if there is no index that can be read."""
    with reading(root) as connection:
        rows = connection.execute(
            "SELECT status FROM statuses JOIN (SELECT host, subsystem, MAX(job) AS job "
            "FROM statuses GROUP BY host, subsystem) USING (host, subsystem, job) "
            "ORDER BY host, subsystem"
        )
        return [SubsystemStatus.model_validate_json(status) for (status,) in rows]


def indexed_figures(root: Path, job: str) -> list[CaseFigure] | None:
    """Return the figures of a job, as the index in a results directory has them, or None if it has
    not read the job's document: no document is read. Raise sqlite3.Error as `newest_statuses`."""
    with reading(root) as connection:
        head = connection.execute("SELECT head FROM jobs WHERE job = ?", (job,)).fetchone()
        if head is None or head[0] is None:
            return None
        rows = connection.execute("SELECT figure FROM figures WHERE job = ?", (job,))
        return [CaseFigure.model_validate_json(figure) for (figure,) in rows]


def indexed_statuses(root: Path, job: str) -> list[SubsystemStatus]:
    """Return the statuses of one job in the same way."""
    with reading(root) as connection:
        rows = connection.execute(
            "SELECT status FROM statuses WHERE job = ? ORDER BY subsystem", (job,)
        )
        return [SubsystemStatus.model_validate_json(status) for (status,) in rows]


def is_stale(root: Path) -> bool:
    """Return whether the index in a results directory lacks a document, or has one that is gone.

    A document that replaced another one counts only with `FigureIndex.refresh` and `is_current`.
    """
    there = set(job_ids(root))
    try:
        with reading(root) as connection:
            rows = connection.execute("SELECT job FROM jobs WHERE stamp != ''")
            known = {job for (job,) in rows}
    except sqlite3.Error:
        known = set()
    return not known <= there or any(document_stamp(root, job) for job in there - known)


def is_current(root: Path, jobs: Sequence[str]) -> bool:
    """Return whether the index in a results directory has these documents as they are now."""
    try:
        with reading(root) as connection:
            rows = connection.execute(
                "SELECT job, stamp FROM jobs WHERE job IN (SELECT value FROM json_each(?))",
                (json.dumps(jobs),),
            )
            known = dict(rows.fetchall())
    except sqlite3.Error:
        return False
    return all(document_stamp(root, job) == known.get(job) for job in jobs)


def index_stamp(root: Path) -> tuple[int, ...]:
    """Return numbers that change with the index in a results directory; none without one."""
    try:
        status = (root / INDEX).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def reading(root: Path) -> Iterator[sqlite3.Connection]:
    """Yield the index in a results directory as it is. Raise sqlite3.Error if there is none of this
    layout."""
    address = f"{(root / INDEX).absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=READ_S)) as connection:
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout != LAYOUT:
            raise sqlite3.DatabaseError(f"its layout is {layout}")
        yield connection


def document_stamp(root: Path, job: str) -> str:
    """Return a text that changes whenever the job's document does, since it is always replaced as a
    whole; an empty one where there is no file."""
    try:
        # With thousands of jobs, joining paths as Path takes longer than asking for them.
        status = os.stat(f"{root}/{job}/{DOCUMENT}")  # noqa: PTH116
    except OSError:
        return ""
    # A pipe, say, would keep its reader waiting for ever.
    if not stat.S_ISREG(status.st_mode):
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def _opened(path: Path | None) -> sqlite3.Connection:
    """Open the index in a file; in memory if there is none, or if it cannot be written."""
    for attempt in () if path is None else _attempts(path):
        with contextlib.suppress(sqlite3.DatabaseError):
            connection = sqlite3.connect(attempt, timeout=BUSY_S)
            try:
                _prepare(connection)
            except sqlite3.DatabaseError:
                connection.close()
                raise
            return connection
    connection = sqlite3.connect(":memory:")
    _prepare(connection)
    return connection


def _attempts(path: Path) -> Iterator[Path]:
    """Yield the file, and once more after a damaged one was removed."""
    yield path
    with contextlib.suppress(OSError):
        path.unlink()
        yield path


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables, also in place of those of another layout. Raise sqlite3.DatabaseError if the
    file is not a database or cannot be written."""
    connection.execute("PRAGMA synchronous = OFF")  # what is lost is read again
    connection.execute("BEGIN IMMEDIATE")
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if layout != LAYOUT:
        for name in _TABLE_NAMES:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in _TABLES.strip().split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.commit()
