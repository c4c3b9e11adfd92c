"""What the commands that decide share: which jobs count, and where the answer goes."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TextIO

import typer

OPTION, WHAT = "--output", "the output"
Output = Annotated[
    str | None,
    typer.Option(OPTION, metavar="FILE", help="Where to. Default, and -: standard output."),
]
OfHost = Annotated[str | None, typer.Option("--host", help="Only jobs of this host.")]
OfSuite = Annotated[str | None, typer.Option("--suite", help="Only jobs of this suite.")]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only jobs from then on: 2026-11-20, or 3d ago."),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only jobs before then.")]


def write_text(output: str | None, write: Callable[[TextIO], None]) -> None:
    """Call `write` with the file; None or -: with standard output. Raise UsageError or
    ResourceError for a file that cannot be written."""
    from hostbench.results.output import STANDARD_OUTPUT, check_output, write_output

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
