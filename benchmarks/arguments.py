"""What the scripts of this directory read from their command line and their environment: how often
to measure, and how long."""

import os
import sys
from pathlib import Path

SECONDS_MOST = 3600.0


def given_seconds(variable: str, default: float) -> float:
    """Return the seconds that a variable of the environment holds, else the default.

    Raise SystemExit for what is no number above 0, or above an hour.
    """
    word = os.environ.get(variable) or f"{default:g}"
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= SECONDS_MOST:
        raise SystemExit(
            f"{variable}={word} is no number of seconds above 0 and up to {SECONDS_MOST:g}: "
            f"unset it for {default:g}"
        )
    return seconds


def given_number(default: int, *, place: int = 1) -> int:
    """Return the whole number at `place` of the command line, else the default.

    Raise SystemExit when the word there is not a whole number above 0.
    """
    if len(sys.argv) <= place:
        return default
    word = sys.argv[place]
    if not word.isdecimal() or int(word) == 0:
        script = Path(sys.argv[0]).stem
        raise SystemExit(
            f"{script}: argument {place}, {word!r}, is no whole number above 0: "
            f"leave it out for {default}"
        )
    return int(word)
