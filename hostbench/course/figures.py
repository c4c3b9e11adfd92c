"""The figure of a case in the unit of a published table."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostbench.base.units import SHOWN_DIGITS, significant
from hostbench.judge.case import trials_with_metric
from hostbench.judge.statistics import describe, scaled
from hostbench.model.limit import Limit
from hostbench.model.published import Match
from hostbench.model.result import CaseResult, PeerResult, Statistics

BLOCK = "block_bytes"

# Below this, there would be more zeros than digits.
VERY_SMALL = 1e-6


def fixed(value: float, digits: int = SHOWN_DIGITS) -> str:
    """Return the value with `digits` significant digits, with an exponent only if it is very small
    or large."""
    if value == 0 or abs(value) >= 1 or abs(value) < VERY_SMALL:
        return significant(value, digits)
    return f"{value:.{digits - 1 - math.floor(math.log10(abs(value)))}f}"


@dataclass(frozen=True)
class PeerFigure:
    """What an outside tool measured beside a case, in the table's unit."""

    tool: str
    value: float
    peer: PeerResult


@dataclass(frozen=True)
class Figure:
    """The figure of a case in the table's unit, over the trials that count. `limit` is in the same
    unit, and `limit_of` is the limit it was made from; `efficiency` is a ratio."""

    case: CaseResult
    statistics: Statistics
    limit: float | None
    limit_of: Limit | None
    efficiency: float | None
    peers: tuple[PeerFigure, ...]

    @property
    def median(self) -> float:
        return self.statistics.median

    @property
    def mean(self) -> float:
        return self.statistics.mean

    @property
    def variation(self) -> float | None:
        """Standard deviation over mean; None for a single trial."""
        deviation, mean = self.statistics.standard_deviation, self.statistics.mean
        return None if deviation is None or mean == 0 else deviation / mean


def figure_of(case: CaseResult, match: Match) -> Figure | None:
    """Return the figure, or None if the case has none."""
    name = match.metric or case.primary
    metric, turn = case.metrics.get(name), _turn(case, match)
    if metric is None or turn is None or not metric.statistics.maximum:
        return None
    limit = metric.limit.value if metric.limit else None
    return Figure(
        case=case,
        statistics=_statistics(case, name, metric.statistics, match, turn),
        limit=turn(limit) if limit else None,
        limit_of=metric.limit,
        efficiency=metric.efficiency,
        peers=tuple(_peers(case.peers, metric.unit, turn)),
    )


def _statistics(
    case: CaseResult,
    name: str,
    stored: Statistics,
    match: Match,
    turn: Callable[[float], float],
) -> Statistics:
    """Return the statistics in the table's unit. A rate made from a time is no multiple of it: its
    mean and its spread are those of the trials' rates."""
    if match.reading == "value":
        return scaled(stored, match.factor)
    return describe([turn(value) for value in _measured(case, name)])


def raw_median(case: CaseResult, name: str | None = None) -> float | None:
    """Return the median of a metric in its own unit."""
    found = case.metrics.get(name or case.primary)
    return found.statistics.median if found else None


def _measured(case: CaseResult, name: str) -> list[float]:
    """Return the figures of the trials that count, without zeros: they have no time for a block."""
    by_index = {trial.index: trial for trial in case.trials}
    counted = [by_index[index] for index in case.counted]
    found = [
        trial.end.metrics.get(name) if trial.end else None
        for trial in trials_with_metric(name, case.params, case.trials, counted)
    ]
    return [value for value in found if value]


def _turn(case: CaseResult, match: Match) -> Callable[[float], float] | None:
    if match.reading == "value":
        return lambda value: value * match.factor
    block = case.params.get(BLOCK)
    if not isinstance(block, int | float):
        return None
    return lambda value: block / value * match.factor


def _peers(
    peers: Sequence[PeerResult], unit: str, turn: Callable[[float], float]
) -> list[PeerFigure]:
    """Return the peers that measure the same quantity."""
    return [
        PeerFigure(peer.tool, turn(peer.statistics.median), peer)
        for peer in peers
        if peer.statistics and peer.metric is not None and peer.unit == unit
        if peer.statistics.median
    ]
