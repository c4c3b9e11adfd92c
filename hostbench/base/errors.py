"""Expected errors: each is one line with the value, what is allowed, and the remedy.

Any other exception is a programming error and deliberately ends in a traceback.
"""

import difflib
from collections.abc import Iterable

from hostbench.base.exitcode import ExitCode

SHOWN_VALUE_CHARACTERS = 80


class HostbenchError(Exception):
    """An expected error. `message` is one line; `exit_code` is the exit code of the command."""

    exit_code = ExitCode.CASE_FAILED

    def __init__(self, message: str) -> None:
        self.message = " ".join(message.split())
        super().__init__(self.message)

    def add(self, text: str) -> None:
        """Add to the message what only a caller knows."""
        self.message = f"{self.message}; {text}"


class UsageError(HostbenchError):
    """The request is wrong: a bad option, suite, parameter or job id."""

    exit_code = ExitCode.USAGE


class ResourceError(HostbenchError):
    """The run lacks something: a program, a directory, space, permission."""

    exit_code = ExitCode.RESOURCE


class NotIdleError(HostbenchError):
    """The host did not become idle, and the policy is `fail`."""

    exit_code = ExitCode.NOT_IDLE


class BusyError(HostbenchError):
    """Another run holds this host."""

    exit_code = ExitCode.BUSY


class UnreachableError(HostbenchError):
    """The orchestrator or the cluster cannot be reached, refuses the key, or cannot work now."""

    exit_code = ExitCode.UNREACHABLE


def shown(value: object) -> str:
    """Return `value` for an error message: quoted, escaped, and cut to one short line."""
    text = repr(value)
    if len(text) <= SHOWN_VALUE_CHARACTERS:
        return text
    return f"{text[: SHOWN_VALUE_CHARACTERS - 1]}…"


def did_you_mean(value: str, allowed: Iterable[str]) -> str:
    """Return `did you mean 'fma'? ` for the nearest allowed word, or an empty text."""
    near = difflib.get_close_matches(value, list(allowed), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}? " if near else ""


def listing(words: Iterable[str]) -> str:
    """Return what is allowed, such as `a, b or c`, as part of a sentence."""
    items = list(words)
    if not items:
        return "nothing"
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} or {items[-1]}"
