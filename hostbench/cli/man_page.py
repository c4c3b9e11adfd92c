"""The page of the manual, hostbench(1), made of what `--help` shows.

`python -m hostbench.cli.man_page` prints it. `make install` and `make wheel` install it.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from hostbench import __version__
from hostbench.base.exitcode import exit_code_table
from hostbench.cli.app import NAME, app
from hostbench.cli.options import EPILOG, EPILOG_HEAD

if TYPE_CHECKING:
    from typer._click.core import Command, Context, Parameter


def man_page() -> str:
    """Return the page in the macros of man(7). It has no date: a version gives the same bytes."""
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    context = command.context_class(command, info_name=NAME)
    lines = [
        f'.TH HOSTBENCH 1 "" "hostbench {__version__}" "User Commands"',
        ".SH NAME",
        f"hostbench \\- {_text(command.help or '')}",
        ".SH SYNOPSIS",
        _usage(command, context),
        ".SH OPTIONS",
        *_parameters(command.get_params(context), context),
        ".SH COMMANDS",
        *_commands(command, context),
        ".SH EXIT STATUS",
        *_exit_codes(exit_code_table()),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: typer.core.TyperGroup, context: "Context") -> Iterator[str]:
    """Yield a section for each command; a group is followed by its commands."""
    for name, command in group.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        yield f".SS {_usage(command, inner)}"
        yield "\n.PP\n".join(_text(part) for part in (command.help or "").split("\n\n"))
        yield from _parameters(command.params, inner)
        if command.epilog and command.epilog != EPILOG:
            yield ".PP\nExit status:"
            yield from _exit_codes(command.epilog.removeprefix(EPILOG_HEAD))
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command, inner)


def _usage(command: "Command", context: "Context") -> str:
    return _text(" ".join([context.command_path, *command.collect_usage_pieces(context)]))


def _parameters(parameters: Iterable["Parameter"], context: "Context") -> Iterator[str]:
    records = (one.get_help_record(context) for one in parameters)
    for term, meaning in filter(None, records):
        yield from _item(term, meaning)


def _exit_codes(table: str) -> Iterator[str]:
    for line in table.splitlines():
        code, _, meaning = line.strip().partition("  ")
        yield from _item(code, meaning)


def _item(term: str, meaning: str) -> Iterator[str]:
    yield f".TP\n\\fB{_text(term)}\\fR\n{_text(meaning)}"


def _text(words: str) -> str:
    """Return it on one line, with nothing that roff takes for its own."""
    line = re.sub(r"\s+", " ", words.strip()).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", line)


if __name__ == "__main__":
    sys.stdout.write(man_page())
