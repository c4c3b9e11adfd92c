"""The calls of a service: docs/service.md."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host.idle import LocalWatch
from hostbench.host.inventory import inventory
from hostbench.host.lock import Claim, check_lock, held_outside
from hostbench.host.scratch import check_scratch, has_scratch
from hostbench.model.host import HostInventory
from hostbench.model.registry import find_subsystem
from hostbench.model.service import (
    IdleAnswer,
    IpAddress,
    LockAnswer,
    Refusal,
    RouteAnswer,
    ServiceTable,
    SessionRequest,
    TrialRequest,
)
from hostbench.programs.program import Program
from hostbench.programs.subsystem import tools_of
from hostbench.service.admission import admitted
from hostbench.service.metrics import SESSION, TRIAL, Metrics
from hostbench.service.registration import Registrar
from hostbench.service.runner import NDJSON, TrialRunner, TrialStream
from hostbench.service.sessions import admitted_session, route
from hostbench.service.settings import Settings
from hostbench.service.trial import AdmittedCall, Work
from hostbench.service.work import InstalledProgram, TrialWork
from hostbench.web.body import accepts, json_body
from hostbench.web.keys import KeyRing, OwnKey, Role, requires
from hostbench.web.problem import Problem, problem_responses

WINDOW_S_LEAST, WINDOW_S_MOST = 0.1, 10.0
_EXAMPLES: Mapping[str, Any] = {
    "by hand": {
        "id": "by-hand-1",
        "workload": "fma",
        "params": {"dtype": "fp64", "threads": 1, "duration_s": 1},
    },
    "of a job": {
        "id": "20261120T174501Z-quick-3f2a-5d41402abc4b2a76-0-9b1d",
        "workload": "fma",
        "params": {"dtype": "fp64", "threads": 1, "duration_s": 10},
        "timeout_s": 60,
        "fence": 1795197901000,
        "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    },
    "a peer": {
        "id": "by-hand-2",
        "tool": "likwid-bench",
        "workload": "fma",
        "params": {"dtype": "fp64", "isa": "avx2", "threads": 1},
        "beside": {"cpus": [0], "rate": 5.1e10, "elapsed_s": 1.0},
    },
}
_SESSION_EXAMPLES: Mapping[str, Any] = {
    "by hand": {
        "id": "by-hand-1",
        "allowed_address": "192.0.2.7",
        "duration_s": 20,
        "streams": 4,
    },
    "of a job": {
        "id": "20261120T174501Z-quick-3f2a-5d41402abc4b2a76-0-9b1d-far",
        "allowed_address": "192.0.2.7",
        "duration_s": 20,
        "streams": 4,
        "rate": 1.25e8,
        "fence": 1795197901000,
    },
    "a peer's server": {
        "id": "by-hand-2",
        "tool": "iperf3",
        "workload": "tcp_stream",
        "params": {"streams": 1},
        "allowed_address": "192.0.2.7",
        "duration_s": 20,
    },
}
_STREAM = (
    '{"event":"start","schema":1,"program":"cpu-bench","workload":"fma", …}\n'
    '{"event":"end","metrics":{"operations_per_second":1.1e11, …}, …}\n'
    '{"event":"control_plane","processes":[{"component":"service","cpu_s":0.004,'
    '"elapsed_s":1.2,"written_bytes":0}]}\n'
)
_SESSION_STREAM = (
    '{"event":"session","address":"192.0.2.8","port":45123,"token":"5d41402abc4b2a76…"}\n'
    '{"event":"session_end","outcome":"done","reason":null,"strangers":0,"cpu_s":3.1}\n'
    '{"event":"control_plane","processes":[…]}\n'
)
# A look reads /proc twice; many at a time would themselves be a load.
PROBES_MOST = 4


def _streamed(what: str, example: str) -> dict[int | str, dict[str, Any]]:
    content = {NDJSON: {"schema": {"type": "string"}, "example": example}}
    return {
        200: {
            "description": f"The {what}'s events as they come; the last one is `control_plane`.",
            "content": content,
        }
    }


class IdleProbes:
    """GET /idle: looks of some seconds at how busy the host is, each in a thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(PROBES_MOST, thread_name_prefix="look")
        self._interrupts: set[Interrupt] = set()

    async def look(self, seconds: float) -> IdleAnswer:
        """Return how busy the host is. Raise Problem when there are too many looks already, or when
        the service ends."""
        if len(self._interrupts) >= PROBES_MOST:
            raise Problem(
                429,
                "too_many",
                f"{PROBES_MOST} looks are under way, the most at a time; ask again in a second",
                headers={"Retry-After": "1"},
            )
        interrupt = Interrupt()
        self._interrupts.add(interrupt)
        loop = asyncio.get_running_loop()
        look = loop.run_in_executor(self._threads, LocalWatch(window_s=seconds).look, interrupt)
        try:
            # Shielded, so that the descriptors are closed only after the thread has finished with
            # them.
            return await asyncio.shield(look)
        except Interrupted:
            raise Problem(503, Refusal.LACKING, "the service is stopping") from None
        except asyncio.CancelledError:
            interrupt.trip()
            raise
        finally:
            look.add_done_callback(lambda _: self._close(interrupt))

    def _close(self, interrupt: Interrupt) -> None:
        self._interrupts.discard(interrupt)
        interrupt.close()

    def end_all(self) -> None:
        """End every look; return at once."""
        for interrupt in tuple(self._interrupts):
            interrupt.trip()


