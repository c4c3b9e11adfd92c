"""The HTTP transport: a trial runs in a service, this process hears of it as if it were its own.

The wire format is hostbench/models/service.py; docs/service.md says what the calls promise.
"""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from hostbench.errors import BusyError, HostbenchError, ResourceError, UsageError, shown
from hostbench.exitcode import ExitCode
from hostbench.idle import WINDOW_S
from hostbench.interrupt import Interrupt
from hostbench.models.control_plane import ControlPlaneEvent, ProcessUsage
from hostbench.models.events import EndEvent, SkipEvent
from hostbench.models.host import HostInventory
from hostbench.models.peer import PeerEndEvent, PeerStartEvent, TrialEvent
from hostbench.models.result import OWN_TOOL
from hostbench.models.service import (
    LEASE_S,
    RENEW_S,
    SERVICE_EVENT,
    BesideRequest,
    Ending,
    FailureEvent,
    IdleAnswer,
    Refusal,
    RouteAnswer,
    ServiceTable,
    SessionRequest,
    TrialRequest,
)
from hostbench.program import LIST_TIMEOUT_S
from hostbench.stream import EventStream
from hostbench.tls import trusting
from hostbench.trial import Beside, Trial, TrialFailed
from hostbench.wire import Following, Wire

CONNECT_S_MOST = 5.0
ANSWER_S_MOST = 10.0
# The gpu service asks its program for the devices, which takes drivers of several cards a while.
HOST_S_MOST = LIST_TIMEOUT_S + ANSWER_S_MOST
# Shorter than a service keeps a connection, so that it never closes one under a request.
KEEP_ALIVE_S = 60.0
RENEW_RETRY_S = 0.5
LINE_BYTES_MOST = 16 << 20
BUSY_RETRY_S = 1.0
# How long somebody else's run on the host is waited for in the middle of a job.
BUSY_S_MOST = 600.0
# After its timeout the service itself ends a trial and says so; a peer has a grace of its own.
OVERTIME_S = 60.0
# It is there, and answers the next time no better.
WRONG_QUESTION = (httpx.codes.NOT_FOUND, httpx.codes.UNPROCESSABLE_ENTITY)
JSON = {"Content-Type": "application/json"}
Answer = TypeVar("Answer", bound=BaseModel)
# What is to be said of a trial's surroundings once it is over.
Usage = Callable[[], Sequence[ProcessUsage]]


class ServiceLost(HostbenchError):
    """A service cannot be used any more: the job ends, and says why."""

    exit_code = ExitCode.RESOURCE


@dataclass
class ServiceRefused(Exception):
    """An answer that is no success: the problem's status, code, detail and further members."""

    status: int
    code: str
    detail: str
    members: Mapping[str, Any] = field(default_factory=dict)


