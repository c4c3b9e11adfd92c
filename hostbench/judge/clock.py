"""Tell a low clock from little work per cycle.

A case's limit follows the clock of its own trials, so a core that heat holds at half its clock can
still reach 100 % of that limit. The limit at the expected clock shows the loss.
"""

from collections.abc import Iterable, Mapping, Sequence

from hostbench.base.units import human, percent, plural
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseClock, CaseResult, ConditionState

# The name of the factor of a limit that holds the trial's clock.
CLOCK = "clock"
# A clock is measured no more precisely than a limit, so a smaller difference is not reported.
TOLD_BELOW = 0.98


def with_clocks(cases: Iterable[CaseResult], host: HostInventory) -> tuple[CaseResult, ...]:
    """Return the cases; each case whose limit rests on a measured clock gets its clock relative to
    the expected one.

    The expected clock is the higher of two: the highest that the kernel states, and the highest
    that a case of this job had. On a hybrid processor, the kernel states the clock of the
    performance cores, so cases on efficiency cores are compared with one another only.
    """
    cases = tuple(cases)
    clocks = {case.case: hertz for case in cases if (hertz := _clock_hertz(case)) is not None}
    slow_cpus = frozenset(host.cpu.efficiency_cpus or ())
    on_slow = {case.case: _uses(case, slow_cpus) for case in cases}
    expected = {}
    for slow in {on_slow[case] for case in clocks}:
        alike = [case for case in cases if case.case in clocks and on_slow[case.case] is slow]
        expected[slow] = _expected(alike, clocks, None if slow else host.frequency.max_hertz)
    return tuple(
        case.model_copy(update={"clock": _case_clock(case, hertz, *expected[on_slow[case.case]])})
        if (hertz := clocks.get(case.case)) is not None
        else case
        for case in cases
    )


def _expected(
    cases: Sequence[CaseResult], clocks: Mapping[str, float], stated: float | None
) -> tuple[float, str]:
    """Return the clock in Hz that such cases are expected to reach, and the source of that
    figure."""
    fastest = max(cases, key=lambda case: clocks[case.case])
    if stated is not None and stated > clocks[fastest.case]:
        return stated, "the highest that the kernel states (cpuinfo_max_freq)"
    return clocks[fastest.case], f"the highest of this job: {fastest.title}"


def _uses(case: CaseResult, cpus: frozenset[int]) -> bool:
    """Whether a trial of the case had a thread on one of these CPUs."""
    starts = (trial.start for trial in case.trials)
    return any(start and not cpus.isdisjoint(start.placement.cpus) for start in starts)


def _clock_hertz(case: CaseResult) -> float | None:
    metric = case.metrics.get(case.primary)
    if metric is None or metric.limit is None or metric.efficiency is None:
        return None
    return next((factor.value for factor in metric.limit.factors if factor.name == CLOCK), None)


def _case_clock(case: CaseResult, hertz: float, expected_hertz: float, source: str) -> CaseClock:
    metric = case.metrics[case.primary]
    assert metric.limit is not None and metric.limit.value is not None
    assert metric.efficiency is not None
    ratio = hertz / expected_hertz
    return CaseClock(
        hertz=hertz,
        expected_hertz=expected_hertz,
        source=source,
        ratio=ratio,
        limit=metric.limit.value / ratio,
        efficiency=metric.efficiency * ratio,
    )


def is_slow(case: CaseResult) -> bool:
    """Whether a case ran so far below the expected clock that a reader must know."""
    return case.clock is not None and case.clock.ratio < TOLD_BELOW


def share_of_limit(case: CaseResult) -> float | None:
    """Return the figure's share of its limit. Where the case's clock was far below the expected
    one, the limit at the expected clock counts."""
    if case.clock is not None and is_slow(case):
        return case.clock.efficiency
    metric = case.metrics.get(case.primary)
    return None if metric is None else metric.efficiency


def clock_words(case: CaseResult) -> str | None:
    """Return a text such as `clock 95.0 %, work per cycle 98.0 %`, or None where the clock was as
    expected."""
    if case.clock is None or not is_slow(case):
        return None
    work = percent(case.clock.efficiency / case.clock.ratio)
    return f"clock {percent(case.clock.ratio)}, work per cycle {work}"


def slow_clock_sentence(cases: Sequence[CaseResult]) -> str | None:
    """Return a sentence on the cases that ran below the expected clock, or None where all reached
    it."""
    slow = [(case.clock, case) for case in cases if case.clock is not None and is_slow(case)]
    if not slow:
        return None
    clock, lowest = min(slow, key=lambda pair: pair[0].ratio)
    return (
        f"{plural(len(slow), 'case')} ran below the expected {human(clock.expected_hertz, 'Hz')}, "
        f"{clock.source}; the lowest: {lowest.title}, {clock_words(lowest)}."
    )


def held_clock_sentence(cases: Sequence[CaseResult]) -> str | None:
    """Return a sentence on the cases that ran while heat or power lowered a clock, or None if there
    are none.

    The CPU's or the card's own counters show it; a share of the limit at the trial's own clock does
    not.
    """
    held = [(share, case) for case in cases if not case.naive and (share := _held_ratio(case))]
    if not held:
        return None
    most, worst = max(held, key=lambda pair: pair[0])
    return (
        f"Seen in {plural(len(held), 'case')}, most in {worst.title} ({percent(most)} of its time)."
    )


def _held_ratio(case: CaseResult) -> float | None:
    return None if case.condition is None else case.condition.share_of(ConditionState.THROTTLED)
