"""Comparisons of stored jobs, made in a process of their own.

python -m orchestrator.results.deciding RESULTS QUESTION      a Comparison on standard output
"""

import sys
from pathlib import Path

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.decisions.compare import compare
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.sets import JobFilter, compared_sides, moment
from hostbench.model.body import BodyModel
from orchestrator.results.apart import OneAtATime, Work, print_made


class Question(BodyModel):
    """What GET /compare asks; docs/comparing.md says what the sides may be. Times as `moment` reads
    them, `margin` a share of 1."""

    a: str
    b: str
    host: str | None = None
    suite: str | None = None
    since: str | None = None
    until: str | None = None
    margin: float | None = None


class Decider:
    """Answers one question at a time."""

    def __init__(self, results: Path, one_at_a_time: OneAtATime) -> None:
        self._results = results
        self._one_at_a_time = one_at_a_time

    async def compare(self, question: Question) -> bytes:
        """A Comparison as JSON. Raises UsageError for sides that are none, ResourceError where it
        takes too long or too much."""
        work = Work(
            module="orchestrator.results.deciding",
            arguments=(str(self._results), question.model_dump_json()),
            name="the comparison",
            elsewhere="compare a copy of the results with hostbench compare --results DIRECTORY",
        )
        return await self._one_at_a_time.made(work, _refused)


def _refused(why: str) -> HostbenchError:
    return UsageError(why)


def main(results: str, question: str) -> int:
    """Prints the answer."""
    asked = Question.model_validate_json(question)

    def answer() -> bytes:
        wanted = JobFilter(
            host=asked.host,
            suite=asked.suite,
            since_unix_s=None if asked.since is None else moment("since", asked.since),
            until_unix_s=None if asked.until is None else moment("until", asked.until),
        )
        with FigureIndex(Path(results)) as index:
            sides = compared_sides((asked.a, asked.b), index, wanted, files=False)
            a, b = sides.sides
            found = compare(
                a, b, names=(asked.a, asked.b), earlier=sides.earlier, margin=asked.margin
            )
        return found.model_dump_json().encode()

    return print_made(answer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
