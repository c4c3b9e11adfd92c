"""hostbench(1): it has every command and option of the command line, and man formats it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from hostbench.cli.app import app
from hostbench.cli.man_page import man_page


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All commands below a group, with their names in full."""
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, f"{path} {name}")


def test_it_has_every_command_with_its_options() -> None:
    sections = {
        match[1]: match[2]
        for match in re.finditer(
            r"^\.SS (hostbench [a-z\\ -]+?) [\[A-Z{].*\n((?:(?!\.S[HS]).*\n)*)",
            man_page(),
            re.MULTILINE,
        )
    }
    found = dict(commands(typer.main.get_command(app), "hostbench"))
    assert {name.replace("\\-", "-") for name in sections} == found.keys()
    assert {"hostbench run", "hostbench fleet report", "hostbench baseline check"} < found.keys()
    for name, text in sections.items():
        plain = text.replace("\\-", "-")
        for parameter in found[name.replace("\\-", "-")].params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                shown = re.search(rf"^\\fB(?:.*[ /])?{option}\b", plain, re.MULTILINE)
                assert shown or not option.startswith("-"), (name, option)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_it_is_formatted_without_a_warning() -> None:
    ended = subprocess.run(
        ["groff", "-man", "-Tutf8", "-Kutf8", "-ww"],
        input=man_page(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    text = re.sub(r".\x08|\x1b\[[\d;]*m", "", ended.stdout)  # what makes it bold
    for heading in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "EXIT STATUS"):
        assert f"\n{heading}\n" in text
    assert "--idle-policy <fail|flag|force>" in text
