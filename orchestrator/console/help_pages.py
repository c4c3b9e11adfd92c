"""Help: the pages of docs/, and the calls of the API from their own description."""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.responses import FileResponse

from hostbench.base.errors import did_you_mean, shown
from hostbench.web.problem import Problem
from orchestrator.console import documents
from orchestrator.console.shell import View, add_page
from orchestrator.console.visitor import LoggedIn

router = APIRouter()
REFERENCE = f"{documents.ADDRESS}/api-reference"
_REF = "#/components/schemas/"
_NO_BODY = "–"
PageName = Annotated[str, Path(max_length=100)]


class PageLink(BaseModel):
    """A page of the docs. `about`: what it is for."""

    name: str
    title: str
    about: str


class HelpChapter(BaseModel):
    """Pages of a kind, such as those to learn from."""

    title: str
    documents: tuple[PageLink, ...]


class HelpView(View):
    """All pages, as docs/index.md orders them. `missing`: this orchestrator was installed without
    them."""

    title: str = "Help"
    chapters: tuple[HelpChapter, ...]
    missing: bool


class DocumentView(View):
    """A page. `headings`: (anchor, title) of its chapters."""

    name: str
    headings: tuple[tuple[str, str], ...]
    html: str

    @property
    def body(self) -> Markup:
        """The page's content, which documents.py made."""
        return Markup(self.html)  # noqa: S704


class Row(BaseModel):
    """A parameter of a call, or a field of a schema. `type`: in words; `schemas`: those in it."""

    name: str
    place: str = ""
    type: str
    schemas: tuple[str, ...] = ()
    required: bool
    description: str


class Answer(BaseModel):
    """An answer of a call."""

    status: str
    description: str
    type: str
    schemas: tuple[str, ...] = ()


class Call(BaseModel):
    """A call of the API, with the command that makes it."""

    anchor: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[Row, ...]
    body: Answer | None
    answers: tuple[Answer, ...]
    curl: str


class Chapter(BaseModel):
    """Calls that belong together."""

    title: str
    calls: tuple[Call, ...]


class SchemaRows(BaseModel):
    """A schema with its fields; `values`: all that it may be, if it has no fields."""

    name: str
    description: str
    rows: tuple[Row, ...] = ()
    values: str = ""


class ReferenceView(View):
    """All calls."""

    title: str = "API reference"
    introduction: str
    chapters: tuple[Chapter, ...]

    @property
    def lead(self) -> Markup:
        """The introduction as HTML."""
        return documents.inline(self.introduction)

    schema_names: tuple[str, ...] = Field(default=())


class SchemaView(View):
    """One schema with those in it."""

    shown: SchemaRows


@add_page(router, "/help", "help.html.j2")
def help_index() -> View:
    """GET /ui/help."""
    chapters = tuple(
        HelpChapter(
            title=title,
            documents=tuple(
                PageLink(name=one.name, title=one.title, about=one.about) for one in entries
            ),
        )
        for title, entries in documents.contents()
    )
    return HelpView(chapters=chapters, missing=not chapters)


@add_page(router, "/help/api-reference", "reference.html.j2")
def reference(request: Request) -> View:
    """GET /ui/help/api-reference."""
    schema = request.app.state.schema()
    chapters: dict[str, list[Call]] = {}
    for path, calls in schema["paths"].items():
        for method, call in calls.items():
            title = next(iter(call.get("tags", ())), "more")
            chapters.setdefault(title, []).append(_call(method.upper(), path, call))
    return ReferenceView(
        introduction=schema["info"].get("description", ""),
        chapters=tuple(
            Chapter(title=title, calls=tuple(calls)) for title, calls in chapters.items()
        ),
        schema_names=tuple(sorted(schema.get("components", {}).get("schemas", {}))),
    )


@add_page(router, "/help/api-reference/{name}", "schema.html.j2")
def schema_page(request: Request, name: PageName) -> View:
    """GET /ui/help/api-reference/{name}."""
    schemas = request.app.state.schema().get("components", {}).get("schemas", {})
    if name not in schemas:
        raise Problem(
            404,
            "unknown_schema",
            f"the API has no schema {shown(name)}; {did_you_mean(name, schemas)}"
            f"{REFERENCE} lists them",
        )
    return SchemaView(title=name, shown=_schema(name, schemas[name]))


@router.get("/help/files/{name}")
def file(name: PageName, _visitor: LoggedIn) -> Response:
    """GET /ui/help/files/{name}: a picture of the docs."""
    path = documents.picture(name)
    if path is None:
        raise Problem(404, "unknown_picture", f"the docs have no picture {shown(name)}")
    return FileResponse(path, media_type=documents.PICTURES[path.suffix])


