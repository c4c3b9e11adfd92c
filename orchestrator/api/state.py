"""/healthz, /metrics and /points/rejected: the state of the orchestrator."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from hostbench.model.jobs import Health, RejectedPoint, RejectedPoints
from hostbench.web.problem import Problem, problem_responses
from orchestrator.api.common import Core
from orchestrator.core import Orchestrator
from orchestrator.influx.outbox import Outbox
from orchestrator.observe import health

# These calls take no key: monitoring of containers has none.
open_calls = APIRouter(tags=["health"])
router = APIRouter(tags=["health"])


@open_calls.get(
    "/healthz",
    summary="The state of each part",
    description=(
        "200 ok or degraded: jobs run. 503 down: no job can run, since Redis is not available; "
        "the orchestrator recovers by itself."
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
    responses=problem_responses([401, 403]),
)
def metrics(core: Core) -> Response:
    """GET /metrics."""
    return Response(core.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get(
    "/points/rejected",
    summary="The points that InfluxDB refused, newest first",
    responses=problem_responses([401, 403, 404, 503]),
)
def rejected(core: Core) -> RejectedPoints:
    """GET /points/rejected."""
    letters = _outbox(core).dead_letters()
    return RejectedPoints(points=[RejectedPoint.model_validate(letter) for letter in letters])


@router.delete(
    "/points/rejected",
    status_code=204,
    summary="Forget them, so that /healthz is ok again",
    responses=problem_responses([401, 403, 404, 503]),
)
def forget(core: Core) -> None:
    """DELETE /points/rejected."""
    _outbox(core).forget_dead_letters()


def _outbox(core: Orchestrator) -> Outbox:
    if core.points is None:
        raise Problem(404, "no_influxdb", "HOSTBENCH_INFLUXDB_URL is not set: no point is written")
    return core.points.outbox
