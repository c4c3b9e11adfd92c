"""What the scripts of this directory read from their command line: mostly how often to measure."""

import sys
from pathlib import Path


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
