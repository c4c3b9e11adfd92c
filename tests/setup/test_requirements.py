"""The lock files: each file has its hash, no address stands in them, they fit their sources."""

import re
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
NAMES = ["cli", "service", "orchestrator", "openblas", "wheel", "redis", "dev", "installers"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(name: str) -> list[str]:
    """The requirements of a lock file, each with its continuation lines."""
    lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return text.replace("\\\n", "").splitlines()


def pins(name: str) -> set[str]:
    return {entry.split("--hash")[0].strip() for entry in entries(name)}


@pytest.mark.parametrize("name", NAMES)
def test_every_requirement_is_pinned_with_hashes(name: str) -> None:
    for entry in entries(name):
        assert re.match(r"[\w.-]+==\S+ ", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("name", NAMES)
def test_no_address(name: str) -> None:
    assert "://" not in (REQUIREMENTS / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_everything_requested_is_locked(name: str) -> None:
    lines = (REQUIREMENTS / f"{name}.in").read_text().splitlines()
    requested = {canonical(re.split("[ =<>]", line)[0]) for line in lines if re.match(r"\w", line)}
    assert requested <= {canonical(pin.split("==")[0]) for pin in pins(name)}


@pytest.mark.parametrize("name", ["cli", "service", "orchestrator"])
def test_development_uses_the_versions_of_users(name: str) -> None:
    assert pins(name) <= pins("dev")
