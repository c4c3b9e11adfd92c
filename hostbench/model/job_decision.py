"""What is decided of a job when its document is stored."""

from hostbench.model.baseline import FigureCheck
from hostbench.model.decision import History
from hostbench.model.result import StoredModel


class FigureDecision(StoredModel):
    """A headline figure of a job: beside those of other hosts of the model (`check`), and beside
    those of the host's jobs before it (`history`, whose last point is this job)."""

    check: FigureCheck
    history: History


class JobDecisions(StoredModel):
    """The headline figures of a job. All words of change together are wrong in at most 5 of 100
    jobs where nothing changed, and at most 1 of 100 sound hosts is called low."""

    job: str
    figures: tuple[FigureDecision, ...] = ()
