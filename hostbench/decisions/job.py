"""What is decided of a job when its document is stored: whether its headline figures changed
against the host's jobs before it, and whether they are what other hosts of its model lead to
expect.

The answer depends on the documents of this job and of those begun before it alone, so that it can
be made again at any time.
"""

from collections.abc import Mapping

from hostbench.decisions.baseline import measured_job
from hostbench.decisions.baseline_files import found_for
from hostbench.decisions.history import history, shared_confidence
from hostbench.decisions.hostcheck import check_host
from hostbench.decisions.index import FigureIndex
from hostbench.model.baseline import Baseline, FigureCheck, HostCheck, HostKey
from hostbench.model.decision import CaseFigure, History, JobFigures
from hostbench.model.job_decision import FigureDecision, JobDecisions
from hostbench.model.result import ResultDocument

# The newest jobs of a host that have a figure: what the host did before is no news, and each job
# costs time on a machine that measures.
JOBS_MOST = 60


class JobDecider:
    """Decides jobs of one results directory, which are those that it had at the beginning."""

    def __init__(self, index: FigureIndex, environment: Mapping[str, str]) -> None:
        self._index = index
        self._environment = environment
        self._heads = {head.job: head for head in index.heads()}
        self._cases: dict[str, dict[str, CaseFigure]] = {}
        self._baselines: dict[HostKey, Baseline | None] = {}

    def of(self, document: ResultDocument) -> JobDecisions:
        """The decisions of a job. One whose document is not stored, or cannot be trusted, has
        none."""
        own = self._heads.get(document.job.id)
        if own is None:
            return JobDecisions(job=document.job.id)
        headlines = self._check(document).headlines
        confidence = shared_confidence(len(headlines))
        return JobDecisions(
            job=own.job,
            figures=tuple(
                FigureDecision(check=one, history=self._history(own, one, confidence))
                for one in headlines
            ),
        )

    def _check(self, document: ResultDocument) -> HostCheck:
        job = measured_job(document)
        if job.key not in self._baselines:
            self._baselines[job.key] = found_for(job.key, self._environment)[1]
        return check_host([job], self._baselines[job.key])

    def _history(self, own: JobFigures, check: FigureCheck, confidence: float) -> History:
        if check.case not in self._cases:
            self._cases[check.case] = self._index.of_case(check.case)
        figures = self._cases[check.case]
        jobs = [
            head.model_copy(update={"cases": {check.case: figures[head.job]}})
            for head in self._heads.values()
            if head.host == own.host and head.job in figures and _place(head) <= _place(own)
        ]
        jobs.sort(key=_place)
        return history(jobs[-JOBS_MOST:], figures[own.job], confidence=confidence)


def _place(job: JobFigures) -> tuple[float, str]:
    return job.created_unix_s, job.job
