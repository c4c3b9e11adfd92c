"""A command that is forked does what one that is started does."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.faults.command import Command, end_of
from tests.stack import preloaded


@pytest.mark.parametrize("arguments", [("--help",), ("run", "./bro\udcffken.yaml", "--json")])
def test_it_says_and_returns_the_same(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "bro\udcffken.yaml").write_text("name: broken\ncases: none\n")
    command = Command(tmp_path, COLUMNS="70")
    assert preloaded.can_fork(command.environment)
    assert command.run(*arguments) == end_of(command.start(*arguments))


def test_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired, match=r"doctor.* after 0\.5 seconds"):
        Command(tmp_path).run("doctor", timeout_s=0.5)


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONIOENCODING", "LC_ALL"])
def test_python_reads_its_variables_when_it_starts(name: str) -> None:
    assert not preloaded.can_fork(os.environ | {name: "ascii"})
