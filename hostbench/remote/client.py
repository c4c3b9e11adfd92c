"""The calls of a service: what can go wrong, calls that depend on a lease, and the client."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.base.tls import trusting
from hostbench.host.idle import WINDOW_S
from hostbench.model.host import HostInventory
from hostbench.model.service import (
    LEASE_S,
    RENEW_S,
    IdleAnswer,
    LockAnswer,
    RouteAnswer,
    ServiceTable,
    SessionRequest,
    TrialRequest,
)
from hostbench.programs.program import LIST_TIMEOUT_S
from hostbench.remote.wire import Following, Wire

CONNECT_S_MOST = 5.0
JSON = {"Content-Type": "application/json"}
RENEW_RETRY_S = 0.5
LINE_BYTES_MOST = 16 << 20
# After its timeout, the service itself ends a trial and reports it; a peer has a grace of its own.
OVERTIME_S = 60.0
ANSWER_S_MOST = 10.0
# If a limit is noticed this late, this process was not running when it passed.
OVERSLEPT_S = 1.0
# The gpu service runs its program for the list of devices, which is slow with several cards.
HOST_S_MOST = LIST_TIMEOUT_S + ANSWER_S_MOST
# Shorter than a service keeps a connection, so that it never closes one during a request.
KEEP_ALIVE_S = 60.0
# The service is there, but another attempt would get the same answer.
WRONG_QUESTION = (httpx.codes.NOT_FOUND, httpx.codes.UNPROCESSABLE_ENTITY)
Answer = TypeVar("Answer", bound=BaseModel)


class ServiceLost(HostbenchError):
    """A service can no longer be used: the job ends with this reason."""

    exit_code = ExitCode.RESOURCE


@dataclass
class ServiceRefused(Exception):
    """An answer that reports no success: the problem's status, code, detail and further members."""

    status: int
    code: str
    detail: str
    members: Mapping[str, Any] = field(default_factory=dict)


def service_lost(url: str, what: str) -> ServiceLost:
    """Return the error of a service that can no longer be used; `what` continues the sentence."""
    return ServiceLost(f"service {url} {what}")


