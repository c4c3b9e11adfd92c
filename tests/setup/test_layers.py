"""`make lint` stops an import that the layers of pyproject.toml forbid, and the page has the same
layers."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("grafana", "hostbench", "orchestrator", "services")
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and their rules."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in PACKAGES:
        skipped = shutil.ignore_patterns("tests", "__pycache__", "bench", "dashboards")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped)
    return tmp_path


def test_the_page_has_the_layers_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in settings["contracts"] if one.get("exhaustive"))
    page = (ROOT / "docs/architecture.md").read_text().partition("## Layers")[2]
    rows = re.findall(r"^\| (`[a-z`, ]+) \|", page.partition("\n### ")[0], re.MULTILINE)
    assert [row.replace("`", "").replace(", ", " | ") for row in rows] == layers[1:]


def test_make_lint_looks_at_them() -> None:
    command = ["make", "--dry-run", "lint"]
    commands = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ".venv/bin/lint-imports" in commands


# (file, line added to it, what the tool has to say of it)
FORBIDDEN = [
    (
        "hostbench/model/limit.py",
        "from hostbench.report.figures import label",
        "hostbench.model is not allowed to import hostbench.report",
    ),
    (
        "hostbench/run/execute.py",
        "import services.cpu.limits",
        "hostbench is not allowed to import services",
    ),
    (
        "services/mem/limits.py",
        "from services.cpu.limits import limits as theirs",
        "services.mem is not allowed to import services.cpu",
    ),
    (
        "hostbench/run/job.py",
        "def late() -> None:\n    import redis",
        "hostbench is not allowed to import redis",
    ),
    (
        "orchestrator/core.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rich.table",
        "orchestrator is not allowed to import rich",
    ),
    (
        "hostbench/novelty/__init__.py",
        "",
        "hostbench.novelty",
    ),
    (
        "hostbench/results/ids.py",
        "def late() -> None:\n    from hostbench.results.store import JobDirectory",
        "No cycles are allowed in hostbench.results",
    ),
]


def test_forbidden_imports_are_named(tree: Path) -> None:
    """All at once: the tool takes its time to read a tree."""
    for path, line, _ in FORBIDDEN:
        (tree / path).parent.mkdir(exist_ok=True)
        with (tree / path).open("a") as file:
            file.write(f"\n{line}\n")
    ended = subprocess.run(
        [LINT_IMPORTS, "--no-cache"], cwd=tree, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    text = " ".join(ended.stdout.split())
    assert [contract for _, _, contract in FORBIDDEN if contract not in text] == []
