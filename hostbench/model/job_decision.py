"""The decisions about a job, made when its document is stored."""

from hostbench.model.baseline import FigureCheck
from hostbench.model.decision import History
from hostbench.model.result import StoredModel


class FigureDecision(StoredModel):
    """A headline figure of a job: compared with other hosts of the model (`check`), and with the
    host's earlier jobs (`history`, whose last point is this job)."""

    check: FigureCheck
    history: History


class JobDecisions(StoredModel):
    """The headline figures of a job. Where nothing changed, at most 5 of 100 jobs get any word of
    change, and at most 1 of 100 sound hosts is called low."""

    job: str
    figures: tuple[FigureDecision, ...] = ()
