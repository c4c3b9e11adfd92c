"""How long decisions over many figures take, as whole commands with the index filled.

The jobs are made up (tests/unit/decided.py): the time depends on how many figures there are, and
not on their values. Prints the table of README; --readme writes it there.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decisions.page import show
from benchmarks.programs import ROOT
from benchmarks.tables import README
from hostbench.base.exitcode import ExitCode
from hostbench.decisions.sets import EARLIER_MOST
from tests.unit.decided import Hosts, indexed

RUNS = 5
# The words of these commands: a command that fails is not timed.
ANSWERS = (ExitCode.OK, ExitCode.WORSE, ExitCode.UNDECIDED)


@dataclass(frozen=True)
class Question:
    """A command, and the jobs that it is about: so many, each with so many cases."""

    name: str
    arguments: tuple[str, ...]
    jobs: int
    cases: int


QUESTIONS = (
    Question(
        f"`compare`, 1 job a side, {EARLIER_MOST} earlier ones",
        ("compare", "latest-1", "latest"),
        EARLIER_MOST + 2,
        600,
    ),
    Question(
        "`compare`, 8 jobs a side",
        ("compare", "*000[1-8]Z-*", "*0009Z-*,*001[0-6]Z-*"),
        16,
        600,
    ),
    Question("`history`, one case", ("history", "cpu.fma 0"), 1000, 6),
    Question("`history`, headline cases", ("history",), 1000, 6),
)


def took_s(question: Question, results: Path) -> float:
    """Return how long a command takes, from its start to its end."""
    command = [sys.executable, "-m", "hostbench", *question.arguments, "--results", str(results)]
    began_s = time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    took = time.monotonic() - began_s
    if ended.returncode not in ANSWERS:
        raise SystemExit(f"{' '.join(question.arguments)} ended with {ended.returncode}")
    return took


def table() -> Iterator[str]:
    """Yield the table of README as lines of Markdown."""
    yield f"| command | jobs | cases a job | median of {RUNS} | range |"
    yield "|---|---|---|---|---|"
    for one in QUESTIONS:
        with tempfile.TemporaryDirectory() as place:
            titles = tuple(f"cpu.fma {number}" for number in range(one.cases))
            indexed(Path(place), Hosts(titles).jobs(one.jobs))
            times = [took_s(one, Path(place)) for _ in range(RUNS)]
        yield (
            f"| {one.name} | {one.jobs:,} | {one.cases} | {statistics.median(times):.2f} s "
            f"| {min(times):.2f} to {max(times):.2f} s |"
        )


def main() -> None:
    """Print the table."""
    show({README: {"cost": table()}})


if __name__ == "__main__":
    main()
