"""/jobs/{id}/result and /report: the results of a job."""

import contextlib
import os
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from hostbench.model.jobs import TERMINAL, JobView, StackState
from hostbench.model.result import ResultDocument
from hostbench.results.store import CSV, JobDirectory
from hostbench.web.body import JSON
from hostbench.web.problem import Problem, problem_responses
from orchestrator.api.common import Core, Job
from orchestrator.core import Orchestrator

HTML, CSV_TYPE = "text/html", "text/csv"
CHUNK_BYTES = 1 << 18
# The page has no script and loads nothing, and the browser must not let a suite's texts do so.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_REPORT: dict[int | str, dict[str, Any]] = {
    200: {"description": "One page, complete in itself.", "content": {HTML: {}}}
}
_RESULT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The document; of a job that has not ended, what it measured so far.",
        "model": ResultDocument,
        "content": {CSV_TYPE: {"schema": {"type": "string"}}},
    }
}

router = APIRouter(tags=["jobs"])
# For people who follow a link from a board.
pages = APIRouter(tags=["jobs"])


@router.get(
    "/jobs/{job_id}/result",
    summary="The result document",
    response_class=Response,
    responses={**_RESULT, **problem_responses([401, 403, 404, 409, 422, 500, 503])},
)
async def result(
    job: Job,
    core: Core,
    form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> Response:
    """GET /jobs/{id}/result."""
    directory = directory_of(core, job)
    kept = directory.document if form == "json" else directory.path / CSV
    # A resumption removes the file; once opened, it is still sent to its end.
    with contextlib.suppress(FileNotFoundError):
        return _sent(kept.open("rb"), JSON if form == "json" else CSV_TYPE)
    made = await core.reporter.document(directory, form)
    return Response(made, media_type=JSON if form == "json" else CSV_TYPE)


@pages.get(
    "/jobs/{job_id}/report",
    summary="The result as a page",
    response_class=HTMLResponse,
    responses={**_REPORT, **problem_responses([401, 403, 404, 409, 422, 500, 503])},
)
async def report(job: Job, core: Core) -> Response:
    """GET /jobs/{id}/report."""
    page = await core.reporter.page(directory_of(core, job), keep=job.state in TERMINAL)
    return HTMLResponse(page, headers=_PAGE_HEADERS)


def directory_of(core: Orchestrator, job: JobView) -> JobDirectory:
    """Return the job's files. Raise Problem when it has measured nothing."""
    if not core.archive.has(job.id):
        raise Problem(
            409,
            "no_result",
            f"job {job.id} is {job.state}, and its result is no longer kept"
            if job.state is StackState.SUCCEEDED
            else f"job {job.id} is {job.state} and has measured nothing"
            + ("" if job.state in TERMINAL else " yet"),
            state=job.state,
        )
    return core.archive.directory(job.id)


def _sent(file: BinaryIO, media_type: str) -> Response:
    headers = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
    return StreamingResponse(_chunks(file), media_type=media_type, headers=headers)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from iter(lambda: file.read(CHUNK_BYTES), b"")
