"""The calls of an orchestrator (docs/api.md), with typed answers and errors of one line."""

import contextlib
import random
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeVar

import httpx
import httpx_sse
from pydantic import BaseModel, ValidationError

import hostbench
from hostbench.base.errors import HostbenchError, ResourceError, UsageError
from hostbench.client.connection import Connection
from hostbench.client.failures import (
    LostContact,
    lost_contact,
    not_an_orchestrator,
    refusal,
    undecodable,
)
from hostbench.model.baseline import BaselineList, HostCheck
from hostbench.model.decision import Comparison, HostHistory
from hostbench.model.jobs import (
    ConsoleLink,
    HostList,
    JobList,
    JobSpec,
    JobView,
    PostedDocument,
)

CONNECT_S = 5.0
ANSWER_S = 30.0
# A report of many cases is drawn at the request, and decisions are computed then.
DOCUMENT_S = 180.0
# The orchestrator sends a comment every 15 s.
SILENCE_S = 50.0
POST_ATTEMPTS = 3
POST_PAUSE_S = 0.5
# A thousand nodes of a campaign may post at the same time, and an orchestrator stores some ten
# documents a second.
DOCUMENT_POST_S = 20.0
DOCUMENT_PAUSE_S = 4.0
PAGE_JOBS = 100

Answer = TypeVar("Answer", bound=BaseModel)
Query = Mapping[str, str | float | None]


