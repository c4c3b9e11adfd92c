"""All jobs: those in Redis, and those that exist only as results."""

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

from hostbench.base.errors import shown
from hostbench.model.jobs import JobList, JobView, StackState
from hostbench.results.ids import is_job_id, submitted_unix_s
from hostbench.web.problem import Problem
from orchestrator.queue.jobs import JobStore
from orchestrator.results.archive import Archive

BATCH = 1000
# The most bytes of suites in the specs of one answer: a job may carry a whole suite.
ANSWER_BYTES_MOST = 4 << 20
# A suite takes many times its bytes in memory, so only this many jobs are read before the bytes are
# counted.
READ_AT_ONCE = 10

Place = tuple[float, str]
Item = TypeVar("Item")


def unknown_job(job_id: str) -> Problem:
    """Return the Problem of a job that does not exist."""
    return Problem(404, "unknown_job", f"there is no job {shown(job_id)}; GET /jobs lists them")


class Catalogue:
    """Methods raise RedisError when Redis cannot be used."""

    def __init__(self, jobs: JobStore, archive: Archive) -> None:
        self._jobs = jobs
        self._archive = archive

    def view(self, job_id: str) -> JobView:
        """Return the job. Raise Problem when there is none."""
        if not is_job_id(job_id):
            raise unknown_job(job_id)
        view = self._jobs.view(job_id) or self._archive.view(job_id)
        if view is None:
            raise unknown_job(job_id)
        return view

    def page(
        self, state: StackState | None, host: str | None, limit: int, before: str | None
    ) -> JobList:
        """Return the newest jobs before one, in a state and on a host if these are given."""
        place = None if before is None else self._place(before)
        known = self._known(state, host, place)
        stored = self._stored(state, host, place)
        merged = heapq.merge(known, stored, key=lambda one: one[0], reverse=True)
        views, more = _within(self._views(merged), limit, ANSWER_BYTES_MOST)
        return JobList(jobs=views, next=views[-1].id if more else None, memory=self._jobs.memory())

    def _place(self, job_id: str) -> Place:
        return (self._jobs.submitted_unix_s(job_id) or submitted_unix_s(job_id), job_id)

    def _known(
        self, state: StackState | None, host: str | None, before: Place | None
    ) -> Iterator[tuple[Place, JobView | None]]:
        """Yield the jobs in Redis."""
        places = self._jobs.newest(state, None if before is None else before[0])
        if host is None:
            for place in places:
                yield place, None
            return
        for batch in _batches(places, BATCH):
            hosts = self._jobs.hosts_of([job_id for _, job_id in batch])
            for place, theirs in zip(batch, hosts, strict=True):
                if host in theirs:
                    yield place, None

    def _stored(
        self, state: StackState | None, host: str | None, before: Place | None
    ) -> Iterator[tuple[Place, JobView | None]]:
        """Yield the jobs that are only in the results directory."""
        for batch in _batches(self._archive.newest(before), BATCH):
            known = self._jobs.knows([job_id for _, job_id in batch])
            for place in (one for one in batch if one[1] not in known):
                view = self._archive.view(place[1])
                if view is None or (state is not None and view.state is not state):
                    continue
                if host is None or host in view.hosts:
                    yield place, view

    def _views(self, found: Iterable[tuple[Place, JobView | None]]) -> Iterator[JobView]:
        for batch in _batches(found, READ_AT_ONCE):
            known = self._jobs.views([job_id for (_, job_id), view in batch if view is None])
            by_id = {view.id: view for view in known}
            for (_, job_id), view in batch:
                if (one := view or by_id.get(job_id)) is not None:
                    yield one


def _within(views: Iterable[JobView], most: int, most_bytes: int) -> tuple[list[JobView], bool]:
    """Return as many of them as fit, at least one, and whether there are more."""
    kept: list[JobView] = []
    for view in views:
        inline = view.spec is not None and not isinstance(view.spec.suite, str | None)
        most_bytes -= len(view.model_dump_json()) if inline else 0
        if kept and (len(kept) == most or most_bytes < 0):
            return kept, True
        kept.append(view)
    return kept, False


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
