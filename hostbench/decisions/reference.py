"""A figure of a host beside what other hosts do: what the check of one host with a baseline
(hostcheck.py) and that of the hosts of a campaign (fleet.py) have in common.

Figures are logarithms; a higher one is better.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hostbench.decisions.tolerance import chance_below
from hostbench.model.baseline import MeasuredFigure
from hostbench.model.decision import CaseFigure


@dataclass(frozen=True)
class Reference:
    """What `n` other hosts do in a case. `least`: the tolerance limit; `is_free`: whatever the
    distribution."""

    n: int
    mean: float
    deviation: float
    usual: float
    least: float
    is_free: bool

    def chance(self, log: float) -> float:
        """Return how often a sound host is so far off."""
        return chance_below(self.mean - log, self.deviation * math.sqrt(1 + 1 / self.n), self.n)


def deciding_log(logs: Sequence[float], *, is_stray: bool) -> tuple[float, bool]:
    """Return the figure of a host's jobs that decides, and whether another job must confirm it.

    `is_stray`: figures of this class vary so much between jobs that the best one counts.
    """
    return (max(logs) if is_stray else statistics.median(logs)), is_stray and len(logs) == 1


def check_fields(
    figure: MeasuredFigure | CaseFigure,
    log: float,
    reference: Reference | None,
    *,
    needs_another: bool,
) -> dict[str, Any]:
    """Return the fields of a FigureCheck but `case`, `word` and `is_headline`. `figure` says what
    the figure is of, and its limit."""
    sign = 1.0 if figure.direction == "higher" else -1.0
    value = math.exp(sign * log)
    share = None
    if figure.limit is not None:
        share = value / figure.limit if sign > 0 else figure.limit / value
    fields: dict[str, Any] = {
        "title": figure.title,
        "workload": figure.workload,
        "unit": figure.unit,
        "direction": figure.direction,
        "value": value,
        "share_of_limit": share,
    }
    if reference is not None:
        fields |= {
            "hosts": reference.n,
            "expected": math.exp(sign * reference.least),
            "usual": math.exp(sign * reference.usual),
            "distribution_free": reference.is_free,
            "p": reference.chance(log),
            "needs_another": needs_another,
            "lost_ratio": max(0.0, -math.expm1(log - reference.usual)),
        }
    return fields
