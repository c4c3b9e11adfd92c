"""The two figures of a case: what the hardware does undisturbed, and what it delivered.

The spread of a case's trials is estimated with the help of the other cases of its subsystem.
"""

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hostbench.judge.statistics import (
    CaseSpread,
    Spreads,
    case_spread,
    describe,
    least_difference_ratio,
)
from hostbench.judge.trial import (
    CLEAN_SLICES,
    SHARED_CORE,
    STOPPED,
    is_disturbed,
    primary_metric,
    reason_codes,
)
from hostbench.model.decision import CaseFigure
from hostbench.model.result import (
    WITH_FIGURE,
    ClassSpread,
    ClassSpreads,
    Condition,
    Figure,
    Interval,
    PlannedCase,
    TrialRecord,
    TwoFigures,
)
from hostbench.model.subsystem import GuestSpread
from hostbench.model.table import Metric

# The delivered figure drifts more than the undisturbed one, by a factor of 1 + 2 x the share of the
# host that others took. Found with benchmarks/trust (python -m benchmarks.trust.drift).
DRIFT_OF_SHARE = 2.0
# The suffix of the whole-run metric: for a rate, and for a time.
WHOLE_RUN = {"higher": "_makespan", "lower": "_mean"}


@dataclass(slots=True)
class Measured:
    """A case, the metrics of its workload, its trials so far, the usual spread of such figures on
    such a host, and the case's figures in earlier jobs of this host."""

    case: PlannedCase
    metrics: Sequence[Metric]
    trials: list[TrialRecord] = field(default_factory=list)
    usual: GuestSpread = field(default_factory=GuestSpread)
    earlier: Sequence[CaseFigure] = ()
    _spreads: tuple[int, tuple[CaseSpread | None, CaseSpread | None]] = (0, (None, None))

    @property
    def primary(self) -> Metric:
        """The metric that has a limit and a verdict."""
        return primary_metric(self.metrics)

    @property
    def counted(self) -> tuple[TrialRecord, ...]:
        """The trials that count: those with an undisturbed figure, or all with a figure if there
        are none. Among these, trials whose threads had a core each are preferred."""
        measured = tuple(trial for trial in self.trials if trial.verdict in WITH_FIGURE)
        undisturbed = tuple(trial for trial in measured if not is_disturbed(trial))
        of_slices = tuple(trial for trial in undisturbed if has_clean_slices(trial))
        found = of_slices or undisturbed or measured
        on_own_cores = tuple(one for one in found if SHARED_CORE not in reason_codes(one))
        return on_own_cores or found

    @property
    def values(self) -> list[float]:
        """The figures of the trials that count."""
        return [trial.value for trial in self.counted if trial.value is not None]

    @property
    def is_of_slices(self) -> bool:
        """Whether the figures of the trials that count all come from slices that nothing
        interrupted."""
        return all(map(has_clean_slices, self.counted))

    @property
    def is_disturbed(self) -> bool:
        """Whether none of the trials has an undisturbed figure."""
        return any(map(is_disturbed, self.counted))

    @property
    def delivered_values(self) -> list[float]:
        """All the work over all the time, for each trial that has a figure and was not stopped. In
        the unit of `primary`; empty if the program does not report it."""
        values = (
            delivered_value(trial, self.primary)
            for trial in self.trials
            if trial.verdict in WITH_FIGURE and STOPPED not in reason_codes(trial)
        )
        return [value for value in values if value is not None]

    def spreads(self) -> tuple[CaseSpread | None, CaseSpread | None]:
        """Return the spread of the figures that count, and that of the delivered figures.

        They are computed again only after a further trial.
        """
        known, found = self._spreads
        if known != len(self.trials):
            found = (case_spread(self.values), case_spread(self.delivered_values))
            self._spreads = (len(self.trials), found)
        return found


def delivered_value(trial: TrialRecord, primary: Metric) -> float | None:
    """Return all the work of a trial over all its time, or None if the program does not report
    it."""
    if trial.end is None:
        return None
    found = trial.end.metrics.get(primary.name + WHOLE_RUN[primary.direction])
    return trial.value if found is None and not has_clean_slices(trial) else found


def has_clean_slices(trial: TrialRecord) -> bool:
    """Whether a trial's figure comes from slices that nothing interrupted."""
    return trial.end is not None and trial.end.basis == CLEAN_SLICES


