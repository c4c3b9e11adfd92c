"""Refusals as RFC 9457 problem details: one clear line each, and the field it is about."""

import http
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from hostbench.base.errors import HostbenchError, ResourceError, UsageError, shown
from hostbench.base.remedies import remedy
from hostbench.model.body import ERRORS_LISTED

MEDIA_TYPE = "application/problem+json"
# What Starlette says of calls that no route takes: the phrase of their status alone.
UNROUTED = {404: "there is no such path", 405: "this path has no such method"}


class FieldProblem(BaseModel):
    """What is wrong with one field, named as in `body.params.threads`."""

    field: str
    detail: str


class ProblemDetails(BaseModel):
    """RFC 9457. `code` is for programs, `detail` for people: the value, what is allowed, the
    remedy. Other members depend on the code."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    errors: list[FieldProblem] = []


class Problem(Exception):
    """Ends a request with problem details."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        """`members` are added to the answer unchanged."""
        super().__init__(detail)
        errors = [FieldProblem(field=field, detail=detail)] if field else []
        self.headers = headers
        self.details = ProblemDetails(
            title=http.HTTPStatus(status).phrase,
            status=status,
            code=code,
            detail=" ".join(detail.split()),
            errors=errors,
            **members,
        )

    def response(self) -> JSONResponse:
        """Return the answer."""
        return JSONResponse(
            self.details.model_dump(mode="json"),
            self.details.status,
            headers=dict(self.headers or {}),
            media_type=MEDIA_TYPE,
        )


def install_problem_handlers(app: FastAPI) -> None:
    """Make every refusal of `app` a problem, including FastAPI's own."""
    for kind in (Problem, HostbenchError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    problem = as_problem(error)
    if isinstance(error, HTTPException) and error.status_code in UNROUTED:
        why = UNROUTED[error.status_code]
        problem.details.detail = (
            f"{request.method} {shown(request.url.path)}: {why}; GET /openapi.json lists the calls"
        )
    return problem.response()


def as_problem(error: Exception) -> Problem:
    """Return a refusal as a problem, also one of FastAPI's own."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HostbenchError):
        return _expected(error)
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    assert isinstance(error, HTTPException)
    code = http.HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return Problem(error.status_code, code, str(error.detail), headers=error.headers)


def _expected(error: HostbenchError) -> Problem:
    if isinstance(error, UsageError):
        return Problem(422, "invalid", error.message)
    status, code = (503, "lacking") if isinstance(error, ResourceError) else (409, "refused")
    return Problem(status, code, error.message)


def _invalid(error: RequestValidationError) -> Problem:
    by_place: dict[tuple[str | int, ...], list[Mapping[str, Any]]] = {}
    for one in error.errors():
        by_place.setdefault(tuple(one["loc"]), []).append(one)
    first = next(iter(by_place))
    detail = _line(first, by_place[first])
    if len(by_place) >= ERRORS_LISTED:
        detail += f" ({ERRORS_LISTED} errors are listed; there may be more)"
    problem = Problem(422, "invalid", detail)
    errors = [
        FieldProblem(field=_spelt(place), detail=refusal(some)) for place, some in by_place.items()
    ]
    problem.details = problem.details.model_copy(update={"errors": errors[:ERRORS_LISTED]})
    return problem


def _line(place: Sequence[str | int], errors: Sequence[Mapping[str, Any]]) -> str:
    """Return `body.hosts[0]: 'a|b' is not allowed: …`; of an address, `page 'x' is not allowed: …`,
    as people call what stands in it."""
    if place[0] == "body":
        return f"{_spelt(place)}: {refusal(errors)}"
    between = ": " if errors[0]["type"] == "value_error" else " "
    return f"{place[-1]}{between}{refusal(errors)}"


def _spelt(place: Sequence[str | int]) -> str:
    """`body.cases[3].params.isa`"""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def refusal(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the value, what is wrong with it, and what is allowed instead. `errors`: see
    `remedy`."""
    first = errors[0]
    if first["type"] == "json_invalid":
        message = str(first["msg"]).removeprefix("Invalid JSON: ")
        return f"the body is not JSON: {message}"
    if first["type"] == "missing":
        return "is missing; give it"
    if first["type"] == "extra_forbidden":
        return "is not known here; remove it"
    if first["type"] == "value_error":
        return str(first["msg"]).removeprefix("Value error, ")
    return f"{shown(first.get('input'))} is not allowed: {remedy(errors)}"


def problem_responses(statuses: Sequence[int]) -> dict[int | str, dict[str, Any]]:
    """Return, for OpenAPI, that these statuses answer with problem details."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {
        status: {
            "model": ProblemDetails,
            "description": http.HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: schema},
        }
        for status in statuses
    }
