"""The CI examples of docs/comparing.md, run by the shells that GitHub and GitLab run them with."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from hostbench.base.exitcode import ExitCode
from hostbench.base.place import CHECKOUT
from tests.each import each

PAGE = (CHECKOUT / "docs/comparing.md").read_text()
GITHUB, GITLAB = (yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
# GitHub's default shell; GitLab's for bash.
SHELLS = {"github": ("bash", "-e"), "gitlab": ("bash", "-eo", "pipefail")}
# The commands note how they were called, and end with the code in the file of their name.
COMMAND = """#!/bin/sh
echo "$(basename "$0") $1 $2" >> "$LOG"
echo "$1"
exit "$(cat "$0.code")"
"""


def scripts() -> dict[str, list[str]]:
    """The scripts of each example."""
    steps: list[dict[str, Any]] = GITHUB["jobs"]["benchmark"]["steps"]
    return {
        "github": [step["run"] for step in steps if "run" in step],
        # One shell runs all of them.
        "gitlab": ["\n".join(GITLAB["benchmark"]["script"])],
    }


def ended(name: str, place: Path, **codes: int) -> tuple[int, list[str]]:
    """The exit code of the first script that fails, and the calls until then."""
    log = place / "log"
    log.unlink(missing_ok=True)
    for command in ("install.sh", "hostbench"):
        (place / command).write_text(COMMAND)
        (place / command).chmod(0o755)
        (place / f"{command}.code").write_text(str(codes.get(command.removesuffix(".sh"), 0)))
    environment = {
        "PATH": f"{place}:/usr/bin:/bin",
        "LOG": str(log),
        "GITHUB_STEP_SUMMARY": str(place / "summary"),
    }
    code = 0
    for script in scripts()[name]:
        shell = [*SHELLS[name], "-c", script]
        code = subprocess.run(shell, cwd=place, env=environment, check=False).returncode
        if code:
            break
    return code, log.read_text().splitlines()


@each("name", list(SHELLS))
def test_a_failed_command_ends_the_job(name: str, tmp_path: Path) -> None:
    code, calls = ended(name, tmp_path, install=3)
    assert (code, calls) == (3, ["install.sh main "])
    code, calls = ended(name, tmp_path, hostbench=int(ExitCode.CASE_FAILED))
    assert (code, calls[-1]) == (ExitCode.CASE_FAILED, "hostbench run ./mine.yaml")
    assert len(calls) == 2


@each("name", list(SHELLS))
def test_four_jobs_a_side_in_turn_then_the_answer(name: str, tmp_path: Path) -> None:
    code, calls = ended(name, tmp_path)
    one_round = [
        *("install.sh main ", "hostbench run ./mine.yaml"),
        *("install.sh change ", "hostbench run ./mine.yaml"),
    ]
    assert (code, calls) == (0, [*4 * one_round, "hostbench compare before"])
    assert name != "github" or (tmp_path / "summary").read_text() == "compare\n"


def test_undecided_is_a_warning_of_gitlab() -> None:
    assert GITLAB["benchmark"]["allow_failure"]["exit_codes"] == ExitCode.UNDECIDED
