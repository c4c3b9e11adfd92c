"""Find out which pages a program has its memory in, while it runs."""

import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

# Makes malloc ask for huge pages, from glibc 2.35 on.
GLIBC_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
LOOK_EVERY_S = 0.02


def huge_bytes(command: Sequence[str], *descriptors: int) -> int:
    """Run a command once and return the most bytes that it had in transparent huge pages.

    The command inherits `descriptors`. Raise SystemExit when it fails.
    """
    most = 0
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=descriptors
    ) as child:
        while child.poll() is None:
            most = max(most, _huge_bytes_now(child.pid))
            time.sleep(LOOK_EVERY_S)
    if child.returncode:
        raise SystemExit(f"{shlex.join(command)}: exit {child.returncode}")
    return most


def _huge_bytes_now(pid: int) -> int:
    """Return the bytes in huge pages now, or 0 when the process has ended."""
    try:
        text = Path("/proc", str(pid), "smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^AnonHugePages: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
