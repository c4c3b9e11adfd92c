"""/compare: whether figures of stored jobs differ."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from hostbench.model.decision import Comparison
from hostbench.web.body import JSON
from hostbench.web.problem import problem_responses
from orchestrator.api.common import Core
from orchestrator.results.deciding import Question

MARGIN_LEAST, MARGIN_MOST = 0.001, 0.5
SIDE_CHARACTERS_MOST = 4000
Side = Annotated[
    str,
    Query(
        min_length=1,
        max_length=SIDE_CHARACTERS_MOST,
        description="Job ids, patterns of ids with *, latest or latest-2, with commas between.",
        examples=["latest"],
    ),
]
Time = Annotated[
    str | None,
    Query(max_length=40, description="A date such as 2026-11-20, or so long ago as 3d."),
]

router = APIRouter(tags=["decisions"])


@router.get(
    "/compare",
    summary="Whether figures of one set of jobs differ from those of another",
    response_class=Response,
    response_description="Side B beside side A.",
    responses={200: {"model": Comparison}, **problem_responses([401, 403, 422, 500, 503])},
)
async def compare(
    core: Core,
    a: Side,
    b: Side,
    host: Annotated[str | None, Query(max_length=64)] = None,
    suite: Annotated[str | None, Query(max_length=80)] = None,
    since: Time = None,
    until: Time = None,
    margin: Annotated[
        float | None,
        Query(
            ge=MARGIN_LEAST,
            le=MARGIN_MOST,
            description="Same means: surely within this share. Default: what figures of the "
            "subsystem are measured to.",
        ),
    ] = None,
) -> Response:
    """GET /compare."""
    question = Question(a=a, b=b, host=host, suite=suite, since=since, until=until, margin=margin)
    return Response(await core.decider.compare(question), media_type=JSON)