class Service:
    """What the calls share, for as long as the process lives."""

    def __init__(self, settings: Settings) -> None:
        """Raise ResourceError when the program, the lock file or, if the program needs one, the
        scratch directory cannot be used."""
        self.settings = settings
        key = OwnKey(settings.service_key.get_secret_value(), settings.service_key_file)
        self.ring = KeyRing(key.known)
        self.subsystem = find_subsystem(settings.subsystem)
        check_lock(settings.lock)
        self.program = InstalledProgram(settings.subsystem)
        if self.has_scratch:
            check_scratch()
        version = self.program.as_loaded.version
        self.metrics = Metrics(settings.host, version, settings.lock)
        self.runner = TrialRunner(self.metrics)
        self.idle_probes = IdleProbes()
        self.registrar: Registrar | None = None
        if settings.orchestrator_url is not None:
            self.registrar = Registrar(settings, key, self.runner, self.metrics)

    @property
    def has_scratch(self) -> bool:
        """Whether its program works on files in the scratch directory."""
        return has_scratch(self.program.as_loaded.table)

    @property
    def is_ready(self) -> bool:
        """Whether jobs can reach it: with an orchestrator, whether that has accepted it once."""
        return self.registrar is None or self.registrar.has_registered

    def end(self) -> None:
        """End what runs and start nothing new; return at once."""
        self.runner.end_all()
        self.idle_probes.end_all()

    def stream(self, kind: str, request: TrialRequest | SessionRequest, work: Work) -> Response:
        """Start one of hostbench.service.metrics.KINDS. Raise Problem or ResourceError."""
        settings = self.settings
        claim = Claim(request.id, settings.subsystem, settings.host, request.fence)
        call = AdmittedCall(kind, request, claim, settings.lock, work)
        return TrialStream(*self.runner.begin(call))

    async def current_program(self) -> Program:
        """Return the program; off the event loop, because reading a replaced file takes time."""
        return await asyncio.to_thread(self.program.now)


def add_calls(app: FastAPI, service: Service) -> None:
    """Add all calls to `app`."""
    app.include_router(_open_calls(service))
    keyed = [Depends(requires(service.ring, Role.SERVICE))]
    app.include_router(_trial_calls(service), dependencies=keyed)
    app.include_router(_host_calls(service), dependencies=keyed)
    if service.subsystem.has_far_ends:
        app.include_router(_session_calls(service), dependencies=keyed)


def _open_calls(service: Service) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get(
        "/healthz",
        summary="Whether the service is there and the orchestrator has known it",
        responses=problem_responses([503]),
    )
    async def healthz() -> dict[str, str]:
        if not service.is_ready:
            raise Problem(503, "not_registered", "the orchestrator does not know this service yet")
        return {"status": "ok"}

    return router


