"""What a person reads first: a line a subsystem, and who took what was not delivered.

The figure of a line is a good one of its subsystem; everything beside it is the worst.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hostbench.base.units import human, percent
from hostbench.model.registry import subsystems
from hostbench.model.result import USABLE, CaseResult, Condition, ConditionState, Verdict

# Below it the first line says who took the rest.
DELIVERED_LEAST = 0.97
# What a reader must know of before all else, the worst first.
WORST_FIRST = (
    Verdict.FAILED,
    Verdict.INVALID,
    Verdict.DISTURBED,
    Verdict.NOISY,
    Verdict.SKIPPED,
    Verdict.CLEAN,
)


@dataclass(frozen=True)
class SubsystemLine:
    """One subsystem in one line. `headline` is a case that may be used: the best figure of the
    foremost workload of the subsystem's `headlines`; where it names none that was measured, the
    case nearest to its limit. None: no such case may be used. `delivered_ratio` is the least of its
    cases, `condition` the one that took most."""

    subsystem: str
    headline: CaseResult | None
    delivered_ratio: float | None
    condition: Condition | None
    verdicts: Counter[Verdict | None]

    @property
    def measured(self) -> bool:
        """Whether a case of it ran."""
        return any(verdict is not Verdict.SKIPPED for verdict in self.verdicts)

    @property
    def figure(self) -> str | None:
        """The figure of `headline` with its interval: `1.45 Top/s ± 0.4 %`."""
        if self.headline is None:
            return None
        metric = self.headline.metrics[self.headline.primary]
        half_width_ratio = metric.statistics.half_width_ratio
        within = "" if half_width_ratio is None else f" ± {percent(half_width_ratio)}"
        return f"{human(metric.statistics.median, metric.unit)}{within}"

    @property
    def worst(self) -> Verdict | None:
        """The worst verdict of its cases; None: not all are finished."""
        if None in self.verdicts:
            return None
        return next(verdict for verdict in WORST_FIRST if verdict in self.verdicts)

    @property
    def worst_first(self) -> list[tuple[Verdict | None, int]]:
        """How many cases have which verdict; None: not finished."""
        return [(one, self.verdicts[one]) for one in (None, *WORST_FIRST) if self.verdicts[one]]


def overview(cases: Iterable[CaseResult]) -> list[SubsystemLine]:
    """The lines, in the order of the suite. Naive workloads are left out: what they show is no
    figure of the host."""
    grouped: dict[str, list[CaseResult]] = {}
    for case in cases:
        if not case.naive:
            grouped.setdefault(case.workload.partition(".")[0], []).append(case)
    return [_line(subsystem, found) for subsystem, found in grouped.items()]


def _line(subsystem: str, cases: Sequence[CaseResult]) -> SubsystemLine:
    return SubsystemLine(
        subsystem=subsystem,
        headline=_headline(subsystem, cases),
        delivered_ratio=min(
            (case.delivered_ratio for case in cases if case.delivered_ratio is not None),
            default=None,
        ),
        condition=worst_condition(cases),
        verdicts=Counter(case.verdict for case in cases),
    )


def _headline(subsystem: str, cases: Sequence[CaseResult]) -> CaseResult | None:
    """A document may have a subsystem that is not installed here."""
    known = subsystems().get(subsystem)
    foremost = known.headlines[::-1] if known else ()
    with_figure = [case for case in cases if case.primary in case.metrics]
    names = {case.case: case.workload.partition(".")[2] for case in with_figure}
    # Another workload in its place, such as datagrams at a set rate, would be no headline.
    such = [case for case in with_figure if names[case.case] in foremost] or with_figure

    def merit(case: CaseResult) -> tuple[int, float]:
        metric = case.metrics[case.primary]
        if (name := names[case.case]) not in foremost:
            return -1, metric.efficiency or 0.0
        figure = metric.statistics.median
        return foremost.index(name), figure if metric.direction == "higher" else -figure

    usable = [case for case in such if case.verdict is None or case.verdict in USABLE]
    return max(usable, key=merit, default=None)


def worst_condition(cases: Iterable[CaseResult]) -> Condition | None:
    """The condition that took the largest share; an unknown one is worse than a quiet one."""
    found = [case.condition for case in cases if case.condition is not None]
    return max(
        found,
        key=lambda one: (one.share or 0.0, one.state is ConditionState.UNKNOWN),
        default=None,
    )


def condition_words(condition: Condition | None, *, culprit: bool = True) -> str:
    """`quiet`; `shared, 48.2 % (stress-ng, pid 12)`."""
    if condition is None:
        return "unknown"
    if condition.share is None:
        return str(condition.state)
    words = f"{condition.state}, {percent(condition.share)}"
    if not culprit or condition.culprit is None:
        return words
    perhaps = "" if condition.is_sure else "most likely "
    return f"{words} ({perhaps}{condition.culprit})"


def not_delivered_sentence(cases: Iterable[CaseResult]) -> str | None:
    """How much of the figures was delivered; None where all but 3 % was. Naive workloads are left
    out."""
    short = [
        (case.delivered_ratio, case)
        for case in cases
        if case.delivered_ratio is not None
        and case.delivered_ratio < DELIVERED_LEAST
        and not case.naive
    ]
    if not short:
        return None
    least, worst = min(short, key=lambda one: one[0])
    if len(short) == 1:
        start = "1 case delivered less than its undisturbed figure"
        return f"{start}: {worst.title} {percent(least)} of it."
    middle = percent(statistics.median(ratio for ratio, _ in short))
    start = f"{len(short)} cases delivered less than their undisturbed figure: {middle} of it"
    if middle == percent(least):
        return f"{start}."
    return f"{start} in the median, {percent(least)} in the worst ({worst.title})."