@add_page(router, "/help/{name}", "document.html.j2")
def page(name: PageName) -> View:
    """GET /ui/help/{name}."""
    found = documents.document(name)
    if found is None:
        raise Problem(
            404,
            "unknown_page",
            f"the docs have no page {shown(name)}; {did_you_mean(name, documents.names())}"
            f"{documents.ADDRESS} lists them",
        )
    return DocumentView(
        title=found.title, name=found.name, headings=found.headings, html=found.body
    )


# ---- the reference ----


def _call(method: str, path: str, call: Mapping[str, Any]) -> Call:
    body = call.get("requestBody")
    return Call(
        anchor=method.lower() + path.replace("/", "-").translate(_NO_BRACES),
        method=method,
        path=path,
        summary=call.get("summary", ""),
        # The docstring of the function only names the call.
        description="",
        parameters=tuple(_parameter(one) for one in call.get("parameters", ())),
        body=None if body is None else _answer("", body),
        answers=tuple(_answer(status, one) for status, one in call.get("responses", {}).items()),
        curl=_curl(method, path, call),
    )


_NO_BRACES = str.maketrans("", "", "{}")


def _parameter(one: Mapping[str, Any]) -> Row:
    schema = one.get("schema", {})
    return Row(
        name=one["name"],
        place=one["in"],
        type=_type(schema),
        schemas=tuple(_refs(schema)),
        required=one.get("required", False),
        description=_described(schema, one.get("description", "")),
    )


def _answer(status: str, one: Mapping[str, Any]) -> Answer:
    contents = one.get("content", {})
    types = [
        f"{_type(content.get('schema', {}))} as {media}" for media, content in contents.items()
    ]
    schemas = [ref for content in contents.values() for ref in _refs(content.get("schema", {}))]
    return Answer(
        status=status,
        description=one.get("description", ""),
        type=", ".join(types) or _NO_BODY,
        schemas=tuple(dict.fromkeys(schemas)),
    )


def _schema(name: str, schema: Mapping[str, Any]) -> SchemaRows:
    required = schema.get("required", ())
    rows = [
        Row(
            name=field,
            type=_type(one),
            schemas=tuple(_refs(one)),
            required=field in required,
            description=_described(one, one.get("description", "")),
        )
        for field, one in schema.get("properties", {}).items()
    ]
    return SchemaRows(
        name=name,
        description=schema.get("description", ""),
        rows=tuple(rows),
        values="" if rows else _type(schema),
    )


def _type(schema: Mapping[str, Any]) -> str:
    """Return what values may be, in words."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        return " or ".join(json.dumps(one, ensure_ascii=False) for one in schema["enum"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    more = schema.get("additionalProperties")
    if kind == "object" and isinstance(more, Mapping):
        return f"object of {_type(more)}"
    return str(kind or "anything")


def _refs(schema: Any) -> Iterator[str]:
    """Yield the names of the schemas in a schema."""
    if isinstance(schema, Mapping):
        for name, value in schema.items():
            if name == "$ref":
                yield str(value).removeprefix(_REF)
            elif name in ("anyOf", "oneOf", "allOf", "items", "additionalProperties"):
                yield from _refs(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _refs(one)


_BOUNDS = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "to {}",
    "exclusiveMaximum": "below {}",
    "minLength": "length {} or more",
    "maxLength": "length {} or less",
    "pattern": "of the form {}",
}


def _described(schema: Mapping[str, Any], description: str) -> str:
    """Return a description with the bounds and the default of a value."""
    parts = [schema, *schema.get("anyOf", ())]
    notes = [
        words.format(part[name])
        for part in parts
        for name, words in _BOUNDS.items()
        if name in part
    ]
    if schema.get("default") is not None:
        notes.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
    text = ", ".join(notes)
    more = f"{text[:1].upper()}{text[1:]}." if text else ""
    return " ".join(filter(None, (description, more)))


def _curl(method: str, path: str, call: Mapping[str, Any]) -> str:
    words = ["curl", "--header", "@secrets/authorization"]
    if not call.get("security") and path == "/healthz":
        words = ["curl"]
    if method != "GET":
        words += ["--request", method]
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = body.get("example")
    if example is None and body.get("examples"):
        example = next(iter(body["examples"].values()))["value"]
    if example is not None:
        words += ["--json", json.dumps(example, ensure_ascii=False)]
    query = [
        f"{one['name']}={one['name'].upper()}"
        for one in call.get("parameters", ())
        if one["in"] == "query" and one.get("required")
    ]
    return shlex.join([*words, f"URL{path}" + (f"?{'&'.join(query)}" if query else "")])
