"""/console/links: a link that logs a browser in to the console."""

from fastapi import APIRouter, Request

from hostbench.model.jobs import ConsoleLink
from hostbench.web.problem import problem_responses
from orchestrator.api.common import Core
from orchestrator.sessions import LINK_S

router = APIRouter(tags=["console"])


@router.post(
    "/console/links",
    status_code=201,
    summary="Make a link to the console",
    description="The link logs a browser in with the key of this call. It works once, and only "
    "for a short time.",
    responses=problem_responses([401, 403, 503, 507]),
)
async def make_link(request: Request, core: Core) -> ConsoleLink:
    """POST /console/links."""
    token = await core.sessions.make_link(request.state.key)
    return ConsoleLink(path=f"/ui/login?link={token}", valid_s=LINK_S)
