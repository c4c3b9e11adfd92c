"""Result documents as bytes: their digest, and the errors for bytes that are not a valid
document."""

import hashlib
import json
from typing import Any

from pydantic import ValidationError

from hostbench.base.errors import UsageError, shown
from hostbench.model.result import RESULT_SCHEMA, UNSEALED_SCHEMA, ResultDocument

DIGEST, KIND = "digest", "hostbench.result"
UNSEALED = (
    "The document has no digest, since an earlier hostbench wrote it: a change by hand would not "
    "be found."
)


def sealed(document: ResultDocument) -> ResultDocument:
    """Return the document with its digest."""
    content = document.model_dump(mode="json", exclude={DIGEST})
    return document.model_copy(update={DIGEST: _digest(content)})


def _digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON: sorted keys, no spaces, ASCII, and floats in
    Python's repr, the shortest digits that read back as the same number."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def read_document(content: bytes, source: str, remedy: str) -> ResultDocument:
    """Return the document in `content` of `source`. `remedy` says how to get another one.

    Raise UsageError for a document that is cut short, has an unknown schema, or was changed since
    it was written. Documents of schema 1 have no digest, so a change in them is not detected.
    """
    checked_json(content, source, remedy)
    try:
        return ResultDocument.model_validate_json(content)
    except ValidationError as error:
        raise not_a_document(error, source, remedy) from None


def checked_json(content: bytes, source: str, remedy: str) -> dict[str, Any]:
    """Return the document as JSON, with its digest checked but not its models."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        raise UsageError(
            f"{source} is cut short or damaged: its {len(content)} bytes are not one JSON "
            f"document; {remedy}"
        ) from None
    kind = raw.get("kind", KIND) if isinstance(raw, dict) else None
    if kind != KIND:
        what = "no JSON object" if kind is None else f"a {shown(kind)}"
        raise UsageError(f"{source} is {what} and not a {KIND!r}; {remedy}")
    schema = raw.get("schema")
    _check_schema(schema, source, remedy)
    if schema != UNSEALED_SCHEMA:
        found, expected = raw.pop(DIGEST, None), _digest(raw)
        if found != expected:
            stated = "missing" if found is None else shown(found)
            raise UsageError(
                f"{source} was changed after it was written: its digest is {stated}, that of "
                f"its content {shown(expected)}; {remedy}"
            )
        raw[DIGEST] = found
    checked: dict[str, Any] = raw
    return checked


def not_a_document(error: ValidationError, source: str, remedy: str) -> UsageError:
    """Return the error for JSON that cannot be a ResultDocument."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return UsageError(f"{source} is not a result document: {where}: {first['msg']}; {remedy}")


def _check_schema(schema: object, source: str, remedy: str) -> None:
    reads = f"this hostbench reads {UNSEALED_SCHEMA} and {RESULT_SCHEMA}"
    if isinstance(schema, int) and schema > RESULT_SCHEMA:
        raise UsageError(f"{source} has schema {schema}, {reads}; read it with a newer hostbench")
    if isinstance(schema, bool) or schema not in (UNSEALED_SCHEMA, RESULT_SCHEMA):
        raise UsageError(f"{source} has schema {shown(schema)}, {reads}; {remedy}")
