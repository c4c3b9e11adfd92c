"""/compare, /hosts/{host}/history, /baselines and /jobs/{id}/baseline: answers about several jobs
together."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from hostbench.base.errors import shown
from hostbench.model.baseline import BaselineList, HostCheck
from hostbench.model.decision import Comparison, FigureKind, HostHistory
from hostbench.model.service import HostName
from hostbench.web.body import JSON
from hostbench.web.problem import Problem, problem_responses
from orchestrator.api.common import Core, Job
from orchestrator.api.results import directory_of
from orchestrator.results.questions import (
    BaselineQuestion,
    BaselinesQuestion,
    CompareQuestion,
    HistoryQuestion,
)

MARGIN_LEAST, MARGIN_MOST = 0.001, 0.5
SIDE_CHARACTERS_MOST = 4000
Side = Annotated[
    str,
    Query(
        min_length=1,
        max_length=SIDE_CHARACTERS_MOST,
        description="Job ids, patterns of ids with *, latest or latest-2, host=NAME, or a time "
        "such as 2026-11-01..2026-11-20 or 3d.., separated by commas.",
        examples=["latest"],
    ),
]
Time = Annotated[
    str | None,
    Query(max_length=40, description="A date such as 2026-11-20, or an age such as 3d."),
]

SuiteFilter = Annotated[str | None, Query(max_length=80, description="Only jobs of this suite.")]

router = APIRouter(tags=["decisions"])


@router.get(
    "/compare",
    summary="Whether figures of one set of jobs differ from those of another",
    response_class=Response,
    response_description="Side B compared with side A.",
    responses={200: {"model": Comparison}, **problem_responses([401, 403, 422, 500, 503])},
)
async def compare(
    core: Core,
    a: Side,
    b: Side,
    host: Annotated[str | None, Query(max_length=64)] = None,
    suite: SuiteFilter = None,
    since: Time = None,
    until: Time = None,
    margin: Annotated[
        float | None,
        Query(
            ge=MARGIN_LEAST,
            le=MARGIN_MOST,
            description="A change that is certainly below this share counts as same. Default: 0.02 "
            "to 0.1, by the subsystem.",
        ),
    ] = None,
) -> Response:
    """GET /compare."""
    question = CompareQuestion(
        a=a, b=b, host=host, suite=suite, since=since, until=until, margin=margin
    )
    return Response(await core.decider.answer(question), media_type=JSON)


@router.get(
    "/hosts/{host}/history",
    summary="The figures of a host over its stored jobs, and when they changed",
    response_class=Response,
    response_description="The case, or all headline cases of the host if none is given.",
    responses={200: {"model": HostHistory}, **problem_responses([401, 403, 404, 422, 500, 503])},
)
async def history(
    core: Core,
    host: Annotated[HostName, Path()],
    case: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=300,
            description="A title of a case or its beginning, a workload that has one case, or a "
            "case's hash.",
        ),
    ] = None,
    suite: SuiteFilter = None,
    since: Time = None,
    until: Time = None,
    figure: Annotated[
        FigureKind | None,
        Query(description="Default: undisturbed, if the case has it."),
    ] = None,
) -> Response:
    """GET /hosts/{host}/history."""
    question = HistoryQuestion(
        host=host, case=case, suite=suite, since=since, until=until, figure=figure
    )
    found = await core.decider.answer(question)
    if not found:
        raise Problem(
            404,
            "unknown_host",
            f"no stored job is of a host {shown(host)}; GET /jobs lists jobs with their hosts",
        )
    return Response(found, media_type=JSON)


@router.get(
    "/baselines",
    summary="The baselines that this orchestrator finds",
    response_class=Response,
    responses={200: {"model": BaselineList}, **problem_responses([401, 403, 500, 503])},
)
async def baselines(core: Core) -> Response:
    """GET /baselines."""
    return Response(await core.decider.answer(BaselinesQuestion()), media_type=JSON)


@router.get(
    "/jobs/{job_id}/baseline",
    summary="The host of a job compared with the baseline of its model, or with its limits",
    response_class=Response,
    responses={200: {"model": HostCheck}, **problem_responses([401, 403, 404, 409, 422, 500, 503])},
)
async def baseline(job: Job, core: Core) -> Response:
    """GET /jobs/{id}/baseline."""
    directory_of(core, job)
    return Response(await core.decider.answer(BaselineQuestion(job=job.id)), media_type=JSON)