class RemoteService:
    """The calls of one service. Connections are kept; any thread may call."""

    def __init__(self, url: str, key: str, ca_file: Path | None = None) -> None:
        """`url`: http://name:port, https://name:port or unix:/path; nothing is sent yet."""
        self.url = url
        path = url.removeprefix("unix:") if url.startswith("unix:") else None
        limits = httpx.Limits(max_connections=16, keepalive_expiry=KEEP_ALIVE_S)
        # Without trust_env: what a proxy in between does to a stream and a lease nobody knows.
        self._client = httpx.AsyncClient(
            base_url="http://service" if path else url,
            headers={"Authorization": f"Bearer {key}"},
            transport=httpx.AsyncHTTPTransport(
                verify=trusting(ca_file) if url.startswith("https:") else False,
                uds=path,
                limits=limits,
            ),
            trust_env=False,
        )
        self._wire = Wire(url)

    def table(self, interrupt: Interrupt | None = None) -> ServiceTable:
        """GET /workloads. Raises ServiceLost, as all of these, or Interrupted."""
        return self._get("/workloads", ServiceTable, ANSWER_S_MOST, interrupt)

    def host(self, interrupt: Interrupt | None = None) -> HostInventory:
        """GET /host."""
        return self._get("/host", HostInventory, HOST_S_MOST, interrupt)

    def idle(self, seconds: float, interrupt: Interrupt | None = None) -> IdleAnswer:
        """GET /idle: takes `seconds`."""
        path = f"/idle?seconds={seconds:g}"
        return self._get(path, IdleAnswer, seconds + ANSWER_S_MOST, interrupt)

    def trial(
        self, request: TrialRequest, interrupt: Interrupt | None = None
    ) -> Generator[bytes, None, None]:
        """POST /trials: the lines of the stream, without newline, while the lease is renewed.

        Raises ServiceRefused before the first line, ServiceLost, or Interrupted. Whenever it is
        left, the connection is closed, and with it the trial.
        """
        call = _LeasedCall(self._client, self.url, "/trials", request, request.timeout_s)
        return self._wire.items(call.run, interrupt)

    def session(self, request: SessionRequest) -> Following[bytes]:
        """POST /sessions: the lines of the stream, without newline, while the lease is renewed.

        `take` raises ServiceRefused before the first line, or ServiceLost. With `close` the
        connection is closed, and with it the session.
        """
        seconds = request.expiry_s + request.duration_s
        call = _LeasedCall(self._client, self.url, "/sessions", request, seconds)
        return self._wire.follow(call.run)

    def route(self, to: str | None, interrupt: Interrupt | None = None) -> RouteAnswer:
        """GET /route: how its host reaches the address `to`, None: no matter whom."""
        path = "/route" if to is None else f"/route?to={quote(to, safe='')}"
        return self._get(path, RouteAnswer, ANSWER_S_MOST, interrupt)

    def close(self) -> None:
        """Closes the connections; nothing may be under way."""
        self._wire.call(self._client.aclose())
        self._wire.close()

    def _get(
        self, path: str, model: type[Answer], seconds: float, interrupt: Interrupt | None
    ) -> Answer:
        try:
            content = self._wire.call(self._content(path, seconds), interrupt)
            return model.model_validate_json(content)
        except ServiceRefused as refused:
            if refused.status in WRONG_QUESTION:
                raise UsageError(f"service {self.url}: GET {path}: {refused.detail}") from None
            raise _lost(self.url, f"refuses GET {path}: {refused.detail}") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise _lost(self.url, f"answers GET {path} oddly: {where}: {first['msg']}") from None

    async def _content(self, path: str, seconds: float) -> bytes:
        with _network_errors(self.url):
            async with asyncio.timeout(seconds):
                answer = await self._client.get(path, timeout=seconds)
        if not answer.is_success:
            raise _refusal(answer)
        return answer.content


