"""Objects of a cluster from JSON, with the type that they are."""

from collections.abc import Mapping
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def decoded(kind: type[Kind], content: Mapping[str, Any]) -> Kind:
    """Return the object as a client gets it."""
    decode: Any = kind
    one = decode.from_dict(content)
    assert isinstance(one, kind)
    return one