class Orchestrator:
    """A connection to one orchestrator, as a context manager. Every call raises HostbenchError:
    UnreachableError without a proper answer, Refusal if it is refused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = _client(connection, _trust(connection))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.close()

    @property
    def url(self) -> str:
        """Its address."""
        return self._connection.address.url

    def submit(self, spec: JobSpec) -> JobView:
        """Queue a job. However often the connection breaks, it is queued at most once."""
        headers = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
        content = spec.model_dump_json(exclude_defaults=True)
        for attempt in range(POST_ATTEMPTS):
            try:
                return self._ask(JobView, "POST", "/jobs", content=content, headers=headers)
            except LostContact as error:
                if not _may_have_arrived(error):
                    raise
                if attempt + 1 == POST_ATTEMPTS or isinstance(error.__cause__, httpx.ReadTimeout):
                    error.add("the job may be queued all the same: look with hostbench jobs")
                    raise
                time.sleep(POST_PAUSE_S)
        raise AssertionError("the last attempt returns or raises")

    def post(
        self, document: bytes, give_up_s: float, pause: Callable[[float], None] = time.sleep
    ) -> PostedDocument:
        """Store a document. While the orchestrator is away or has too much to do, try again for
        `give_up_s`."""
        until_s = time.monotonic() + give_up_s
        headers = {"Content-Type": "application/json"}
        timeout = httpx.Timeout(DOCUMENT_POST_S, connect=CONNECT_S)
        while True:
            try:
                return self._ask(
                    PostedDocument,
                    "POST",
                    "/documents",
                    content=document,
                    headers=headers,
                    timeout=timeout,
                )
            except LostContact:
                if time.monotonic() >= until_s:
                    raise
                # At random, so that a thousand nodes do not come again together.
                pause(random.uniform(0.2, 1) * DOCUMENT_PAUSE_S)  # noqa: S311

    def jobs(self, limit: int, state: str | None = None, host: str | None = None) -> JobList:
        """Return the newest `limit` jobs (0: all), newest first; `next`: there are older ones."""
        found: list[JobView] = []
        before: str | None = None
        while True:
            page = min(limit - len(found), PAGE_JOBS) if limit else PAGE_JOBS
            query = {"state": state, "host": host, "limit": page, "before": before}
            params = {name: value for name, value in query.items() if value is not None}
            answer = self._ask(JobList, "GET", "/jobs", params=params)
            found += answer.jobs
            before = answer.next
            if before is None or (limit and len(found) >= limit):
                return answer.model_copy(update={"jobs": found[: limit or None]})

    def job(self, job_id: str) -> JobView:
        """Return a job."""
        return self._ask(JobView, "GET", f"/jobs/{job_id}")

    def cancel(self, job_id: str) -> JobView:
        """End a job: at once when it is queued, otherwise within seconds."""
        return self._ask(JobView, "DELETE", f"/jobs/{job_id}")

    def resume(self, job_id: str) -> JobView:
        """Queue a job again that did not succeed; it continues with what it has not measured."""
        return self._ask(JobView, "POST", f"/jobs/{job_id}/resume")

    def hosts(self) -> HostList:
        """Return the registered hosts."""
        return self._ask(HostList, "GET", "/hosts")

    def console_link(self) -> ConsoleLink:
        """Return a link to the console that logs a browser in with the key of this connection."""
        return self._ask(ConsoleLink, "POST", "/console/links")

    def compare(self, a: str, b: str, query: Query) -> Comparison:
        """Compare side B with side A; `query` as for GET /compare."""
        return self._decided(Comparison, "/compare", {"a": a, "b": b, **query})

    def history(self, host: str, query: Query) -> HostHistory:
        """Return the histories of a host; `query` as for GET /hosts/{host}/history."""
        return self._decided(HostHistory, f"/hosts/{host}/history", query)

    def baselines(self) -> BaselineList:
        """Return the baselines that the orchestrator finds."""
        return self._decided(BaselineList, "/baselines")

    def baseline_check(self, job_id: str) -> HostCheck:
        """Compare the host of a job with the baseline of its model."""
        return self._decided(HostCheck, f"/jobs/{job_id}/baseline")

    def _decided(self, model: type[Answer], path: str, query: Query | None = None) -> Answer:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        timeout = httpx.Timeout(DOCUMENT_S, connect=CONNECT_S)
        return self._ask(model, "GET", path, params=given, timeout=timeout)

    def result(self, job_id: str) -> bytes:
        """Return the result document as it is stored."""
        return self._document(f"/jobs/{job_id}/result", "application/json")

    def result_csv(self, job_id: str) -> bytes:
        """Return the result as CSV."""
        return self._document(f"/jobs/{job_id}/result", "text/csv", {"format": "csv"})

    def report(self, job_id: str) -> bytes:
        """Return the report as a page."""
        return self._document(f"/jobs/{job_id}/report", "text/html")

    @contextlib.contextmanager
    def events(
        self, job_id: str, last_id: str | None
    ) -> Iterator[Iterator[httpx_sse.ServerSentEvent]]:
        """Yield the events of a job after the one called `last_id`, as they come."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        with self._errors_in_words():
            stream = httpx_sse.connect_sse(
                self._client, "GET", f"/jobs/{job_id}/events", headers=headers, timeout=timeout
            )
            with stream as source:
                if not source.response.is_success:
                    source.response.read()
                    raise refusal(self._connection, source.response)
                try:
                    yield source.iter_sse()
                except httpx_sse.SSEError as error:
                    raise not_an_orchestrator(
                        self._connection, source.response, str(error)
                    ) from None

    def not_understood(self, response: httpx.Response, error: ValidationError) -> HostbenchError:
        """Return the error for an answer that this version does not expect."""
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return not_an_orchestrator(
            self._connection, response, f"{where}: {first['msg']}" if where else first["msg"]
        )

    def _ask(self, model: type[Answer], method: str, path: str, **options: Any) -> Answer:
        response = self._call(method, path, **options)
        try:
            # Ignore what a newer orchestrator adds.
            return model.model_validate_json(response.content, extra="ignore")
        except ValidationError as error:
            raise self.not_understood(response, error) from None

    def _document(
        self, path: str, media_type: str, params: Mapping[str, str] | None = None
    ) -> bytes:
        timeout = httpx.Timeout(DOCUMENT_S, connect=CONNECT_S)
        response = self._call("GET", path, params=params, timeout=timeout)
        found = response.headers.get("content-type", "nothing")
        if found.partition(";")[0].strip() != media_type:
            raise not_an_orchestrator(self._connection, response, f"it sent {found}")
        return response.content

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        with self._errors_in_words():
            response = self._client.request(method, path, **options)
        if not response.is_success:
            raise refusal(self._connection, response)
        return response

    @contextlib.contextmanager
    def _errors_in_words(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise lost_contact(self._connection, error) from error
        except httpx.DecodingError as error:
            raise undecodable(self._connection, error) from None


def _client(connection: Connection, trust: ssl.SSLContext | bool) -> httpx.Client:
    """Raise UsageError for a proxy that cannot be used."""
    try:
        return httpx.Client(
            base_url=connection.address.url,
            headers={
                "Authorization": f"Bearer {connection.key}",
                "User-Agent": f"hostbench/{hostbench.__version__}",
            },
            verify=trust,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            # A proxy cannot reach servers on this machine.
            trust_env=not connection.address.is_local,
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        why = str(error).partition(".")[0]
        raise UsageError(
            f"the proxy that the environment names cannot be used: {why}; correct HTTPS_PROXY or "
            f"ALL_PROXY, or put {connection.address.host} into NO_PROXY"
        ) from None


def _may_have_arrived(error: LostContact) -> bool:
    """Whether the connection broke after it was established."""
    cause = error.__cause__
    return isinstance(cause, httpx.TransportError) and not isinstance(
        cause, httpx.ConnectError | httpx.ConnectTimeout
    )


def _trust(connection: Connection) -> ssl.SSLContext | bool:
    """Return the authorities to trust. Raise ResourceError for a file that holds none."""
    if connection.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(connection.ca_file))
    except (ssl.SSLError, OSError) as error:
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ResourceError(
            f"cannot use the authority {connection.ca_file}: {why}; name the file of the one that "
            "signed the orchestrator's certificate with --ca-file (make env makes secrets/ca.pem)"
        ) from None
