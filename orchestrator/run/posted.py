"""Result documents that were measured elsewhere, such as on the nodes of a campaign, and posted.

A posted document is stored like that of a job of the stack, byte for byte, so that results,
decisions and /metrics have it, too. The points for InfluxDB follow on a thread of their own.
"""

import asyncio
import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import structlog
from redis.exceptions import RedisError

from hostbench.base.errors import UsageError, shown
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.decisions.baseline import headline_workloads
from hostbench.model.jobs import PostedDocument
from hostbench.model.result import ResultDocument
from hostbench.results.ids import is_job_id, submitted_unix_s
from hostbench.results.index import ENDED
from hostbench.results.sealed import DIGEST, read_document
from hostbench.results.store import JobDirectory
from hostbench.web.keys import Caller
from hostbench.web.problem import Problem
from orchestrator.influx.outbox import Outbox
from orchestrator.influx.points import decision_points, document_points, job_point
from orchestrator.queue.jobs import JobStore
from orchestrator.results.archive import FREE_BYTES_LEAST, Archive
from orchestrator.results.deciding import Decider

# A document of 40 cases has some 800 KB. In memory it takes up to twenty times as much for a
# moment.
DOCUMENT_BYTES_MOST = 16 << 20
# Documents that are received or wait at once: a thousand nodes may end at the same time. The others
# come again.
AT_ONCE_MOST = 8
RETRY_AFTER_S = 2
# Decisions use a CPU for about a second each, so they wait while a job runs here.
BUSY_PAUSE_S = 5.0
# The clock of a host may be wrong by so much.
AHEAD_S_MOST = 86400.0
BODY = "the body"
REMEDY = "post a result.json as hostbench wrote it"
_log = structlog.get_logger()


class PostedDocuments:
    """Stores documents one after another, and has their points written."""

    def __init__(
        self,
        archive: Archive,
        jobs: JobStore,
        outbox: Outbox | None,
        decider: Decider,
        busy: Callable[[], bool],
        ending: Interrupt,
    ) -> None:
        """`outbox` None: no points. `busy`: jobs run here."""
        self._archive, self._jobs = archive, jobs
        self._outbox, self._decider = outbox, decider
        self._busy, self._ending = busy, ending
        self._count = 0
        self._storing = ThreadPoolExecutor(1, thread_name_prefix="posted")
        self._stored: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._points = threading.Thread(target=self._write_points, name="posted", daemon=True)

    def start(self) -> None:
        """Start to write points."""
        if self._outbox is not None:
            self._points.start()

    def close(self) -> None:
        """End the threads; `ending` has come. orchestrator.influx.reindex writes the points that
        are left."""
        self._storing.shutdown()
        self._stored.put(None)
        if self._points.is_alive():
            self._points.join()

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place for one document from before its body is read until it is stored. Raise
        Problem if all are taken. Call it on the event loop."""
        if self._count >= AT_ONCE_MOST:
            raise Problem(
                503,
                "busy",
                f"{AT_ONCE_MOST} documents are being stored, the most at once; post it again",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def take(self, content: bytes, caller: Caller) -> PostedDocument:
        """Store a document unless it is there already.

        Raise UsageError for a body that is no document, Problem for one that this key may not post
        or whose job has another document, ResourceError without room, and RedisError.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._storing, self._store, content, caller)

    def _store(self, content: bytes, caller: Caller) -> PostedDocument:
        document = _checked(content)
        job, host = document.job.id, document.host.hostname
        assert document.digest is not None
        claimed = {host, document.job.hostname or host}
        if document.member is not None:
            claimed.add(document.member.node)
        if caller.host is not None and any(_plain(one) != _plain(caller.host) for one in claimed):
            raise Problem(
                403,
                "other_host",
                f"the key is that of {caller.host}, and the document is of {shown(host)}: post it "
                "with a key of the role poster",
            )
        answer = PostedDocument(id=job, host=host, digest=document.digest, is_new=False)
        directory = self._archive.directory(job)
        if _stored_digest(directory) == document.digest:
            return answer
        if self._archive.has(job) or self._jobs.view(job) is not None:
            raise Problem(
                409,
                "other_document",
                f"job {job} is there already, with another document or none yet; it stays as it is",
            )
        room = max(FREE_BYTES_LEAST, 2 * len(content))
        self._archive.results.create(document.suite.name, room, job)
        directory.keep(content, document)
        self._archive.keep(self._archive.as_measured(document.job))
        self._archive.index.note(document.job)
        if self._outbox is not None:
            self._stored.put(job)
        return answer.model_copy(update={"is_new": True})

    def _write_points(self) -> None:
        while (job := self._stored.get()) is not None:
            try:
                self._write_points_of(job)
            except Interrupted:
                return
            except Exception as error:  # noqa: BLE001 # of one document; the next ones have theirs
                # As for the jobs of the stack, reindex writes them.
                _log.warning("posted_points_left_out", job=job, reason=str(error))
            except asyncio.CancelledError:
                return  # the orchestrator ends

    def _write_points_of(self, job: str) -> None:
        assert self._outbox is not None
        document = self._archive.directory(job).load()
        points = [*document_points(document), job_point(self._archive.as_measured(document.job))]
        try:
            self._outbox.put(points)
        except RedisError:
            self._outbox.leave_out(len(points))
            raise
        if set(headline_workloads()).isdisjoint(case.workload for case in document.cases):
            return
        while self._busy():
            self._ending.wait(BUSY_PAUSE_S)
        self._outbox.put(decision_points(document, self._decider.of_job(job, self._ending)))


def _checked(content: bytes) -> ResultDocument:
    """Return the document of a job that has ended. Raise UsageError."""
    document = read_document(content, BODY, REMEDY)
    if document.digest is None:
        raise UsageError(
            f"{BODY} is a document of schema 1, which has no digest; measure again with this "
            "version of hostbench"
        )
    if not is_job_id(document.job.id):
        raise UsageError(f"{BODY} has {shown(document.job.id)} for the id of its job; {REMEDY}")
    if document.job.state not in ENDED:
        raise UsageError(
            f"{BODY} is of job {document.job.id}, which is {document.job.state}; post its document "
            "when it has ended"
        )
    begun = document.job.created_unix_s
    times = (begun, document.job.finished_unix_s or begun, submitted_unix_s(document.job.id))
    if not all(0 <= one <= time.time() + AHEAD_S_MOST for one in times):
        raise UsageError(
            f"{BODY} is of a time that is not possible: its job began at {begun:g} seconds since "
            "1970; set the clock of its host and measure again"
        )
    return document


def _plain(host: str) -> str:
    """Return the name of a host as pods have it."""
    return host.replace(".", "-")


def _stored_digest(directory: JobDirectory) -> str | None:
    """Return the digest that a stored document states, or None if there is none."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found = json.loads(directory.document.read_bytes()).get(DIGEST)
        return None if found is None else str(found)
    return None
