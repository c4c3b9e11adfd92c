"""What the calls share."""

from typing import Annotated

from fastapi import Depends, Path, Request

from hostbench.model.jobs import JobView
from orchestrator.core import Orchestrator


def core_of(request: Request) -> Orchestrator:
    """The orchestrator behind this application."""
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
    """The job that the path names. Raise Problem when there is none."""
    return core.catalogue.view(job_id)


Job = Annotated[JobView, Depends(job_of)]
