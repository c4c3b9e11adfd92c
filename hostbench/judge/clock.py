"""Clock and work per cycle told apart. A case's limit goes with the clock of its own trials, so a
core that heat holds at half its clock still reaches all of it; the limit at the clock that the host
is expected to reach shows that.
"""

from collections.abc import Iterable, Mapping, Sequence

from hostbench.base.units import human, percent, plural
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseClock, CaseResult, ConditionState

# The name of the factor of a limit that is the clock of the trial.
CLOCK = "clock"
# A clock is known no better than a limit.
TOLD_BELOW = 0.98


def with_clocks(cases: Iterable[CaseResult], host: HostInventory) -> tuple[CaseResult, ...]:
    """The cases; those whose limit rests on a measured clock say how far that was from the one the
    host is expected to reach: the highest that the kernel states, or that a case of this job had,
    whichever is higher. Of a hybrid processor the kernel states that of its performance cores;
    cases on efficiency cores are held against one another."""
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
    """The clock that such cases are expected to reach, and who says so."""
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
    """Whether the clock of a case was so far below the expected one that a reader must know."""
    return case.clock is not None and case.clock.ratio < TOLD_BELOW


def share_of_limit(case: CaseResult) -> float | None:
    """The figure's share of its limit: at the expected clock where the case's own was far below
    it."""
    if case.clock is not None and is_slow(case):
        return case.clock.efficiency
    metric = case.metrics.get(case.primary)
    return None if metric is None else metric.efficiency


def clock_words(case: CaseResult) -> str | None:
    """`clock 95.0 %, work per cycle 98.0 %`; None where the clock is what was expected."""
    if case.clock is None or not is_slow(case):
        return None
    work = percent(case.clock.efficiency / case.clock.ratio)
    return f"clock {percent(case.clock.ratio)}, work per cycle {work}"


def slow_clock_sentence(cases: Sequence[CaseResult]) -> str | None:
    """Which cases ran below the expected clock; None where all reached it."""
    slow = [(case.clock, case) for case in cases if case.clock is not None and is_slow(case)]
    if not slow:
        return None
    clock, lowest = min(slow, key=lambda pair: pair[0].ratio)
    return (
        f"{plural(len(slow), 'case')} ran below the expected {human(clock.expected_hertz, 'Hz')}, "
        f"{clock.source}; the lowest: {lowest.title}, {clock_words(lowest)}."
    )


def held_clock_sentence(cases: Sequence[CaseResult]) -> str | None:
    """Which cases ran while heat or power held a clock down, by the CPU's own counters, which a
    share of the limit at the trial's own clock does not show; None: none of them."""
    held = [(share, case) for case in cases if not case.naive and (share := _held_ratio(case))]
    if not held:
        return None
    most, worst = max(held, key=lambda pair: pair[0])
    return (
        f"Seen in {plural(len(held), 'case')}, most in {worst.title} ({percent(most)} of its time)."
    )


def _held_ratio(case: CaseResult) -> float | None:
    condition = case.condition
    if condition is None:
        return None
    if condition.state is ConditionState.THROTTLED:
        return condition.share
    return condition.also.get(ConditionState.THROTTLED)
