"""What a shell completes, by the calls that bash makes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.command import CHECKOUT


def completed(line: str, **environment: str) -> list[str]:
    """What stands in the place of the last word of a line."""
    words = line.split(" ")
    request = {
        "_HOSTBENCH_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    answer = subprocess.run(
        [sys.executable, "-m", "hostbench"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        env={**os.environ, **request, **environment},
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout.split()


def test_workloads() -> None:
    assert completed("hostbench run --workload cpu.fm") == ["cpu.fma", "cpu.fma_add"]
    assert "disk.rand_read" in completed("hostbench plan --workload disk.")


def test_parameters_of_the_workload() -> None:
    names = completed("hostbench run --workload disk.rand_read --param ")
    assert {"queue_depth=", "engine=", "threads="} <= set(names)
    # Set by the operator of the host only.
    assert "scratch_fd=" not in names
    assert completed("hostbench run --workload disk.rand_read --param q") == ["queue_depth="]


def test_words_of_a_parameter() -> None:
    line = "hostbench submit --workload disk.rand_read --param engine=io"
    assert completed(line) == ["engine=io_uring_fixed", "engine=io_uring"]


@pytest.mark.parametrize(
    "line",
    [
        "hostbench run --param q",
        "hostbench run --workload disk --param q",
        "hostbench run --workload tape.rand_read --param q",
        "hostbench run --workload disk.rand_read --param colour=",
        "hostbench run --workload tape.",
    ],
)
def test_nothing_where_nothing_is_known(line: str) -> None:
    assert completed(line) == []


def test_a_host_without_programs_completes_nothing(tmp_path: Path) -> None:
    line = "hostbench run --workload disk.rand"
    assert completed(line, HOSTBENCH_PROGRAMS=str(tmp_path)) == []
