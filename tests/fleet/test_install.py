"""`make install`: a tree that hosts run hostbench from without the checkout."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hostbench.model.registry import subsystem_names
from tests.faults.command import CHECKOUT, PROGRAMS

INSTALL_S_MOST = 240


@pytest.mark.timeout(INSTALL_S_MOST + 60)
def test_the_installed_tree_needs_no_checkout_and_may_be_moved(tmp_path: Path) -> None:
    # The programs are built before tests; what apt would install is there.
    made = subprocess.run(
        ["make", "--old-file=packages", "--old-file=programs", "install",
         f"DESTDIR={tmp_path / 'stage'}", "PREFIX=/opt/hostbench"],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=INSTALL_S_MOST,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    moved = tmp_path / "elsewhere" / "tools"
    moved.parent.mkdir()
    (tmp_path / "stage" / "opt" / "hostbench").rename(moved)
    shutil.rmtree(tmp_path / "stage")
    link = tmp_path / "hostbench"
    link.symlink_to(moved / "bin" / "hostbench")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in moved.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)  # nodes mount it read-only
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HOSTBENCH_", "PYTHON"))
    } | {"HOSTBENCH_LOCK": str(tmp_path / "lock")}

    def installed(*arguments: str) -> str:
        ended = subprocess.run(
            [link, *arguments], cwd=empty, env=environment, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    tables = json.loads(installed("list", "workloads", "--json"))["programs"]
    assert {table["subsystem"] for table in tables} == set(subsystem_names())
    assert "quick" in installed("list", "suites")
    document = json.loads(
        installed(
            "run",
            "--workload=cpu.clock",
            "--param=duration_s=0.05",
            "--trials=1",
            "--idle-policy=force",
            f"--results={tmp_path / 'results'}",
            "--json",
        )
    )
    (program,) = document["programs"]
    digest = subprocess.run(["sha256sum", PROGRAMS / "cpu-bench"], capture_output=True, text=True)
    assert program["sha256"] == digest.stdout.split()[0]
    assert ".SS hostbench fleet measure" in (moved / "share/man/man1/hostbench.1").read_text()
    assert completed("fleet meas", moved, environment) == ["measure"]


def completed(words: str, tree: Path, environment: dict[str, str]) -> list[str]:
    """What bash makes of `hostbench WORDS` and the tabulator, with the completion of a tree."""
    script = tree / "share/bash-completion/completions/hostbench"
    line = ["hostbench", *words.split(" ")]
    ended = subprocess.run(
        ["bash", "-c", f'. "$1"; COMP_WORDS=({" ".join(line)}) COMP_CWORD={len(line) - 1}; '
         '_hostbench_completion "$2"; printf "%s\\n" "${COMPREPLY[@]}"',
         "bash", script, tree / "bin/hostbench"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ended.stdout.split()


def test_a_relative_prefix_is_refused(tmp_path: Path) -> None:
    ended = subprocess.run(
        [CHECKOUT / "scripts" / "install.sh", str(tmp_path), "opt"], capture_output=True, text=True
    )
    assert ended.returncode == 2 and "PREFIX=opt is not absolute" in ended.stderr
