"""Decisions about stored jobs, made in a process of their own.

python -m orchestrator.results.deciding RESULTS QUESTION      the answer as JSON on standard output
"""

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.decisions.baseline_files import checked_host, known_baselines
from hostbench.decisions.compare import compare
from hostbench.decisions.history import headline_histories, history_of
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.job import JobDecider
from hostbench.decisions.sets import JobFilter, compared_sides, moment
from hostbench.model.body import BodyModel
from hostbench.model.decision import FigureKind, HostHistory
from hostbench.model.job_decision import JobDecisions
from hostbench.model.result import ResultDocument, StoredModel
from hostbench.results.store import JobDirectory
from orchestrator.results.apart import OneAtATime, Work, made_apart, print_made


class _OfJobs(BodyModel):
    """Which jobs count. Times as `moment` reads them."""

    suite: str | None = None
    since: str | None = None
    until: str | None = None

    def wanted(self, host: str | None) -> JobFilter:
        """Those of a host, where one is given. Raises UsageError."""
        return JobFilter(
            host=host,
            suite=self.suite,
            since_unix_s=None if self.since is None else moment("since", self.since),
            until_unix_s=None if self.until is None else moment("until", self.until),
        )


class CompareQuestion(_OfJobs):
    """What GET /compare asks; docs/comparing.md says what the sides may be. `margin` is a share of
    1."""

    asks: Literal["compare"] = "compare"
    a: str
    b: str
    host: str | None = None
    margin: float | None = None

    @property
    def name(self) -> str:
        """See Work."""
        return "the comparison"

    @property
    def elsewhere(self) -> str:
        """See Work."""
        return "compare a copy of the results with hostbench compare --results DIRECTORY"

    def answer(self, results: Path) -> StoredModel:
        """Raises UsageError."""
        with FigureIndex(results) as index:
            sides = compared_sides((self.a, self.b), index, self.wanted(self.host), files=False)
            a, b = sides.sides
            return compare(a, b, names=(self.a, self.b), earlier=sides.earlier, margin=self.margin)


class HistoryQuestion(_OfJobs):
    """What GET /hosts/{host}/history asks; `case` None: all headline cases."""

    asks: Literal["history"] = "history"
    host: str
    case: str | None = None
    figure: FigureKind | None = None

    @property
    def name(self) -> str:
        """See Work."""
        return f"the history of {self.host}"

    @property
    def elsewhere(self) -> str:
        """See Work."""
        return "ask for one case, or for fewer jobs with since"

    def answer(self, results: Path) -> StoredModel | None:
        """None: no stored job is of the host. Raises UsageError."""
        with FigureIndex(results) as index:
            if all(job.host != self.host for job in index.heads()):
                return None
            wanted = self.wanted(self.host)
            if self.case is None:
                return headline_histories(index, wanted, self.figure)
            found = history_of(index, self.case, wanted, self.figure)
            return HostHistory(host=self.host, histories=(found,))


class BaselinesQuestion(BodyModel):
    """What GET /baselines asks."""

    asks: Literal["baselines"] = "baselines"

    @property
    def name(self) -> str:
        """See Work."""
        return "the list of baselines"

    @property
    def elsewhere(self) -> str:
        """See Work."""
        return "list a copy of the folders with hostbench baseline list"

    def answer(self, _results: Path) -> StoredModel:
        """Files that cannot be used are in it, with the reason."""
        return known_baselines(os.environ)


class BaselineQuestion(BodyModel):
    """What GET /jobs/{job}/baseline asks."""

    asks: Literal["baseline"] = "baseline"
    job: str

    @property
    def name(self) -> str:
        """See Work."""
        return f"the check of {self.job}"

    @property
    def elsewhere(self) -> str:
        """See Work."""
        return f"check a copy of the results with hostbench baseline check {self.job}"

    def answer(self, results: Path) -> StoredModel:
        """Raises UsageError for a document that cannot be trusted."""
        return checked_host(_document(results, self.job), os.environ)


class JobQuestion(BodyModel):
    """What is asked about every job when its document is stored."""

    asks: Literal["job"] = "job"
    job: str

    @property
    def name(self) -> str:
        """See Work."""
        return f"what is decided of {self.job}"

    @property
    def elsewhere(self) -> str:
        """See Work."""
        return "write it with python -m orchestrator.influx.reindex"

    def answer(self, results: Path) -> StoredModel:
        """Raises UsageError for a document that cannot be trusted."""
        with FigureIndex(results) as index:
            return JobDecider(index, os.environ).of(_document(results, self.job))


Question = CompareQuestion | HistoryQuestion | BaselinesQuestion | BaselineQuestion | JobQuestion
_QUESTIONS: TypeAdapter[Question] = TypeAdapter(Annotated[Question, Field(discriminator="asks")])


def _document(results: Path, job: str) -> ResultDocument:
    return JobDirectory(results / job).load()


class Decider:
    """Answers one question at a time, as JSON; empty for None."""

    def __init__(self, results: Path, one_at_a_time: OneAtATime) -> None:
        self._results = results
        self._one_at_a_time = one_at_a_time
        self._one_job_at_a_time = threading.Lock()

    async def answer(self, question: Question) -> bytes:
        """Raises UsageError for what is no question, ResourceError where it takes too long or too
        much; Problem: an error in the code of the answer, which is logged."""
        return await self._one_at_a_time.made(self._work(question), UsageError)

    def of_job(self, job: str, interrupt: Interrupt) -> JobDecisions:
        """The decisions of a job whose document is stored; for a thread of its own.

        Raises HostbenchError and Problem, as above; asyncio.CancelledError where `interrupt` comes.
        """
        with self._one_job_at_a_time:
            made = asyncio.run(_unless(interrupt, self._work(JobQuestion(job=job))))
        return JobDecisions.model_validate_json(made)

    def _work(self, question: Question) -> Work:
        arguments = (str(self._results), question.model_dump_json())
        return Work("orchestrator.results.deciding", arguments, question.name, question.elsewhere)


async def _unless(interrupt: Interrupt, work: Work) -> bytes:
    making = asyncio.ensure_future(made_apart(work, HostbenchError))
    asyncio.get_running_loop().add_reader(interrupt, making.cancel)
    return await making


def main(results: str, question: str) -> int:
    """Prints the answer."""
    asked = _QUESTIONS.validate_json(question)

    def answer() -> bytes:
        found = asked.answer(Path(results))
        return b"" if found is None else found.model_dump_json().encode()

    return print_made(answer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
