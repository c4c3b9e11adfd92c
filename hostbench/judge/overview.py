"""What a person reads first: one line for each subsystem, and who took what was not delivered.

The figure of a line is a good one of its subsystem; the other columns show the worst of its cases.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hostbench.base.units import full_sentence, human, percent, plus_minus
from hostbench.model.registry import subsystems
from hostbench.model.result import (
    USABLE,
    CaseResult,
    Condition,
    ConditionState,
    JobState,
    Verdict,
)

# Below it the first line names who took the rest.
DELIVERED_LEAST = 0.97
# In the order in which a reader must know them, the worst first.
WORST_FIRST = (
    Verdict.CORRUPT,
    Verdict.FAILED,
    Verdict.INVALID,
    Verdict.DISTURBED,
    Verdict.NOISY,
    Verdict.SKIPPED,
    Verdict.CLEAN,
)


@dataclass(frozen=True)
class SubsystemLine:
    """One subsystem in one line.

    `headline` is a usable case: the one with the best figure of the foremost measured workload in
    the subsystem's `headlines`, else the case nearest to its limit. It is None if no such case is
    usable. `delivered_ratio` is the lowest of its cases, `condition` the one that took most.
    """

    subsystem: str
    headline: CaseResult | None
    delivered_ratio: float | None
    condition: Condition | None
    verdicts: Counter[Verdict | None]

    @property
    def measured(self) -> bool:
        """Whether at least one of its cases ran."""
        return any(verdict is not Verdict.SKIPPED for verdict in self.verdicts)

    @property
    def figure(self) -> str | None:
        """The figure of `headline` with its interval, such as `1.45 Top/s ± 0.4 %`."""
        if self.headline is None:
            return None
        metric = self.headline.metrics[self.headline.primary]
        half_width_ratio = metric.statistics.half_width_ratio
        within = "" if half_width_ratio is None else f" {plus_minus(half_width_ratio)}"
        return f"{human(metric.statistics.median, metric.unit)}{within}"

    @property
    def worst(self) -> Verdict | None:
        """The worst verdict of its cases that were measured, or None while some are unfinished."""
        return None if None in self.verdicts else worst_verdict(filter(None, self.verdicts))

    @property
    def worst_first(self) -> list[tuple[Verdict | None, int]]:
        """The number of cases for each verdict; the verdict None counts the unfinished ones."""
        return [(one, self.verdicts[one]) for one in (None, *WORST_FIRST) if self.verdicts[one]]


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the worst verdict of what was measured: skipped only where all were."""
    found = set(verdicts)
    measured = [one for one in WORST_FIRST if one in found - {Verdict.SKIPPED}]
    return next(iter(measured), Verdict.SKIPPED if found else None)


def overview(cases: Iterable[CaseResult]) -> list[SubsystemLine]:
    """Return the lines in the order of the suite. Naive workloads are left out: their results are
    not figures of the host."""
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
    """Return the headline case; the document may contain a subsystem that is not installed here."""
    known = subsystems().get(subsystem)
    foremost = known.headlines[::-1] if known else ()
    with_figure = [case for case in cases if case.primary in case.metrics]
    names = {case.case: case.workload.partition(".")[2] for case in with_figure}
    # Another workload, such as datagrams at a set rate, does not stand in for a headline.
    such = [case for case in with_figure if names[case.case] in foremost] or with_figure

    def merit(case: CaseResult) -> tuple[int, float]:
        metric = case.metrics[case.primary]
        if (name := names[case.case]) not in foremost:
            return -1, metric.efficiency or 0.0
        figure = metric.statistics.median
        return foremost.index(name), figure if metric.direction == "higher" else -figure

    usable = [case for case in such if case.verdict is None or case.verdict in USABLE]
    return max(usable, key=merit, default=None)


def ending_sentence(state: JobState, reason: str | None) -> str:
    """Return how a job ended that did not succeed, such as `The job was interrupted by SIGTERM.`"""
    ended = "was interrupted" if state is JobState.INTERRUPTED else "failed"
    if reason is None:
        return f"The job {ended}."
    if reason.startswith("interrupted "):
        return full_sentence(f"The job was {reason}")
    return full_sentence(f"The job {ended}: {reason}")


def worst_condition(cases: Iterable[CaseResult]) -> Condition | None:
    """Return the condition that took the largest share; an unknown one counts as worse than a quiet
    one."""
    found = [case.condition for case in cases if case.condition is not None]
    return max(
        found,
        key=lambda one: (one.share or 0.0, one.state is ConditionState.UNKNOWN),
        default=None,
    )


def condition_words(condition: Condition | None, *, culprit: bool = True) -> str:
    """Return a text such as `quiet` or `shared, 48.2 % (stress-ng, pid 12)`."""
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
    """Return a sentence on how much of the figures was delivered, or None where every case
    delivered at least 97 %. Naive workloads are left out."""
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
