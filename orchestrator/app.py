"""The application: the calls around one orchestrator."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import structlog
from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse
from redis.exceptions import OutOfMemoryError, RedisError
from starlette.concurrency import run_in_threadpool

import hostbench
from hostbench.model.jobs import JobSpec
from hostbench.model.service import Registration
from hostbench.web.audit import LOOKS, Audit
from hostbench.web.body import BodyLimit, describe_bodies
from hostbench.web.keys import Caller, KeyRing, NamedKeys, OwnKey, Role, requires
from hostbench.web.problem import Problem, install_problem_handlers
from orchestrator.api import (
    decisions,
    documents,
    events,
    hosts,
    jobs,
    links,
    results,
    state,
    suites,
)
from orchestrator.console.app import create_console
from orchestrator.console.help_pages import REFERENCE
from orchestrator.console.visitor import HOME
from orchestrator.core import Orchestrator
from orchestrator.run.posted import DOCUMENT_BYTES_MOST
from orchestrator.settings import Settings

BODY_BYTES_MOST = 1 << 20
RETRY_AFTER_S = 5
# The name in the audit log for the key in secrets/api_key.
ENV_KEY = "api_key"
DESCRIPTION = """\
Queues benchmark jobs, runs one at a time on an idle host, and serves their results.

Every call but GET /healthz takes a key: `Authorization: Bearer KEY`. Refusals are problem details
(RFC 9457): `code` is for programs, `detail` for people, `errors` name the fields.
"""

log = structlog.get_logger()


def create_app(settings: Settings) -> FastAPI:
    """Return the application. `app.state.core` is its orchestrator, which runs while it serves."""
    core = Orchestrator(settings)
    app = FastAPI(
        title="hostbench orchestrator",
        description=DESCRIPTION,
        version=hostbench.__version__,
        lifespan=lambda _app: _living(core),
        openapi_url=None,  # with a key, below
        docs_url=None,
        redoc_url=None,
    )
    app.state.core = core
    app.add_middleware(BodyLimit, most=BODY_BYTES_MOST, others={"/documents": DOCUMENT_BYTES_MOST})
    app.add_middleware(Audit)
    install_problem_handlers(app)
    app.add_exception_handler(RedisError, _redis_away)
    app.add_exception_handler(OutOfMemoryError, _redis_full)
    ring = _key_ring(settings, core)
    _add_calls(app, ring)
    _add_console(app, ring)
    describe_bodies(app, JobSpec, Registration)
    return app


def _key_ring(settings: Settings, core: Orchestrator) -> KeyRing:
    # The previous key is no longer accepted: it may have been lost.
    own = OwnKey(
        settings.api_key.get_secret_value(),
        settings.api_key_file,
        Caller(ENV_KEY, Role.OPERATOR),
        before_s=0.0,
    )
    named = [NamedKeys(settings.keys_file).known] if settings.keys_file else []
    return KeyRing(own.known, core.host_keys.known, *named)


def _add_calls(app: FastAPI, ring: KeyRing) -> None:
    app.include_router(state.open_calls)
    looks, changes = requires(ring, Role.VIEWER, Role.OPERATOR), requires(ring, Role.OPERATOR)

    async def user(request: Request) -> None:
        await (looks if request.method in LOOKS else changes)(request)

    for module in (jobs, events, results, decisions, hosts, suites, state):
        app.include_router(module.router, dependencies=[Depends(user)])
    in_browsers = requires(ring, Role.VIEWER, Role.OPERATOR, in_browsers=True)
    app.include_router(results.pages, dependencies=[Depends(in_browsers)])
    # A viewer may make a link, too: it opens the console for the same key.
    app.include_router(links.router, dependencies=[Depends(looks)])
    app.include_router(hosts.registrations, dependencies=[Depends(requires(ring, Role.SERVICE))])
    posters = requires(ring, Role.OPERATOR, Role.POSTER, Role.SERVICE)
    app.include_router(documents.router, dependencies=[Depends(posters)])
    _describe(app, ring)


def _add_console(app: FastAPI, ring: KeyRing) -> None:
    @app.get("/", include_in_schema=False)
    async def home() -> RedirectResponse:
        return RedirectResponse(HOME, 303)

    app.mount("/ui", create_console(app.state.core, ring, lambda: app.openapi()))


def _describe(app: FastAPI, ring: KeyRing) -> None:
    keyed = [Depends(requires(ring, *Role, in_browsers=True))]

    # In a thread, because the first call takes a good part of a second.
    @app.get("/openapi.json", dependencies=keyed, include_in_schema=False)
    def document() -> dict[str, Any]:
        return app.openapi()

    # The page that FastAPI makes loads its scripts from another site.
    @app.get("/docs", include_in_schema=False)
    async def page() -> RedirectResponse:
        return RedirectResponse(REFERENCE, 303)


@contextlib.asynccontextmanager
async def _living(core: Orchestrator) -> AsyncIterator[None]:
    core.start()
    if core.settings.console is not None:
        log.info("console", at=core.settings.console, logged_in="hostbench console --open")
    try:
        yield
    finally:
        await run_in_threadpool(core.close)
        await core.redis_async.aclose()


async def _redis_full(_request: Request, error: Exception) -> JSONResponse:
    return Problem(507, "redis_full", str(error)).response()


async def _redis_away(_request: Request, error: Exception) -> JSONResponse:
    return Problem(
        503,
        "redis_away",
        f"Redis cannot be used: {error}; jobs that were accepted are kept, try again later",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    ).response()
