"""/points/rejected: what InfluxDB refused, until somebody has seen to it."""

from fastapi import APIRouter

from hostbench.model.jobs import RejectedPoint, RejectedPoints
from hostbench.web.problem import Problem, problem_responses
from orchestrator.api.common import Core
from orchestrator.core import Orchestrator
from orchestrator.influx.outbox import Outbox

router = APIRouter(tags=["health"])


@router.get(
    "/points/rejected",
    summary="The points that InfluxDB refused, newest first",
    responses=problem_responses([401, 404, 503]),
)
def rejected(core: Core) -> RejectedPoints:
    """GET /points/rejected."""
    letters = _outbox(core).dead_letters()
    return RejectedPoints(points=[RejectedPoint.model_validate(letter) for letter in letters])


@router.delete(
    "/points/rejected",
    status_code=204,
    summary="Forget them, so that /healthz is ok again",
    responses=problem_responses([401, 404, 503]),
)
def forget(core: Core) -> None:
    """DELETE /points/rejected."""
    _outbox(core).forget_dead_letters()


def _outbox(core: Orchestrator) -> Outbox:
    if core.points is None:
        raise Problem(404, "no_influxdb", "HOSTBENCH_INFLUXDB_URL is not set: no point is written")
    return core.points.outbox
