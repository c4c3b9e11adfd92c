"""/suites: the suites that jobs may name."""

from typing import Annotated

from fastapi import APIRouter, Path

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.jobs import SuiteList, SuiteView
from hostbench.model.suite import Suite
from hostbench.plan.suite import built_in_suites, load_known_suite
from hostbench.web.problem import Problem, problem_responses

router = APIRouter(tags=["suites"])


@router.get("/suites", summary="The suites by name", responses=problem_responses([401, 403]))
def suites() -> SuiteList:
    """GET /suites."""
    views = []
    for name, path in built_in_suites().items():
        try:
            found = load_known_suite(path)
            views.append(
                SuiteView(name=name, description=found.description, scales=list(found.scales))
            )
        except UsageError as error:
            views.append(SuiteView(name=name, description=None, problem=error.message))
    return SuiteList(suites=views)


@router.get(
    "/suites/{name:path}",
    summary="A suite in full",
    responses=problem_responses([401, 403, 404, 422]),
)
def suite(name: Annotated[str, Path(max_length=80, examples=["quick"])]) -> Suite:
    """GET /suites/{name}."""
    known = built_in_suites()
    if name not in known:
        raise Problem(
            404,
            "unknown_suite",
            f"there is no suite {shown(name)}; {did_you_mean(name, known)}give {listing(known)}",
        )
    return load_known_suite(known[name])
