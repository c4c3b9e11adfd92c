"""Finds figures in what peers print."""

import re

from hostbench.base.errors import shown
from hostbench.programs.peer import BadOutput

ROUNDING = 0.01
# Also nan and inf: whoever prints them has no figure, and is told so.
NUMBER = r"([-+]?(?:\d[\d.eE+-]*|nan|inf))"


def match(pattern: str, output: str, what: str) -> re.Match[str]:
    """The last match of `pattern` by lines. Raises BadOutput naming `what` when there is none."""
    found = list(re.finditer(pattern, output, re.MULTILINE))
    if not found:
        raise BadOutput(f"no {what} in its output")
    return found[-1]


def number(pattern: str, output: str, what: str) -> float:
    """The number that the first group of `pattern` holds. Raises BadOutput."""
    text = match(pattern, output, what)[1]
    try:
        return float(text)
    except ValueError:
        raise BadOutput(f"{what} {shown(text)} is not a number") from None


def expect(what: str, found: object, asked: object) -> None:
    """Raises BadOutput unless the tool ran as it was asked to."""
    if found != asked:
        raise BadOutput(f"it ran with {what} {found} instead of {asked}")


def expect_about(what: str, found: float, asked: float) -> None:
    """Raises BadOutput unless the tool, which rounds, ran nearly as it was asked to."""
    if not abs(found - asked) <= ROUNDING * asked:
        raise BadOutput(f"it ran with {what} {found:g} instead of {asked:g}")


def whole_seconds(elapsed_s: float) -> int:
    """For tools that take whole seconds; some of them run forever when given 0."""
    return max(1, round(elapsed_s))


def version(answer: str, pattern: str) -> str | None:
    """The version in what a tool says of itself, None when it says nothing of the kind."""
    found = re.search(pattern, answer)
    return found[1] if found else None
