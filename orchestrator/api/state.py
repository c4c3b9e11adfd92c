"""/healthz and /metrics: how the orchestrator is."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from hostbench.model.jobs import Health
from hostbench.web.problem import problem_responses
from orchestrator.api.common import Core
from orchestrator.observe.health import health

# Without a key: what watches over containers has none.
open_calls = APIRouter(tags=["health"])
router = APIRouter(tags=["health"])


@open_calls.get(
    "/healthz",
    summary="How each part is",
    description=(
        "200 ok or degraded: jobs run. 503 down: none can, since Redis is away; it recovers by "
        "itself."
    ),
    responses={503: {"model": Health, "description": "No job can run."}},
)
async def healthz(core: Core, response: Response) -> Health:
    """GET /healthz."""
    answer = await health(core.checks())
    if answer.status == "down":
        response.status_code = 503
    return answer


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=PlainTextResponse,
    responses=problem_responses([401]),
)
def metrics(core: Core) -> Response:
    """GET /metrics."""
    return Response(core.metrics.text(), media_type=CONTENT_TYPE_LATEST)
