"""Errors between the client and an orchestrator, as one line with the remedy."""

import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpx

from hostbench.base.errors import HostbenchError, UnreachableError, UsageError, shown
from hostbench.client.connection import Connection

PROBLEM = "application/problem+json"
TOO_MANY = 429
TEXT_SHOWN_CHARACTERS = 200
# The command line's names for the fields of a request's body.
OPTIONS = {
    "suite": "suite",
    "scale": "--scale",
    "workload": "--workload",
    "params": "--param",
    "hosts": "--host",
}


class LostContact(UnreachableError):
    """No answer, or an answer from a server that cannot work now: it may soon be back."""


class Refusal(UsageError):
    """The orchestrator refuses the request; `code` is the orchestrator's."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def lost_contact(connection: Connection, error: httpx.TransportError) -> UnreachableError:
    """Return why there is no answer."""
    url, named_by = connection.address.url, connection.named_by
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return UnreachableError(_certificate(connection, cause))
    if any(isinstance(cause, ssl.SSLError) and not _ended(cause) for cause in causes):
        return UnreachableError(
            f"{url} does not speak TLS, or no version of it that hostbench supports; is it "
            f"http://…? The address is from {named_by}"
        )
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        why, remedy = f"there is no host {shown(connection.address.host)}", "correct"
    elif isinstance(error, httpx.ConnectTimeout):
        why, remedy = "the host does not answer", "check that the host is up, or correct"
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why, remedy = "nothing listens there", "start the stack (make up), or correct"
    elif isinstance(error, httpx.TimeoutException):
        why, remedy = "it took the call and gave no answer in time", "look at its log, or correct"
    elif isinstance(error, httpx.ConnectError):
        why, remedy = _last_words(causes), "check that the stack is up, or correct"
    else:
        why = f"it broke off the connection ({_last_words(causes)})"
        remedy = "look at its log, use https:// if it speaks TLS, or correct"
    return LostContact(f"no answer from {url}: {why}; {remedy} the address of {named_by}")


def _ended(error: ssl.SSLError) -> bool:
    """Whether the other side closed the connection in the middle, as a restarting server does."""
    return isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _last_words(causes: list[BaseException]) -> str:
    """Return the operating system's reason, else the first reason given."""
    system = [c for c in causes if isinstance(c, OSError) and c.strerror]
    if system:
        return str(system[-1].strerror)
    return next((str(cause) for cause in causes if str(cause)), type(causes[0]).__name__)


def _certificate(connection: Connection, error: ssl.SSLCertVerificationError) -> str:
    """Return the error for a certificate that is not accepted."""
    url, why = connection.address.url, error.verify_message.rstrip(".")
    if "mismatch" in why or "not valid for" in why:
        return f"the certificate of {url} is for another name: {why}; use a name that it is for"
    if "expired" in why or "not yet valid" in why:
        return f"the certificate of {url} is not valid now: {why}; renew it, or set the clock"
    by = f"by those in {connection.ca_file}" if connection.ca_file else "here"
    return (
        f"the certificate of {url} is not signed by an authority trusted {by}: {why}; "
        "name the authority's file with --ca-file or HOSTBENCH_CA_FILE (make env makes "
        "secrets/ca.pem)"
    )


def refusal(connection: Connection, response: httpx.Response) -> HostbenchError:
    """Return why it refuses the request, from an answer whose status is not success."""
    url, status = connection.address.url, response.status_code
    if not _is_problem(response):
        # A proxy in between answers for an unreachable server.
        if status in (502, 503, 504):
            return LostContact(f"{url} cannot work now: {status} {response.reason_phrase}")
        return not_an_orchestrator(connection, response, f"{status} {response.reason_phrase}")
    problem = _problem(response)
    detail = str(problem.get("detail") or problem.get("title") or response.reason_phrase)
    if status in (401, 403):
        return UnreachableError(
            f"{url} refuses the key from {connection.key_from}; give its own key with "
            f"{connection.key_option}"
        )
    if status >= 500 or status == TOO_MANY:
        return LostContact(f"{url} cannot work now: {detail}")
    code = str(problem.get("code", ""))
    if code in ("not_found", "method_not_allowed"):
        return not_an_orchestrator(connection, response, f"{status} {detail}")
    return Refusal(_in_options(detail), code)


def not_an_orchestrator(
    connection: Connection, response: httpx.Response, what: str
) -> UnreachableError:
    """Return the error for an answer that no orchestrator gives."""
    return _wrong_answer(connection, response.request, what)


def undecodable(connection: Connection, error: httpx.DecodingError) -> UnreachableError:
    """Return the error for a body that is not encoded as its header says."""
    return _wrong_answer(connection, error.request, str(error))


def _wrong_answer(connection: Connection, request: httpx.Request, what: str) -> UnreachableError:
    return UnreachableError(
        f"{connection.address.url} does not answer as an orchestrator of this version of hostbench "
        f"({request.method} {request.url.path}: {_short(what)}); correct the address of "
        f"{connection.named_by}, or use the same version on both sides"
    )


def _is_problem(response: httpx.Response) -> bool:
    media_type: str = response.headers.get("content-type", "")
    return media_type.partition(";")[0].strip() == PROBLEM


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        content = json.loads(response.content)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _in_options(detail: str) -> str:
    """Return `--host: …` for `body.hosts[0]: …`."""
    place, colon, rest = detail.partition(": ")
    if not colon or not place.startswith("body."):
        return detail
    first = place.removeprefix("body.").partition(".")[0].partition("[")[0]
    return f"{OPTIONS.get(first, '--' + first.replace('_', '-'))}: {rest}"


def _short(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN_CHARACTERS else f"{text[:TEXT_SHOWN_CHARACTERS]}…"