def _trial_calls(service: Service) -> APIRouter:
    router = APIRouter(tags=["trials"])

    @router.post(
        "/trials",
        summary="Run one trial and stream its events",
        description=(
            "The trial lives as long as the connection and the lease: 5 s, renewed by "
            "PUT /trials/{id}/lease. In place of a figure comes a `failure` line; a stream that "
            "does not end in `control_plane` was cut."
        ),
        response_class=Response,
        responses={**_streamed("trial", _STREAM), **problem_responses([401, 409, 413, 422, 503])},
        openapi_extra=accepts(TrialRequest, _EXAMPLES),
    )
    async def post_trial(
        request: Annotated[TrialRequest, Depends(json_body(TrialRequest))],
    ) -> Response:
        program = await service.current_program()
        work = TrialWork(admitted(request, program), program, service.runner.scratch)
        return service.stream(TRIAL, request, work)

    @router.put(
        "/trials/{trial_id}/lease",
        summary="Keep a running trial, or session, alive for another 5 s",
        status_code=204,
        response_class=Response,
        responses=problem_responses([401, 404]),
    )
    async def renew(trial_id: str) -> Response:
        if not service.runner.renew(trial_id):
            raise Problem(
                404, "not_running", f"no trial {trial_id[:128]!r} runs here; it has ended"
            )
        return Response(status_code=204)

    return router


def _session_calls(service: Service) -> APIRouter:
    router = APIRouter(tags=["sessions"])

    @router.post(
        "/sessions",
        summary="Open the far end of a trial that another host runs",
        description=(
            "The session lives as long as the connection and the lease, as a trial does; the "
            "first line says where it is. Nothing listens without one."
        ),
        response_class=Response,
        responses={
            **_streamed("session", _SESSION_STREAM),
            **problem_responses([401, 409, 413, 422, 503]),
        },
        openapi_extra=accepts(SessionRequest, _SESSION_EXAMPLES),
    )
    async def post_session(
        request: Annotated[SessionRequest, Depends(json_body(SessionRequest))],
    ) -> Response:
        program = await service.current_program()
        work = admitted_session(request, program, service.settings.net_address)
        return service.stream(SESSION, request, work)

    @router.get(
        "/route",
        summary="From which address and by which interface this host reaches another",
        responses=problem_responses([401, 422]),
    )
    async def get_route(to: Annotated[IpAddress | None, Query()] = None) -> RouteAnswer:
        return route(to, service.settings.net_address)

    return router


def _host_calls(service: Service) -> APIRouter:
    router = APIRouter(tags=["host"])

    @router.get(
        "/workloads",
        summary="The program's table as it is on this host",
        responses=problem_responses([401, 503]),
    )
    async def workloads() -> ServiceTable:
        program = await service.current_program()
        return ServiceTable(
            subsystem=service.subsystem.name,
            program=program.version,
            table=program.table,
            peers=tools_of(service.subsystem.name),
        )

    @router.get("/host", summary="The inventory of this host", responses=problem_responses([401]))
    async def host() -> HostInventory:
        seen = await asyncio.to_thread(
            inventory,
            scratch=service.has_scratch,
            network=service.subsystem.has_far_ends,
            gpu=service.subsystem.has_devices,
        )
        # In a container, the kernel's name of the host is random.
        return seen.model_copy(update={"hostname": service.settings.host})

    @router.get(
        "/idle",
        summary="How busy the host is over the next seconds",
        responses=problem_responses([401, 422, 429, 503]),
    )
    async def idle(
        seconds: Annotated[
            float, Query(ge=WINDOW_S_LEAST, le=WINDOW_S_MOST, allow_inf_nan=False)
        ] = 1.0,
    ) -> IdleAnswer:
        return await service.idle_probes.look(seconds)

    @router.get(
        "/lock",
        summary="Who has this host and is no trial of a job",
        responses=problem_responses([401]),
    )
    async def lock() -> LockAnswer:
        held_by = held_outside(service.settings.lock)
        if held_by is not None and service.registrar is not None:
            service.registrar.look_again()
        return LockAnswer(held_by=held_by)

    @router.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=PlainTextResponse,
        responses=problem_responses([401]),
    )
    async def metrics() -> Response:
        text = await asyncio.to_thread(service.metrics.exposition)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return router
