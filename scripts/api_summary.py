"""Write what the HTTP APIs promise, by their OpenAPI schemas, into docs/api-summary.json.

    .venv/bin/python scripts/api_summary.py

Paths, calls, parameters, statuses, fields and enum words. docs/compatibility.md says which of them
may change in which version; a test fails when one that stands there is gone.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from hostbench.model.registry import built_in_names
from hostbench.service.app import create_app as create_service
from hostbench.service.settings import Settings as ServiceSettings
from orchestrator.app import create_app as create_orchestrator
from orchestrator.settings import Settings as OrchestratorSettings

PAGE = Path(__file__).parents[1] / "docs/api-summary.json"
# The apps are described, and never served.
_KEY = SecretStr("k" * 64)
Schema = dict[str, Any]


def summaries() -> dict[str, list[str]]:
    """Return the promises of each API: those of the services together, since each has the same
    calls and that of the network has more."""
    return {
        "orchestrator": promises(orchestrator_schema()),
        "service": promises(
            *(
                create_service(name, ServiceSettings(subsystem=name, service_key=_KEY)).openapi()
                for name in built_in_names()
            )
        ),
    }


def orchestrator_schema() -> Schema:
    """Return the OpenAPI schema of the orchestrator."""
    settings = OrchestratorSettings(api_key=_KEY, service_key=_KEY)
    return create_orchestrator(settings).openapi()


def page() -> str:
    """Return the file as it should be."""
    return json.dumps(summaries(), indent=1) + "\n"


def promises(*schemas: Schema) -> list[str]:
    """Return what a client may rely on, one promise a line."""
    found: set[str] = set()
    for schema in schemas:
        for path, calls in schema["paths"].items():
            for method, call in calls.items():
                found |= set(_call(f"{method.upper()} {path}", call))
        for name, model in schema["components"]["schemas"].items():
            found |= set(_words(name, model))
    return sorted(found)


def _call(name: str, call: Schema) -> Iterator[str]:
    """Yield a call, its parameters, the schemas of its body and its answers by status."""
    yield name
    for parameter in call.get("parameters", ()):
        place = f"{name} {parameter['in']} {parameter['name']}"
        yield place
        yield from _words(place, parameter["schema"])
    bodies = {"body": call.get("requestBody", {}), **call["responses"]}
    for status, body in bodies.items():
        for kind, content in body.get("content", {}).items():
            yield f"{name} {status} {kind}"
            yield from _words(f"{name} {status}", content.get("schema", {}))


def _words(place: str, schema: Schema) -> Iterator[str]:
    """Yield the fields and the enum words of a schema, and the schemas that it refers to."""
    if "$ref" in schema:
        yield f"{place}: {schema['$ref'].rpartition('/')[2]}"
    for word in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
        yield f"{place} = {json.dumps(word)}"
    for field, inner in schema.get("properties", {}).items():
        yield f"{place}.{field}"
        yield from _words(f"{place}.{field}", inner)
    for group in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in schema.get(group, ()):
            yield from _words(place, inner)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from _words(place, inner)


if __name__ == "__main__":
    PAGE.write_text(page())
