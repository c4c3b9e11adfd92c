"""What to give in place of a value that pydantic refused, in plain words.

Pydantic's own messages are about Python's types."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hostbench.base.errors import did_you_mean, listing

_WHOLE, _NUMBER = "a whole number", "a number"
# By the type of pydantic's error, with fields of its context: what is allowed.
_ALLOWED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "enum": "{expected}",
    "finite_number": "a finite number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": "a shorter number",
    "int_type": _WHOLE,
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": "text",
    "too_long": "at most {max_length}",
    "too_short": "at least {min_length}",
    "tuple_type": "a list",
}


def remedy(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return what to give, such as `give a whole number`, as part of a sentence. `errors`: those of
    pydantic for one value, one for each of the types that it may have."""
    allowed: dict[str, None] = {}
    for one in errors:
        words = _ALLOWED.get(one["type"])
        if words is None:
            return str(one["msg"]).replace("Input should", "it should", 1)
        bounds = {name: _as_written(value) for name, value in one.get("ctx", {}).items()}
        allowed[words.format_map(bounds)] = None
    return f"{_meant(errors[0].get('input'), allowed)}give {listing(allowed)}"


def _as_written(bound: object) -> object:
    """Return a bound as people write it: `0` for 0.0."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _meant(value: object, allowed: Iterable[str]) -> str:
    """Return `did you mean 'running'? ` for a value that is nearly one of the allowed words."""
    words = re.findall(r"'([^']+)'", " ".join(allowed))
    return did_you_mean(value, words) if isinstance(value, str) else ""
