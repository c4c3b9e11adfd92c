"""Values given to options, read so that a bad one is named in its own error message."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostbench.base.errors import UsageError, shown

if TYPE_CHECKING:
    from hostbench.model.suite import PeerChoice

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


def peer_choice(text: str) -> "PeerChoice":
    """`auto`, `none`, or the tools of a list such as `likwid-bench,sysbench`. Raises UsageError."""
    if text == "auto":
        return "auto"
    if text == "none":
        return "none"
    tools = [tool.strip() for tool in text.split(",")]
    if not all(tools):
        raise UsageError(
            f"--peers {shown(text)} is not a list of tools; "
            "give auto, none, or names with commas between them"
        )
    return tools


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """`{"threads": "2"}` of `threads=2`; hyphens in a name are underscores. Raises UsageError."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not value:
            raise UsageError(f"--param {shown(text)} is not name=value; write it like threads=2")
        if name in given:
            raise UsageError(f"--param {name} is given twice; give it once")
        given[name] = value
    return given


def check_subject(
    suite: str | None, workload: str | None, params: Sequence[str], scale: str | None = None
) -> None:
    """Refuses a suite or its scale beside a workload, and parameters without one. Raises
    UsageError."""
    if workload is not None and suite is not None:
        raise UsageError(
            f"suite {shown(suite)} and --workload {shown(workload)} are both given; leave out one"
        )
    if workload is not None and scale is not None:
        raise UsageError(
            f"--scale {shown(scale)} is a scale of a suite, and --workload {shown(workload)} "
            "measures none; leave out one"
        )
    if params and workload is None:
        raise UsageError(
            f"--param {shown(params[0])} needs --workload; "
            "the parameters of a suite stand in its file"
        )
