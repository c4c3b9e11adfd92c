"""Finds figures in the output of peers."""

import re

from hostbench.base.errors import shown
from hostbench.programs.peer import BadOutput

ROUNDING = 0.01
# Also nan and inf: a tool that prints them has no figure, and the error quotes them.
NUMBER = r"([-+]?(?:\d[\d.eE+-]*|nan|inf))"


def match(pattern: str, output: str, what: str) -> re.Match[str]:
    """Return the last match of `pattern`, line by line. Raise BadOutput, which names `what`, when
    there is none."""
    found = list(re.finditer(pattern, output, re.MULTILINE))
    if not found:
        raise BadOutput(f"no {what} in its output")
    return found[-1]


def number(pattern: str, output: str, what: str) -> float:
    """Return the number in the first group of `pattern`. Raise BadOutput."""
    text = match(pattern, output, what)[1]
    try:
        return float(text)
    except ValueError:
        raise BadOutput(f"{what} {shown(text)} is not a number") from None


def expect(what: str, found: object, expected: object) -> None:
    """Raise BadOutput unless the tool ran with the requested value."""
    if found != expected:
        raise BadOutput(f"it ran with {what} {found} instead of {expected}")


def expect_about(what: str, found: float, expected: float) -> None:
    """Raise BadOutput unless the tool, which rounds, ran with nearly the requested value."""
    if not abs(found - expected) <= ROUNDING * expected:
        raise BadOutput(f"it ran with {what} {found:g} instead of {expected:g}")


def whole_seconds(elapsed_s: float) -> int:
    """Return the time for tools that take whole seconds; some of them run forever when given 0."""
    return max(1, round(elapsed_s))


def version(answer: str, pattern: str) -> str | None:
    """Return the version in a tool's output about itself, or None."""
    found = re.search(pattern, answer)
    return found[1] if found else None