class _LeasedCall:
    """One POST of what lives by its connection and its lease, and the renewals beside it, on the
    event loop."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        path: str,
        request: TrialRequest | SessionRequest,
        seconds: float,
    ) -> None:
        """`seconds` is what it may take, of which the service itself sees to it."""
        self._client = client
        self._url = url
        self._path = path
        self._request = request
        self._seconds = seconds

    @property
    def _what(self) -> str:
        return "the trial" if isinstance(self._request, TrialRequest) else "the session"

    async def run(self, put: Callable[[bytes], None]) -> None:
        """Puts the lines. Raises ServiceRefused or ServiceLost."""
        lines = asyncio.create_task(self._lines(put))
        renewals = asyncio.create_task(self._renew())
        try:
            async with asyncio.timeout(self._seconds + OVERTIME_S):
                await asyncio.wait({lines, renewals}, return_when=asyncio.FIRST_COMPLETED)
                await (lines if lines.done() else renewals)
        except TimeoutError:
            raise _lost(self._url, f"does not come to the end of {self._what}") from None
        finally:
            lines.cancel()
            renewals.cancel()
            await asyncio.gather(lines, renewals, return_exceptions=True)

    async def _lines(self, put: Callable[[bytes], None]) -> None:
        content = self._request.model_dump_json(exclude_none=True)
        # The first line of a trial may take its time; whether anybody is there the renewals tell.
        timeout = httpx.Timeout(CONNECT_S_MOST, read=None)
        with _network_errors(self._url):
            async with self._client.stream(
                "POST", self._path, content=content, headers=JSON, timeout=timeout
            ) as answer:
                if answer.status_code != httpx.codes.OK:
                    await answer.aread()
                    raise _refusal(answer)
                await self._split(answer, put)

    async def _split(self, answer: httpx.Response, put: Callable[[bytes], None]) -> None:
        """By newlines alone: httpx would also split at those that stand inside of a text."""
        pending = bytearray()
        async for piece in answer.aiter_bytes():
            pending += piece
            *complete, rest = pending.split(b"\n")
            pending = rest
            for line in complete:
                put(bytes(line))
            if len(pending) > LINE_BYTES_MOST:
                raise _lost(self._url, f"sends a line of more than {LINE_BYTES_MOST} bytes")

    async def _renew(self) -> None:
        """Never returns. Raises ServiceLost when the lease must have run out."""
        renewed_s = time.monotonic()
        while True:
            await asyncio.sleep(RENEW_S)
            renewed_s = await self._renewed(renewed_s)

    async def _renewed(self, before_s: float) -> float:
        """When the lease was asked for that was granted; the last one was at `before_s`. Asks again
        beside what nobody answers: of a test that fills the line one packet may be lost more than
        once."""
        asked: dict[asyncio.Task[bool], float] = {}
        try:
            # Once also when it is late: this process may have been stopped, and the trial lives on.
            while not asked or time.monotonic() < before_s + LEASE_S:
                left_s = max(RENEW_RETRY_S, before_s + LEASE_S - time.monotonic())
                asked[asyncio.create_task(self._asked(left_s))] = time.monotonic()
                until_s = time.monotonic() + RENEW_RETRY_S
                while (wait_s := until_s - time.monotonic()) > 0:
                    waiting = [task for task in asked if not task.done()]
                    if not waiting:
                        await asyncio.sleep(wait_s)
                        break
                    await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                    granted = [at for task, at in asked.items() if task.done() and task.result()]
                    if granted:
                        return max(granted)
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        text = f"has not renewed the lease of {self._what} for {LEASE_S:g} s"
        raise _lost(self._url, text)

    async def _asked(self, seconds: float) -> bool:
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(seconds):
                path = f"/trials/{self._request.id}/lease"
                answer = await self._client.put(path, timeout=seconds)
                return answer.is_success
        return False


class HttpTransport:
    """Runs trials through the services of one host. See hostbench.trial.Transport."""

    def __init__(
        self,
        services: Mapping[str, RemoteService],
        programs: Mapping[str, str],
        fence: int | None,
        job: str,
        interrupt: Interrupt,
        on_waiting: Callable[[str], None] = lambda detail: None,
        meter: Callable[[], Usage] = lambda: tuple,
        busy_s: float = BUSY_S_MOST,
    ) -> None:
        """`services` and `programs` (the sha256 that was planned with) by subsystem.

        `on_waiting` hears who holds the host, each second that somebody else does, for `busy_s`
        seconds at most. `meter` is called when a trial begins; what it returns is called when the
        trial is over and says what else of the control plane took how much meanwhile.
        """
        self._services = services
        self._programs = programs
        self._fence = fence
        self._job = job
        self._interrupt = interrupt
        self._on_waiting = on_waiting
        self._meter = meter
        self._busy_s = busy_s

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run; the last event is the control plane's.

        Raises ServiceLost, ResourceError or BusyError, too: they end the job.
        """
        usage = self._meter()
        reading = _Reading(trial)
        with contextlib.closing(self._lines(trial)) as lines:
            for line in lines:
                event = reading.take(line)
                if isinstance(event, ControlPlaneEvent):
                    yield ControlPlaneEvent(processes=(*event.processes, *usage()))
                elif event is not None:
                    yield event
        reading.finish(self._services[trial.subsystem].url)

    def _lines(self, trial: Trial) -> Generator[bytes, None, None]:
        """The stream's lines, once nobody else holds the host."""
        deadline_s = time.monotonic() + self._busy_s
        request = self._request(trial)
        while True:
            try:
                yield from self._services[trial.subsystem].trial(request, self._interrupt)
            except ServiceRefused as refused:
                if refused.code != Refusal.BUSY:
                    url = self._services[trial.subsystem].url
                    raise refusal_meaning(refused, url, "a trial") from None
                if (holder_job(refused) or "").startswith(far_end_name(self._job, trial)):
                    raise same_host(self._services[trial.subsystem].url) from None
                if time.monotonic() >= deadline_s:
                    raise BusyError(refused.detail) from None
                self._on_waiting(refused.detail)
                self._interrupt.wait(BUSY_RETRY_S)
            else:
                return

    def _request(self, trial: Trial) -> TrialRequest:
        own = trial.tool == OWN_TOOL
        beside = trial.beside
        return TrialRequest(
            id=f"{self._job}-{trial.name}-{secrets.token_hex(4)}",
            workload=trial.workload,
            params=dict(trial.params),
            tool=trial.tool,
            beside=None if beside is None else _beside_request(beside),
            timeout_s=trial.timeout_s,
            fence=self._fence,
            sha256=self._programs[trial.subsystem] if own else None,
            session=trial.session,
        )


def far_end_name(job: str, trial: Trial) -> str:
    """How the ids of the sessions begin that a trial has on its far host."""
    return f"{job}-{trial.name}-far-"


def holder_job(refused: ServiceRefused) -> str | None:
    """Who holds the host, as a refusal names it: a job, a trial or a session."""
    holder = refused.members.get("holder")
    job = holder.get("job") if isinstance(holder, dict) else None
    return job if isinstance(job, str) else None