@contextlib.contextmanager
def network_errors(url: str) -> Generator[None, None, None]:
    """Turn the network's errors into ServiceLost."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise service_lost(url, f"cannot be reached: {_words(error)}") from None
    except (httpx.TimeoutException, TimeoutError):
        raise service_lost(url, "does not answer") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise service_lost(
            url, f"closed the connection during its answer: {_words(error)}"
        ) from None


def _words(error: Exception) -> str:
    """Return the error's text, or its name: some of httpx' errors have no text."""
    return str(error) or type(error).__name__


def refusal_of(answer: httpx.Response) -> ServiceRefused:
    """Return the refusal from the problem details, or from any other content."""
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


class LeasedCall:
    """One POST that depends on its connection and its lease, and the renewals beside it, on the
    event loop."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        path: str,
        request: TrialRequest | SessionRequest,
        seconds: float,
    ) -> None:
        """`seconds` is the most that it may take; the service itself enforces that."""
        self._client = client
        self._url = url
        self._path = path
        self._request = request
        self._seconds = seconds

    @property
    def _what(self) -> str:
        return "the trial" if isinstance(self._request, TrialRequest) else "the session"

    async def run(self, put: Callable[[bytes], None]) -> None:
        """Put the lines of the answer. Raise ServiceRefused or ServiceLost."""
        lines = asyncio.create_task(self._lines(put))
        renewals = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({lines, renewals}, return_when=asyncio.FIRST_COMPLETED)
            await (lines if lines.done() else renewals)
        finally:
            lines.cancel()
            renewals.cancel()
            await asyncio.gather(lines, renewals, return_exceptions=True)

    async def _lines(self, put: Callable[[bytes], None]) -> None:
        content = self._request.model_dump_json(exclude_none=True)
        # The first line of a trial may take long; the renewals show whether the service is there.
        timeout = httpx.Timeout(CONNECT_S_MOST, read=None)
        with network_errors(self._url):
            async with self._client.stream(
                "POST", self._path, content=content, headers=JSON, timeout=timeout
            ) as answer:
                if answer.status_code != httpx.codes.OK:
                    await answer.aread()
                    raise refusal_of(answer)
                await self._split(answer, put)

    async def _split(self, answer: httpx.Response, put: Callable[[bytes], None]) -> None:
        """Split at newlines only: httpx would also split at those inside a text."""
        pending = bytearray()
        async for piece in answer.aiter_bytes():
            pending += piece
            *complete, rest = pending.split(b"\n")
            pending = rest
            for line in complete:
                put(bytes(line))
            if len(pending) > LINE_BYTES_MOST:
                raise service_lost(self._url, f"sends a line of more than {LINE_BYTES_MOST} bytes")

    async def _renew(self) -> None:
        """Renew the lease; never return. Raise ServiceLost when the lease must have run out, or
        when the service should have ended the call long ago.

        Time beyond a lease in one round does not count: then this process was stopped, or the
        machine suspended. The service, which was suspended, too, gives the program that time again
        (hostbench/programs/child.py).
        """
        renewed_s, left_s = time.monotonic(), self._seconds + OVERTIME_S
        while left_s > 0:
            began_s = time.monotonic()
            await asyncio.sleep(min(RENEW_S, left_s))
            renewed_s = await self._renewed(renewed_s)
            left_s -= min(time.monotonic() - began_s, RENEW_S + LEASE_S)
        raise service_lost(self._url, f"does not come to the end of {self._what}")

    async def _renewed(self, before_s: float) -> float:
        """Return when the granted lease was requested; the last one was requested at `before_s`.

        Further requests are sent while earlier ones are unanswered: in a test that fills the line,
        a packet may be lost more than once.
        """
        renewals: dict[asyncio.Task[bool], float] = {}
        try:
            # At least once, even if it is late: this process may have been stopped while the trial
            # lives on.
            while not renewals or time.monotonic() < before_s + LEASE_S:
                left_s = max(RENEW_RETRY_S, before_s + LEASE_S - time.monotonic())
                renewals[asyncio.create_task(self._put_renewal(left_s))] = time.monotonic()
                until_s = time.monotonic() + RENEW_RETRY_S
                while (wait_s := until_s - time.monotonic()) > 0:
                    waiting = [task for task in renewals if not task.done()]
                    if not waiting:
                        await asyncio.sleep(wait_s)
                        break
                    await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                    granted = [at for task, at in renewals.items() if task.done() and task.result()]
                    if granted:
                        return max(granted)
        finally:
            for task in renewals:
                task.cancel()
            await asyncio.gather(*renewals, return_exceptions=True)
        text = f"has not renewed the lease of {self._what} for {LEASE_S:g} s"
        raise service_lost(self._url, text)

    async def _put_renewal(self, seconds: float) -> bool:
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(seconds):
                path = f"/trials/{self._request.id}/lease"
                answer = await self._client.put(path, timeout=seconds)
                return answer.is_success
        return False


class _Bearer(httpx.Auth):
    def __init__(self, key: Callable[[], str]) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._key()}"
        yield request


