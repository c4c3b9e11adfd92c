"""Questions about stored jobs, and their answers.

python -m orchestrator.results.questions RESULTS QUESTION prints the answer as JSON.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from hostbench.decisions.baseline_files import checked_host, known_baselines
from hostbench.decisions.compare import compare
from hostbench.decisions.history import headline_histories, history_of
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.job import JobDecider
from hostbench.decisions.receipt import receipt_of
from hostbench.decisions.sets import JobFilter, compared_sides, moment
from hostbench.model.body import BodyModel
from hostbench.model.decision import FigureKind, HostHistory
from hostbench.model.result import ResultDocument, StoredModel
from hostbench.results.store import JobDirectory
from orchestrator.results.making import print_made


class _OfJobs(BodyModel):
    """Which jobs count. Times are in the form that `moment` reads."""

    suite: str | None = None
    since: str | None = None
    until: str | None = None

    def wanted(self, host: str | None) -> JobFilter:
        """Return a filter for these jobs, on one host if it is given. Raise UsageError."""
        return JobFilter(
            host=host,
            suite=self.suite,
            since_unix_s=None if self.since is None else moment("since", self.since),
            until_unix_s=None if self.until is None else moment("until", self.until),
        )


class CompareQuestion(_OfJobs):
    """The question of GET /compare; docs/comparing.md lists what the sides may be. `margin` is a
    share of 1."""

    asks: Literal["compare"] = "compare"
    a: str
    b: str
    host: str | None = None
    margin: float | None = None

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return "the comparison"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return "compare a copy of the results with hostbench compare --results DIRECTORY"

    def answer(self, results: Path) -> StoredModel:
        """Return the comparison. Raise UsageError."""
        with FigureIndex(results) as index:
            sides = compared_sides((self.a, self.b), index, self.wanted(self.host), files=False)
            a, b = sides.sides
            return compare(a, b, names=(self.a, self.b), earlier=sides.earlier, margin=self.margin)


class HistoryQuestion(_OfJobs):
    """The question of GET /hosts/{host}/history; `case` None: all headline cases."""

    asks: Literal["history"] = "history"
    host: str
    case: str | None = None
    figure: FigureKind | None = None

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return f"the history of {self.host}"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return "ask for one case, or for fewer jobs with since"

    def answer(self, results: Path) -> StoredModel | None:
        """Return the histories, or None if no stored job is from the host. Raise UsageError."""
        with FigureIndex(results) as index:
            if all(job.host != self.host for job in index.heads()):
                return None
            wanted = self.wanted(self.host)
            if self.case is None:
                return headline_histories(index, wanted, self.figure)
            found = history_of(index, self.case, wanted, self.figure)
            return HostHistory(host=self.host, histories=(found,))


class BaselinesQuestion(BodyModel):
    """The question of GET /baselines."""

    asks: Literal["baselines"] = "baselines"

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return "the list of baselines"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return "list a copy of the folders with hostbench baseline list"

    def answer(self, _results: Path) -> StoredModel:
        """Return all baselines, including those that cannot be used, with the reason."""
        return known_baselines(os.environ)


class BaselineQuestion(BodyModel):
    """The question of GET /jobs/{job}/baseline."""

    asks: Literal["baseline"] = "baseline"
    job: str

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return f"the check of {self.job}"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return f"check a copy of the results with hostbench baseline check {self.job}"

    def answer(self, results: Path) -> StoredModel:
        """Return the check. Raise UsageError for a document that cannot be trusted."""
        return checked_host(_document(results, self.job), os.environ)


class ReceiptQuestion(BodyModel):
    """Whether the host of a job is as it should be."""

    asks: Literal["receipt"] = "receipt"
    job: str

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return f"the answer about the host of {self.job}"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return f"read it in a copy of the results with hostbench show {self.job}"

    def answer(self, results: Path) -> StoredModel:
        """Return the receipt. Raise UsageError for a document that cannot be trusted."""
        document = _document(results, self.job)
        return receipt_of(document, checked_host(document, os.environ))


class JobQuestion(BodyModel):
    """The question about every job when its document is stored."""

    asks: Literal["job"] = "job"
    job: str

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return f"what is decided of {self.job}"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return "write it with python -m orchestrator.influx.reindex"

    def answer(self, results: Path) -> StoredModel:
        """Return the decisions. Raise UsageError for a document that cannot be trusted."""
        with FigureIndex(results) as index:
            return JobDecider(index, os.environ).of(_document(results, self.job))


class IndexQuestion(BodyModel):
    """No question: the index of figures reads the documents that are new."""

    asks: Literal["index"] = "index"

    @property
    def name(self) -> str:
        """See Work of apart.py."""
        return "the index of figures"

    @property
    def elsewhere(self) -> str:
        """See Work of apart.py."""
        return "make it with hostbench history --results DIRECTORY"

    def answer(self, results: Path) -> None:
        """Bring the index up to date. There is no answer."""
        with FigureIndex(results) as index:
            index.refresh()


Question = (
    CompareQuestion
    | HistoryQuestion
    | BaselinesQuestion
    | BaselineQuestion
    | ReceiptQuestion
    | JobQuestion
    | IndexQuestion
)
_QUESTIONS: TypeAdapter[Question] = TypeAdapter(Annotated[Question, Field(discriminator="asks")])


def _document(results: Path, job: str) -> ResultDocument:
    return JobDirectory(results / job).load()


def main(results: str, question: str) -> int:
    """Print the answer; return the exit code."""
    parsed = _QUESTIONS.validate_json(question)

    def answer() -> bytes:
        found = parsed.answer(Path(results))
        return b"" if found is None else found.model_dump_json().encode()

    return print_made(answer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
