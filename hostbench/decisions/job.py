"""The decisions about a job when its document is stored: whether its headline figures changed since
the host's earlier jobs, and whether they are as expected from other hosts of its model.

The answer depends only on the documents of this job and of those that began before it, so it can be
computed again at any time.
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

# The newest jobs of a host that have a figure. Older behaviour is no news, and each job costs time
# on a machine that measures.
JOBS_MOST = 60


class JobDecider:
    """Decides about jobs of one results directory, as it was when the decider was made."""

    def __init__(self, index: FigureIndex, environment: Mapping[str, str]) -> None:
        self._index = index
        self._environment = environment
        self._heads = {head.job: head for head in index.heads()}
        self._cases: dict[str, dict[str, CaseFigure]] = {}
        self._baselines: dict[HostKey, Baseline | None] = {}

    def of(self, document: ResultDocument) -> JobDecisions:
        """Return the decisions about a job; none if its document is not stored or cannot be
        trusted."""
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
