"""/documents: result documents that were measured elsewhere, such as on the nodes of a campaign."""

from fastapi import APIRouter, Request, Response

from hostbench.model.jobs import PostedDocument
from hostbench.web.body import JSON
from hostbench.web.problem import problem_responses
from orchestrator.api.common import Core

# This call takes the key of an operator, of a poster, or of a host.
router = APIRouter(tags=["jobs"])
_BODY = {
    "requestBody": {
        "required": True,
        "description": "A result.json as hostbench wrote it.",
        "content": {JSON: {"schema": {"type": "object"}}},
    }
}


@router.post(
    "/documents",
    status_code=201,
    summary="Store a document that was measured elsewhere",
    description=(
        "The job, its figures and its host then appear like those of the stack's own jobs. The "
        "orchestrator knows a document by its digest: a second POST of the same document changes "
        "nothing."
    ),
    responses={
        200: {"model": PostedDocument, "description": "The same document is stored already."},
        **problem_responses([401, 403, 409, 413, 422, 503]),
    },
    openapi_extra=_BODY,
)
async def post(request: Request, response: Response, core: Core) -> PostedDocument:
    """POST /documents."""
    with core.posted.place():
        answer = await core.posted.take(await request.body(), request.state.caller)
    response.headers["Location"] = f"/jobs/{answer.id}"
    if not answer.is_new:
        response.status_code = 200
    return answer