class RemoteService:
    """The calls of one service. Connections are kept; any thread may call."""

    def __init__(
        self,
        url: str,
        key: str | Callable[[], str],
        ca_file: Path | None = None,
        *,
        pinned: bool = False,
    ) -> None:
        """`url`: http://name:port, https://name:port or unix:/path; nothing is sent yet. `key`: the
        key, or a function that returns it at each call and raises ServiceLost without one.
        `pinned`: see hostbench.base.tls."""
        self.url = url
        path = url.removeprefix("unix:") if url.startswith("unix:") else None
        limits = httpx.Limits(max_connections=16, keepalive_expiry=KEEP_ALIVE_S)
        # Without trust_env: a proxy could delay a stream or a lease.
        self._client = httpx.AsyncClient(
            base_url="http://service" if path else url,
            auth=_Bearer((lambda: key) if isinstance(key, str) else key),
            transport=httpx.AsyncHTTPTransport(
                verify=trusting(ca_file, pinned=pinned) if url.startswith("https:") else False,
                uds=path,
                limits=limits,
            ),
            trust_env=False,
        )
        self._wire = Wire(url)

    def table(self, interrupt: Interrupt | None = None) -> ServiceTable:
        """GET /workloads. Raise ServiceLost, like all these calls, or Interrupted."""
        return self._get("/workloads", ServiceTable, ANSWER_S_MOST, interrupt)

    def host(self, interrupt: Interrupt | None = None) -> HostInventory:
        """GET /host."""
        return self._get("/host", HostInventory, HOST_S_MOST, interrupt)

    def lock(self, interrupt: Interrupt | None = None) -> LockAnswer:
        """GET /lock."""
        return self._get("/lock", LockAnswer, ANSWER_S_MOST, interrupt)

    def idle(self, seconds: float, interrupt: Interrupt | None = None) -> IdleAnswer:
        """GET /idle: takes `seconds`."""
        path = f"/idle?seconds={seconds:g}"
        return self._get(path, IdleAnswer, seconds + ANSWER_S_MOST, interrupt)

    def trial(
        self, request: TrialRequest, interrupt: Interrupt | None = None
    ) -> Generator[bytes, None, None]:
        """POST /trials: yield the lines of the stream, without newline, while the lease is renewed.

        Raise ServiceRefused before the first line, ServiceLost, or Interrupted. When the generator
        ends or is closed, the connection closes, and with it the trial ends.
        """
        call = LeasedCall(self._client, self.url, "/trials", request, request.timeout_s)
        return self._wire.items(call.run, interrupt)

    def session(self, request: SessionRequest) -> Following[bytes]:
        """POST /sessions: return the lines of the stream, without newline, while the lease is
        renewed.

        `take` raises ServiceRefused before the first line, or ServiceLost. `close` closes the
        connection, which ends the session.
        """
        seconds = request.expiry_s + request.duration_s
        call = LeasedCall(self._client, self.url, "/sessions", request, seconds)
        return self._wire.follow(call.run)

    def route(self, to: str | None, interrupt: Interrupt | None = None) -> RouteAnswer:
        """GET /route: how its host reaches the address `to`; None: no particular address."""
        path = "/route" if to is None else f"/route?to={quote(to, safe='')}"
        return self._get(path, RouteAnswer, ANSWER_S_MOST, interrupt)

    def close(self) -> None:
        """Close the connections; no call may be in progress."""
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
            raise service_lost(self.url, f"refuses GET {path}: {refused.detail}") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise service_lost(
                self.url, f"sent an invalid answer to GET {path}: {where}: {first['msg']}"
            ) from None

    async def _content(self, path: str, seconds: float) -> bytes:
        with network_errors(self.url):
            answer = await self._answer(path, seconds)
        if not answer.is_success:
            raise refusal_of(answer)
        return answer.content

    async def _answer(self, path: str, seconds: float) -> httpx.Response:
        """Return the answer. Ask again if time ran out because this process was stopped, or the
        machine suspended. Raise TimeoutError or an error of httpx."""
        while True:
            due_s = time.monotonic() + seconds
            try:
                async with asyncio.timeout(seconds):
                    return await self._client.get(path, timeout=seconds)
            except (TimeoutError, httpx.TimeoutException):
                if time.monotonic() < due_s + OVERSLEPT_S:
                    raise


class RemoteWatch:
    """Watches the host of a service. See hostbench.host.idle.HostWatch."""

    def __init__(self, service: RemoteService, window_s: float = WINDOW_S) -> None:
        self._service = service
        self._window_s = window_s

    def look(self, interrupt: Interrupt) -> IdleAnswer:
        """See HostWatch.look. Raise ServiceLost without an answer."""
        return self._service.idle(self._window_s, interrupt)
