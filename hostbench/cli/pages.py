"""Where commands that decide write what they found."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TextIO

import typer

from hostbench.results.output import STANDARD_OUTPUT, check_output, write_output

OPTION, WHAT = "--output", "the output"
Output = Annotated[
    str | None,
    typer.Option(OPTION, metavar="FILE", help="Where to. Default, and -: standard output."),
]


def write_text(output: str | None, write: Callable[[TextIO], None]) -> None:
    """Has `write` write to the file, None or -: to standard output. Raises UsageError or
    ResourceError for a file that cannot be written."""
    if output in (None, STANDARD_OUTPUT):
        write(sys.stdout)
        return
    target = Path(output or "")
    check_output(OPTION, WHAT, target, "comparison.html")
    content = io.BytesIO()
    text = io.TextIOWrapper(content, encoding="utf-8")
    write(text)
    text.flush()
    write_output(OPTION, WHAT, target, content.getvalue())
