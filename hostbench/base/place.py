"""Where hostbench's own files are, and what it was built from.

A checkout has programs, suites and baselines beside the package; a wheel has them inside it.
"""

import json
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent
IN_WHEEL = (PACKAGE / "bin").is_dir()
# Of suites/ and baselines/.
HOME = PACKAGE if IN_WHEEL else CHECKOUT
PROGRAMS = PACKAGE / "bin" if IN_WHEEL else CHECKOUT / "build" / "release"
REBUILD = (
    "install hostbench again, with pip's --force-reinstall"
    if IN_WHEEL
    else "build it again with make programs"
)
# scripts/copy-code.sh writes it.
BUILD_FILE = PACKAGE / "build.json"
GIT_S = 5.0


def build() -> str:
    """Return the commit and the build, such as `commit 0123456789ab, manylinux_2_28_x86_64, gcc
    12.2.0`."""
    try:
        made = json.loads(BUILD_FILE.read_text())
        return f"commit {made['commit']}, {made['build']}"
    except FileNotFoundError:
        return f"commit {_commit()}, checkout" if (CHECKOUT / ".git").exists() else "commit unknown"


def _commit() -> str:
    import subprocess  # not for commands that start fast

    command = ["git", "-C", str(CHECKOUT), "rev-parse", "--short=12", "HEAD"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return ended.stdout.strip() or "unknown"
