"""scripts/find-python.sh chooses the interpreter of .venv."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/find-python.sh"


def interpreter(path: Path, *, suits: bool) -> Path:
    path.write_text(f"#!/bin/bash\nexit {0 if suits else 1}\n")
    path.chmod(0o755)
    return path


def find(directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT],
        env={"PATH": f"{directory}:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
    )


def test_takes_the_first_on_path(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "python3", suits=True)
    assert find(tmp_path).stdout.strip() == str(python)


def test_passes_over_one_that_does_not_suit(tmp_path: Path) -> None:
    interpreter(tmp_path / "python3", suits=False)
    interpreter(tmp_path / "python3.14", suits=True)
    result = find(tmp_path)
    assert result.returncode == 0
    assert result.stdout.strip() != str(tmp_path / "python3")


def test_the_one_that_is_named_goes_first(tmp_path: Path) -> None:
    interpreter(tmp_path / "python3", suits=True)
    named = interpreter(tmp_path / "mine", suits=True)
    assert find(tmp_path, PYTHON=str(named)).stdout.strip() == str(named)


@pytest.mark.parametrize("missing", [True, False])
def test_one_that_is_named_and_does_not_suit_is_an_error(tmp_path: Path, missing: bool) -> None:
    interpreter(tmp_path / "python3", suits=True)
    named = tmp_path / "old"
    if not missing:
        interpreter(named, suits=False)
    result = find(tmp_path, PYTHON=str(named))
    assert result.returncode == 1
    assert str(named) in result.stderr and "3.11" in result.stderr