def same_host(url: str) -> ResourceError:
    """Of two ends that would wait for one another for ever."""
    return ResourceError(
        f"service {url} is of the same host as the other end of the test: both take the same lock; "
        "give another far host, or target: loopback"
    )


def refusal_meaning(refused: ServiceRefused, url: str, what: str) -> Exception:
    """What becomes of the job, or of one trial alone, when a service refuses `what`, such as a
    trial."""
    if refused.code == Refusal.PROGRAM_CHANGED:
        return TrialFailed(refused.code, refused.detail)
    if refused.status == httpx.codes.UNPROCESSABLE_ENTITY:
        return TrialFailed("refused", refused.detail, ExitCode.USAGE)
    if refused.code == Refusal.LACKING:
        return ResourceError(f"service {url}: {refused.detail}")
    return _lost(url, f"refuses {what}: {refused.detail}")


def _beside_request(beside: Beside) -> BesideRequest:
    # The scratch file is the service's own affair.
    return BesideRequest(
        cpus=beside.cpus,
        rate=beside.rate,
        elapsed_s=beside.elapsed_s,
        far_cpus=beside.far_cpus,
    )


class _Reading:
    """The lines of one trial, checked as those of a program of this host are."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._stream = EventStream(trial)
        self._last: TrialEvent | None = None
        self._failure: FailureEvent | None = None
        self._complete = False

    def take(self, line: bytes) -> TrialEvent | None:
        """The event of a line; None: it is about a failure, which `finish` raises.

        Raises TrialFailed on a line that has no place here.
        """
        try:
            event = SERVICE_EVENT.validate_json(line)
        except ValidationError:
            text = line.decode("utf-8", "replace")
            raise TrialFailed("malformed_output", f"not an event: {shown(text)}") from None
        if self._complete:
            raise TrialFailed("malformed_output", f"event {event.event} after the last one")
        if isinstance(event, FailureEvent):
            self._failure = event
            return None
        if isinstance(event, ControlPlaneEvent):
            self._complete = True
        elif self._trial.tool != OWN_TOOL:
            self._last = event
        elif isinstance(event, PeerStartEvent | PeerEndEvent):
            raise TrialFailed("malformed_output", f"event {event.event} in a trial of our own")
        else:
            self._stream.accept(event)
            self._last = event
        return event

    def finish(self, url: str) -> None:
        """Called when the stream ended. Raises unless it holds a whole trial with its end."""
        if self._failure is not None:
            raise failure_meaning(self._failure, url)
        if not self._complete:
            raise _lost(url, "broke off the stream of a trial")
        if not isinstance(self._last, EndEvent | PeerEndEvent | SkipEvent):
            raise TrialFailed("no_last_event", "the service ended a trial without its last event")


def failure_meaning(failure: FailureEvent, url: str) -> Exception:
    """The same of a failure in the middle of a stream."""
    if failure.code in set(Ending):
        return _lost(url, f"ended the trial: {failure.message}")
    if failure.code == Refusal.LACKING:
        return ResourceError(f"service {url}: {failure.message}")
    known = failure.exit_code in set(ExitCode)
    code = ExitCode(failure.exit_code) if known else ExitCode.CASE_FAILED
    return TrialFailed(failure.code, failure.message, code)


class RemoteWatch:
    """Looks at the host of a service. See hostbench.idle.HostWatch."""

    def __init__(self, service: RemoteService, window_s: float = WINDOW_S) -> None:
        self._service = service
        self._window_s = window_s

    def look(self, interrupt: Interrupt) -> IdleAnswer:
        """See HostWatch.look. Raises ServiceLost when nobody answers."""
        return self._service.idle(self._window_s, interrupt)


def _lost(url: str, what: str) -> ServiceLost:
    return ServiceLost(f"service {url} {what}")


@contextlib.contextmanager
def _network_errors(url: str) -> Generator[None, None, None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise _lost(url, f"cannot be reached: {_words(error)}") from None
    except (httpx.TimeoutException, TimeoutError):
        raise _lost(url, "does not answer") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _lost(url, f"is gone in mid-answer: {_words(error)}") from None


def _words(error: Exception) -> str:
    """Some of httpx' errors say nothing but their name."""
    return str(error) or type(error).__name__


def _refusal(answer: httpx.Response) -> ServiceRefused:
    """From the problem details, or from whatever stands there instead."""
    content: Any = None
    with contextlib.suppress(ValueError):
        content = json.loads(answer.content)
    problem = content if isinstance(content, dict) else {}
    return ServiceRefused(
        status=answer.status_code,
        code=str(problem.get("code", "unknown")),
        detail=str(problem.get("detail", f"HTTP status {answer.status_code}")),
        members=problem,
    )
