"""Bodies of requests: limited in size, and validated as JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hostbench.model.body import ErrorsSoFar
from hostbench.web.problem import Problem

Body = TypeVar("Body", bound=BaseModel)
SCHEMA_REFERENCE = "#/components/schemas/{model}"
JSON = "application/json"
# Longer bodies are validated in a thread, so that other answers need not wait, and one at a time:
# their errors may take a hundred times their size.
SHORT_BYTES = 16 << 10
# Each value takes up to 400 bytes during validation. 10,000 entries of a suite with ten values each
# fit.
VALUES_MOST = 1 << 17
# Finding the place of an error takes a kilobyte.
ERRORS_MOST = 5000


class BodyLimit:
    """ASGI middleware that answers a request of more than `most` bytes with 413. `others`: the most
    of calls with other limits, by their paths."""

    def __init__(self, app: ASGIApp, most: int, others: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._most = most
        self._others = others or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on unless it is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._others.get(scope["path"], self._most)
        length = dict(scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            await _too_large(most).response()(scope, receive, send)
            return
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise _too_large(most)
            return message

        await self._app(scope, bounded, send)


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"the body has more than {most} bytes, the most that is read")


def json_body(model: type[Body]) -> Callable[[Request], Awaitable[Body]]:
    """Return a dependency: the request's body as a `model`, validated strictly. `accepts` describes
    it in OpenAPI."""

    # In one thread, because each has memory of its own that malloc() keeps.
    thread = ThreadPoolExecutor(1, thread_name_prefix="body")

    async def read(request: Request) -> Body:
        content = await request.body()
        if not content.strip():
            missing = {"type": "missing", "loc": ("body",), "msg": "", "input": None}
            raise RequestValidationError([missing])
        if len(content) <= SHORT_BYTES:
            return _validated(model, content)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(thread, _validated, model, content)

    return read


def _validated(model: type[Body], content: bytes) -> Body:
    # All values except the first of a list or an object have a comma before them.
    if sum(content.count(mark) for mark in (b",", b"[", b"{")) > VALUES_MOST:
        raise Problem(
            413,
            "too_large",
            f"the body has more than {VALUES_MOST} values, the most that are read; "
            "use grids, or split the suite",
        )
    try:
        return model.model_validate_json(content, context=ErrorsSoFar())
    except ValidationError as error:
        if error.error_count() > ERRORS_MOST:
            raise Problem(
                422,
                "invalid",
                f"the body has {error.error_count()} errors, too many to list; make it anew",
                field="body",
            ) from None
        raise RequestValidationError(_placed(error, content)) from None


def _placed(error: ValidationError, content: bytes) -> list[dict[str, Any]]:
    """Return the errors at their places in the document. Branches of a union, which are part of
    pydantic's locations, are left out."""
    errors: list[dict[str, Any]] = [dict(one) for one in error.errors(include_url=False)]
    document = None if errors[0]["type"] == "json_invalid" else json.loads(content)
    places = [_place(one, document) for one in errors]
    inner = {place[:end] for place in places for end in range(len(place))}
    return [
        {**one, "loc": ("body", *place)}
        for place, one in zip(places, errors, strict=True)
        # Of a union's branches, the one that got furthest fits best.
        if place not in inner
    ]


def _place(error: Mapping[str, Any], node: Any) -> tuple[str | int, ...]:
    """Return the place of an error in the document."""
    place: list[str | int] = []
    path: tuple[str | int, ...] = error["loc"]
    for part in path:
        here = isinstance(node, dict) and part in node
        if here or (isinstance(node, list) and isinstance(part, int) and part < len(node)):
            place.append(part)
            node = node[part]
    if error["type"] == "missing":
        place.append(path[-1])
    return tuple(place)


def accepts(model: type[BaseModel], examples: Mapping[str, Any]) -> dict[str, Any]:
    """Return `openapi_extra` for a call whose body `json_body(model)` reads. `examples`: bodies by
    name."""
    shown = {name: {"value": value} for name, value in examples.items()}
    schema = {"$ref": SCHEMA_REFERENCE.format(model=model.__name__)}
    content = {JSON: {"schema": schema, "examples": shown}}
    return {"requestBody": {"required": True, "content": content}}


def describe_bodies(app: FastAPI, *models: type[BaseModel]) -> None:
    """Add the schemas of the bodies that `accepts` names to the OpenAPI document of `app`."""
    original = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schemas = original().setdefault("components", {}).setdefault("schemas", {})
            for model in models:
                schema = model.model_json_schema(ref_template=SCHEMA_REFERENCE)
                schemas.update(schema.pop("$defs", {}))
                schemas[model.__name__] = schema
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
