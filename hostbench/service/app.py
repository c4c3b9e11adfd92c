"""The application of a service, by name."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from fastapi import Depends, FastAPI

import hostbench
from hostbench.model.service import SessionRequest, TrialRequest
from hostbench.model.table import Table
from hostbench.service.api import Service, add_calls
from hostbench.service.settings import Settings, read_settings
from hostbench.web.body import BodyLimit, describe_bodies
from hostbench.web.keys import Role, requires
from hostbench.web.problem import install_problem_handlers

BODY_BYTES_MOST = 64 << 10
_log = structlog.get_logger()


def create_app(name: str, settings: Settings | None = None) -> FastAPI:
    """Return the service of subsystem `name`; `settings` None: those of the environment.

    Raise UsageError or ResourceError. `app.state.service` is the Service behind it.
    """
    service = Service(settings or read_settings(name))
    app = FastAPI(
        title=f"hostbench {name} service",
        summary="Trials of one subsystem on one host.",
        version=hostbench.__version__,
        lifespan=lambda _app: _living(service),
        openapi_url=None,  # with a key, below
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.add_middleware(BodyLimit, most=BODY_BYTES_MOST)
    install_problem_handlers(app)
    add_calls(app, service)
    sessions = [SessionRequest] if service.subsystem.has_far_ends else []
    describe_bodies(app, TrialRequest, *sessions)
    app.add_api_route(
        "/openapi.json",
        lambda: app.openapi(),
        dependencies=[Depends(requires(service.ring, Role.SERVICE))],
        include_in_schema=False,
    )
    return app


@contextlib.asynccontextmanager
async def _living(service: Service) -> AsyncIterator[None]:
    tasks = []
    reason = nothing_runs(service.program.as_loaded.table)
    if reason is not None:
        _log.warning("nothing_runs_here", reason=reason)
    if service.registrar is not None:
        tasks.append(asyncio.create_task(service.registrar.run(), name="registration"))
    try:
        yield
    finally:
        service.end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def nothing_runs(table: Table) -> str | None:
    """Return why no workload of a program can run on this host, such as a missing GPU; None: some
    can."""
    reasons = [workload.unsupported for workload in table.workloads]
    return None if None in reasons else reasons[0]
