"""/hosts and /workloads: the registered hosts, and what they can measure."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from hostbench.model.jobs import HostList, HostView, ServiceView, WorkloadList
from hostbench.model.service import Registered, Registration
from hostbench.web.body import accepts, json_body
from hostbench.web.problem import problem_responses
from orchestrator.api.common import Core
from orchestrator.queue.hosts import HostFacts, HostState

_EXAMPLES: dict[str, Any] = {
    "cpu": {
        "host": "bench-1",
        "subsystem": "cpu",
        "url": "http://cpu:8001",
        "instance": "5d41402abc4b2a76",
    }
}

router = APIRouter(tags=["hosts"])
# These calls take the services' key.
registrations = APIRouter(tags=["hosts"])


@registrations.post(
    "/hosts",
    summary="Register a service of a host, or renew its registration",
    description=(
        "Needs the key of the host. The orchestrator fetches table and host of a new service."
    ),
    responses=problem_responses([401, 403, 409, 413, 422, 503]),
    openapi_extra=accepts(Registration, _EXAMPLES),
)
def register(
    request: Request,
    registration: Annotated[Registration, Depends(json_body(Registration))],
    core: Core,
) -> Registered:
    """POST /hosts."""
    return core.registrar.register(registration, request.state.caller)


@router.get("/hosts", summary="The hosts", responses=problem_responses([401, 403, 503]))
def hosts(core: Core) -> HostList:
    """GET /hosts."""
    views = []
    for state in core.hosts.states():
        facts = core.hosts.facts(state)
        inventory = facts.inventory if facts else core.hosts.last_inventory(state.name)
        views.append(
            HostView(
                name=state.name,
                state="gone" if facts is None else "busy" if state.job else "idle",
                job=state.job,
                services=_services(state, facts),
                inventory=inventory,
            )
        )
    return HostList(hosts=views)


def _services(state: HostState, facts: HostFacts | None) -> list[ServiceView]:
    if facts is None:
        return []
    return [
        ServiceView(
            subsystem=service.subsystem,
            url=service.url,
            program=facts.tables[service.subsystem].program,
            renewed_unix_s=service.renewed_unix_s,
        )
        for service in state.services
        if service.subsystem in facts.tables
    ]


@router.get(
    "/workloads",
    summary="What each registered host can measure",
    responses=problem_responses([401, 403, 503]),
)
def workloads(core: Core) -> WorkloadList:
    """GET /workloads."""
    known = {state.name: core.hosts.facts(state) for state in core.hosts.states()}
    return WorkloadList(
        hosts={
            name: [answer.table for answer in facts.tables.values()]
            for name, facts in known.items()
            if facts is not None
        }
    )
