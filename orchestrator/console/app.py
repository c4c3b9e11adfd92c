"""The console's application, which the orchestrator mounts below /ui/."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from redis.exceptions import OutOfMemoryError, RedisError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from hostbench.base.errors import HostbenchError, listing, shown
from hostbench.web.audit import LOOKS
from hostbench.web.keys import KeyRing
from hostbench.web.problem import Problem, as_problem
from orchestrator.console import (
    compare,
    doctor,
    help_pages,
    history,
    hosts,
    job,
    login,
    new,
    results,
)
from orchestrator.console.comparisons import RecentComparisons
from orchestrator.console.headers import Headers
from orchestrator.console.live import Feeds
from orchestrator.console.shell import (
    NAVIGATION,
    StackHealth,
    View,
    environment,
    rendered,
    wants_json,
)
from orchestrator.console.static_files import Files
from orchestrator.console.visitor import (
    HOME,
    NotLoggedIn,
    Visitor,
    login_path,
    visitor_of,
)
from orchestrator.core import Orchestrator

# What to do about a refusal is in its own sentence; these stand above it.
_TITLES = {
    403: "Not allowed",
    404: "Not found",
    405: "Not possible",
    422: "Not valid",
    429: "Too much at once",
    503: "Not available now",
    507: "No room",
}


class ErrorView(View):
    """Why there is no page: `detail` says what to do."""

    status: int
    code: str
    detail: str


def create_console(
    core: Orchestrator, ring: KeyRing, schema: Callable[[], dict[str, Any]]
) -> FastAPI:
    """Return the application for the pages of an orchestrator. `ring`: the keys of its users;
    `schema`: returns the OpenAPI schema of its calls."""
    app = FastAPI(title="hostbench console", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.core = core
    app.state.ring = ring
    app.state.schema = schema
    app.state.health = StackHealth(core)
    app.state.comparisons = RecentComparisons(core.settings.results, core.decider)
    app.state.feeds = Feeds(core)
    app.state.templates = environment(core.settings.grafana_url)
    app.add_middleware(Headers)
    app.mount("/static", Files())
    for module in (login, hosts, new, job, results, compare, history, doctor, help_pages):
        app.include_router(module.router)
    app.add_api_route("/", _home, methods=["GET"])
    for kind in (Problem, HostbenchError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(OutOfMemoryError, _redis_full)
    app.add_exception_handler(RedisError, _redis_away)
    app.add_exception_handler(NotLoggedIn, _not_logged_in)
    return app


async def _home() -> Response:
    return RedirectResponse(HOME, 303)


async def _refused(request: Request, error: Exception) -> Response:
    no_page = isinstance(error, HTTPException) and error.status_code in (404, 405)
    problem = as_problem(error)
    return await _error_page(request, _no_page(request, problem) if no_page else problem)


def _no_page(request: Request, problem: Problem) -> Problem:
    """Return the refusal of an address without a page, or of a method that it does not take."""
    path, details = shown(request.url.path), problem.details
    pages = listing(section.title for section in NAVIGATION)
    wrong = (
        f"there is no page {path}"
        if request.method in LOOKS
        else f"{path} does not take {request.method}"
    )
    return Problem(details.status, details.code, f"{wrong}; open {pages}", headers=problem.headers)


async def _redis_full(request: Request, error: Exception) -> Response:
    return await _error_page(request, Problem(507, "redis_full", str(error)))


async def _redis_away(request: Request, error: Exception) -> Response:
    detail = (
        f"Redis cannot be used: {str(error).rstrip('.')}; accepted jobs are kept. Try again in "
        "some seconds; you can still read stored results"
    )
    return await _error_page(request, Problem(503, "redis_away", detail))


async def _not_logged_in(request: Request, _error: Exception) -> Response:
    if wants_json(request):
        detail = "log in, or send the key as Authorization: Bearer KEY"
        headers = {"WWW-Authenticate": "Bearer"}
        return Problem(401, "unauthorized", detail, headers=headers).response()
    if "hx-request" in request.headers:
        # A part of a page cannot be the login: the whole page goes there.
        return Response(status_code=401, headers={"HX-Redirect": login_path(request)})
    return RedirectResponse(login_path(request), 303)


async def _error_page(request: Request, problem: Problem) -> Response:
    if wants_json(request):
        return problem.response()
    details = problem.details
    view = ErrorView(
        title=_TITLES.get(details.status, details.title),
        status=details.status,
        code=details.code,
        detail=details.detail,
    )
    answer = await rendered(
        request, "error.html.j2", view, await _visitor_or_none(request), details.status
    )
    answer.headers.update(problem.headers or {})
    return answer


async def _visitor_or_none(request: Request) -> Visitor | None:
    try:
        return await visitor_of(request, request.app.state.core)
    except (NotLoggedIn, Problem):
        return None
