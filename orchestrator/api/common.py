"""What the calls share."""

from typing import Annotated

from fastapi import Depends, Path, Request, Response
from pydantic import BaseModel

from hostbench.model.jobs import JobView
from hostbench.web.body import JSON
from orchestrator.core import Orchestrator


def core_of(request: Request) -> Orchestrator:
    """Return the orchestrator behind this application."""
    core = request.app.state.core
    assert isinstance(core, Orchestrator)
    return core


Core = Annotated[Orchestrator, Depends(core_of)]
JobId = Annotated[
    str,
    Path(
        description="As POST /jobs gave it.",
        max_length=200,
        examples=["20261120T174501Z-quick-3f2a"],
    ),
]


def job_of(job_id: JobId, core: Core) -> JobView:
    """Return the job in the path. Raise Problem when there is none."""
    return core.catalogue.view(job_id)


Job = Annotated[JobView, Depends(job_of)]


def as_json(answer: BaseModel, status: int = 200, **headers: str) -> Response:
    """Return an answer that may be large, already as JSON.

    The call makes it in its own thread. FastAPI would make it on the event loop, which takes 20 ms
    for a job with a suite of 5,000 entries.
    """
    return Response(answer.model_dump_json(), status, headers, media_type=JSON)
