"""Figures of a job compared with figures published for the same hardware, if a subsystem knows
such."""

from collections.abc import Iterable
from dataclasses import dataclass

from hostbench.model.registry import subsystems
from hostbench.model.result import USABLE, CaseResult
from hostbench.model.subsystem import PublishedFigure
from hostbench.model.table import Direction

# Two programs that measure the same may differ by this much.
NEAR = 0.05


@dataclass(frozen=True)
class BesidePublished:
    """The figure of a case, in its own unit, and the published one."""

    case: CaseResult
    value: float
    unit: str
    direction: Direction
    published: PublishedFigure

    @property
    def lost_ratio(self) -> float:
        """By how much it is worse than the worst published value; 0: it is not worse."""
        if self.direction == "lower":
            return max(0.0, 1 - self.published.most / self.value)
        return max(0.0, 1 - self.value / self.published.least)

    @property
    def is_worse(self) -> bool:
        """Whether the difference is too large to come from another way of measuring."""
        return self.lost_ratio > NEAR


def beside_published(cases: Iterable[CaseResult]) -> list[BesidePublished]:
    """Return the usable figures for which a figure was published."""
    return [
        found for case in cases if case.verdict in USABLE and (found := _of_case(case)) is not None
    ]


def _of_case(case: CaseResult) -> BesidePublished | None:
    subsystem = subsystems().get(case.workload.partition(".")[0])
    start = next((trial.start for trial in case.trials if trial.start), None)
    if subsystem is None or start is None:
        return None
    known = subsystem.published(case.params, start)
    metric = case.metrics.get(known.metric) if known is not None else None
    if known is None or metric is None or metric.statistics.median <= 0:
        return None
    return BesidePublished(case, metric.statistics.median, metric.unit, metric.direction, known)
