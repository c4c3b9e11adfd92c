"""What the pages show is there: every `hostbench` line parses, every variable is read somewhere,
and every suite loads. The pages that derive from help and from others are as these are now."""

import contextlib
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from hostbench.base.config import EnvironmentSettings
from hostbench.cli.app import app
from hostbench.cli.reference import PAGE, page
from hostbench.docs import SETTINGS_PAGE, settings_page, settings_pages
from hostbench.plan.suite import load_suite
from hostbench.remote.far_options import _FarAccess, _FarAddress
from hostbench.service.settings import Settings as ServiceSettings
from orchestrator.settings import Settings as OrchestratorSettings
from tests.machine_code import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "benchmarks/README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("services/*/README.md")),
]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# Where a shell's command may begin: a line, perhaps of a session or of a CI's file, and what
# follows another command.
COMMAND = re.compile(
    r"(?:^\s*(?:\$ |- run: |- |\w+=\S+ )*|(?:;|\bdo|\$\(|\||&&|xargs -L 1)\s*)"
    r"(?:\.venv/bin/)?hostbench (?P<rest>[a-z-].*)"
)
# Stands after at least two spaces.
DESCRIPTION = re.compile(r"\s{2,}(?=\S).*")
VARIABLE = re.compile(r"HOSTBENCH_[A-Z][A-Z_]*[A-Z]")
# What a page leaves out.
LEFT_OUT = "…"


def lines_of(text: str) -> Iterator[str]:
    """The lines of code, each with what continues it; none of another language's or of output."""
    for _, language, code in FENCE.findall(text):
        if language in ("", "yaml", "sh", "console"):
            yield from re.sub(r"\\\n\s*", "", code).splitlines()


def calls(text: str) -> list[list[str]]:
    """The arguments of every call of hostbench in the code of a page."""
    found = []
    for line in lines_of(text):
        # The shell puts a path there.
        for match in COMMAND.finditer(re.sub(r"<\([^)]*\)", "FILE", line)):
            rest = DESCRIPTION.sub("", match["rest"].strip())
            lexer = shlex.shlex(rest, posix=True, punctuation_chars="();<>|&")
            lexer.whitespace_split = True
            words = list(itertools.takewhile(lambda word: not set(word) <= set("();<>|&"), lexer))
            # A list of several commands: the first.
            ends = [number for number, word in enumerate(words, 1) if word.endswith(",")]
            found.append([word.rstrip(",") for word in words[: next(iter(ends), None)]])
    return found


@cache
def group() -> TyperGroup:
    """All commands."""
    return typer.main.get_group(app)


def complaint(words: list[str]) -> str | None:
    """What the command line says against these arguments; None: nothing."""
    left_out = LEFT_OUT in words
    command: TyperCommand | TyperGroup = group()
    context: typer.Context | None = None
    words = [word for word in words if word != LEFT_OUT]
    while isinstance(command, TyperGroup):
        context = typer.Context(command, info_name="hostbench", parent=context)
        found = command.commands.get(words[0]) if words else None
        if not isinstance(found, TyperCommand | TyperGroup):
            return f"no command {words[:1]}"
        command, words = found, words[1:]
    try:
        with contextlib.suppress(typer.Exit):
            command.make_context(command.name, list(words), parent=context)
    except typer.TyperException as error:
        message = error.format_message()
        return None if left_out and message.startswith("Missing") else message
    return None


def test_every_command_in_the_pages_parses() -> None:
    wrong, count = [], 0
    for file in PAGES:
        for words in calls(file.read_text()):
            count += 1
            if problem := complaint(words):
                wrong.append(f"{file.relative_to(ROOT)}: hostbench {shlex.join(words)}: {problem}")
    assert count > 150 and wrong == []


def test_a_wrong_command_is_found() -> None:
    text = (
        "```\nhostbench run quick --pears none      measures\n$ x=$(hostbench shaw \\\n  a)\n```\n"
    )
    assert calls(text) == [["run", "quick", "--pears", "none"], ["shaw", "a"]]
    assert all(map(complaint, calls(text)))
    assert complaint(["run", LEFT_OUT, "--wait", "30"]) is None


@cache
def read_variables() -> frozenset[str]:
    """Every variable in the sources, without pages, tests and benchmarks."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    sources = [ROOT / name for name in listed if not name.endswith(".md") and "tests/" not in name]
    texts = (one.read_text(errors="replace") for one in sources if one.is_file())
    return frozenset(name for text in texts for name in VARIABLE.findall(text)) | declared()


def declared() -> frozenset[str]:
    """The variables of all classes of settings; of a secret, the one that names its file."""
    classes: list[type[EnvironmentSettings]] = [
        _FarAccess, _FarAddress, ServiceSettings, OrchestratorSettings,
    ]  # fmt: skip
    names = {(one, field) for one in classes for field in one.model_fields if field != "subsystem"}
    return frozenset(one.variable(field) for one, field in names)


def test_every_variable_in_the_pages_is_read_somewhere() -> None:
    unknown = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in PAGES
        for name in VARIABLE.findall(file.read_text())
        if not {name, f"{name}_FILE", name.removesuffix("_FILE")} & read_variables()
    }
    assert unknown == set()


def test_every_setting_is_in_the_pages() -> None:
    assert declared() - set(VARIABLE.findall(SETTINGS_PAGE.read_text())) == set()


def test_every_suite_in_the_pages_loads(tmp_path: Path) -> None:
    found = 0
    for file in PAGES:
        for indent, language, code in FENCE.findall(file.read_text()):
            if language == "yaml" and re.search(rf"^{indent}cases:", code, re.MULTILINE):
                suite = tmp_path / "suite.yaml"
                suite.write_text(re.sub(rf"^{indent}", "", code, flags=re.MULTILINE))
                assert load_suite(suite).cases, file
                found += 1
    assert found >= 2


def test_the_page_of_the_command_line_is_its_help() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m hostbench.cli.reference"


def test_the_page_of_settings_is_that_of_the_others() -> None:
    text = settings_page(settings_pages())
    assert SETTINGS_PAGE.read_text() == text, "write it anew: python -m hostbench.docs"
