"""Numbers given to options, read so that a bad one is named in its own error message."""

import math
import re

from hostbench.errors import UsageError, shown

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def whole_number(option: str, text: str, low: int, high: int) -> int:
    """`text` as a whole number from `low` to `high`. Raises UsageError."""
    if _INTEGER.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise UsageError(f"{option} {shown(text)} is not a whole number from {low} to {high}")


def seconds(option: str, text: str) -> float:
    """`text` as a time of 0 or more seconds, `inf` included. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value >= 0:  # nan is not
        return value
    raise UsageError(f"{option} {shown(text)} is not a time; give 0 or more seconds")
