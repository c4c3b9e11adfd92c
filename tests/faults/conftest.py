"""A command of its own for every test, and the certainty that it left nothing running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.command import Command


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    one = Command(tmp_path)
    yield one
    assert one.is_gone_soon(), "a process was left running"
