"""What commands print on standard output."""

import json
import sys
from typing import TYPE_CHECKING

import typer

from hostbench.base.errors import UsageError

if TYPE_CHECKING:
    from hostbench.model.result import ResultDocument

# Everything that takes time to import is imported by the command that needs it.


def refuse_both(as_json: bool, as_csv: bool) -> None:
    """Raises UsageError when two forms are requested."""
    if as_json and as_csv:
        raise UsageError("--json and --csv are both given; leave out one")


def print_json(content: object) -> None:
    """One JSON document."""
    typer.echo(json.dumps(content, indent=1))


def print_document(document: "ResultDocument", *, as_json: bool, as_csv: bool) -> None:
    """A result as a table, unless another form is requested."""
    if as_json:
        typer.echo(document.model_dump_json(indent=1))
    elif as_csv:
        from hostbench.results.csv import case_table

        sys.stdout.write(case_table(document))
    else:
        from hostbench.cli.render import show_result

        show_result(document, sys.stdout)