def delivered_drift(drift_ratio: float, shared_ratio: float) -> float:
    """Return the drift of the delivered figure, from the drift of the undisturbed figure and the
    share of the host that others took."""
    return drift_ratio * (1 + DRIFT_OF_SHARE * shared_ratio)


def two_figures(one: Measured, others: ClassSpreads, condition: Condition | None) -> TwoFigures:
    """Return the figures of a case under this condition. `others`: see MeasuredCases."""
    unit, drift_ratio = one.primary.unit, others.drift_ratio
    figure = _figure(one.values, unit, others.figure, drift_ratio)
    drifts = delivered_drift(drift_ratio, condition.shared_ratio if condition else 0.0)
    delivered = _figure(one.delivered_values, unit, others.delivered, drifts)
    best_of = max if one.primary.direction == "higher" else min
    return TwoFigures(
        figure=figure,
        undisturbed=figure if one.is_of_slices and not one.is_disturbed else None,
        delivered=delivered,
        delivered_ratio=_delivered_ratio(one, figure, delivered),
        best=best_of(one.values, default=None),
        condition=condition,
    )


def _delivered_ratio(
    one: Measured, figure: Figure | None, delivered: Figure | None
) -> float | None:
    """Return the delivered speed over that of the figure, at most 1, or None without slices or
    without a delivered figure.

    It is the ratio of the two figures that a result shows, and not a median over trials, so that
    a reader can check it. Slices that vary can do more work than their median suggests: then
    nothing was taken.
    """
    if not (one.is_of_slices and figure and delivered and figure.value and delivered.value):
        return None
    ratio = delivered.value / figure.value
    return min(1.0, ratio if one.primary.direction == "higher" else 1 / ratio)


def _figure(
    values: Sequence[float], unit: str, others: ClassSpread | None, drift_ratio: float
) -> Figure | None:
    if not values:
        return None
    found = describe(values, others, drift_ratio)
    interval = found.interval
    known = interval.confidence > 0
    return Figure(
        value=found.median,
        unit=unit,
        interval=Interval(low=interval.low, high=interval.high) if known else None,
        coverage=interval.confidence if known else None,
        least_difference_ratio=least_difference_ratio(values, others, drift_ratio),
        n=found.n,
        drift_ratio=drift_ratio,
    )


class MeasuredCases:
    """The cases of a job, grouped by subsystem into classes.

    For each case, its class shows how much trials usually differ. A job may have thousands of
    cases, too many to visit after every trial, so each class is updated step by step.
    """

    def __init__(self, cases: Iterable[Measured]) -> None:
        self._by_case = {one.case.case: one for one in cases}

    def __getitem__(self, case: str) -> Measured:
        """Return a case by its hash."""
        return self._by_case[case]

    def add_trial(self, one: Measured, trial: TrialRecord) -> None:
        """Add a trial to one of the cases."""
        with self._class_without(one):
            one.trials.append(trial)

    def others_of(self, one: Measured) -> ClassSpreads:
        """Return what is known about the class of a case without its own trials: how much the
        trials of the other cases differ, and what is usual on such a host.

        For a case without trials only the latter is returned: it has no figure yet.
        """
        figure = delivered = None
        if one.trials:
            with self._class_without(one) as spreads:
                figure, delivered = (each.together for each in spreads)
        return ClassSpreads(
            figure=figure,
            delivered=delivered,
            drift_ratio=one.usual.drift_of(one.primary.direction),
            usual_half_width=one.usual.half_width_ratio,
        )

    @functools.cached_property
    def _classes(self) -> Mapping[str, tuple[Spreads, Spreads]]:
        """By subsystem: the spreads of the figures that count, and of the delivered figures."""
        found: dict[str, tuple[Spreads, Spreads]] = {}
        for one in self._by_case.values():
            spreads = found.setdefault(one.case.subsystem, (Spreads(), Spreads()))
            _count(spreads, one)
        return found

    @contextlib.contextmanager
    def _class_without(self, one: Measured) -> Iterator[tuple[Spreads, Spreads]]:
        spreads = self._classes[one.case.subsystem]
        for each, own in zip(spreads, one.spreads(), strict=True):
            each.remove(own)
        try:
            yield spreads
        finally:
            _count(spreads, one)


def _count(spreads: tuple[Spreads, Spreads], one: Measured) -> None:
    for each, own in zip(spreads, one.spreads(), strict=True):
        each.add(own)
