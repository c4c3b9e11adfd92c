"""The condition of the host while the trials of a case ran, and what caused it.

The condition does not influence the verdict: a correct figure from a busy host is a good figure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostbench.judge.culprit import (
    TICK_S,
    culprit_of,
    disk_ratio,
    disk_user,
    others_of,
    used_ratio,
)
from hostbench.judge.figure import Measured
from hostbench.judge.trial import (
    PARTLY_SHARED_CORE,
    SHARED_CORE,
    STEAL_RATIO_MOST,
    UNSTEADY,
    best_over_figure,
    core_ratios,
    cpu_ratio_of,
    is_disturbed,
    reason_codes,
    stopped_ratio,
)
from hostbench.model.events import EndEvent, OthersEvent, StartEvent
from hostbench.model.result import Condition, ConditionState, TrialRecord
from hostbench.model.table import Metric

# As a share of the CPUs' time. Below it the host counts as quiet, unless the case is disturbed: an
# otherwise idle guest was seen to spend 1 % on itself.
SHARE_LEAST = 0.03
# The idle gate tolerates the same share for the hypervisor.
STOLEN_LEAST = STEAL_RATIO_MOST
OUTSIDE_HOST = "outside this host"
# What held a GPU's clock down. Tensor units at full load reach the power limit of a sound card, so
# this is no fault by itself.
BY_CARD = "the card's own limits, by its sensors"
# gpu-bench: the share of the sensors' readings in which something held the clock down.
CARD_HELD = "throttled_ratio"


@dataclass(frozen=True)
class _Seen:
    """The evidence of one trial with a figure.

    `hidden` is the share of the cores' speed that the trial lost to something this host cannot see.
    """

    start: StartEvent
    end: EndEvent
    others: OthersEvent | None
    hidden: float


def condition_of(one: Measured) -> Condition | None:
    """Return the condition over all trials of a case that have a figure, or None if no trial has
    one."""
    seen = [
        _Seen(trial.start, trial.end, others_of(trial), _hidden(trial, one.primary))
        for trial in one.trials
        if trial.start and trial.end
    ]
    if not seen:
        return None
    elapsed_s = sum(trial.end.elapsed_s for trial in seen)
    shares: dict[ConditionState, float] = {}
    for trial in seen:
        weight = trial.end.elapsed_s / elapsed_s if elapsed_s else 1 / len(seen)
        for state, share in _shares(trial, len(seen)):
            shares[state] = min(1.0, shares.get(state, 0.0) + weight * share)
    found = _named(shares, is_disturbed=one.is_disturbed)
    if not found:
        # That the threads had their CPUs shows nothing about the other CPUs or about shared
        # resources.
        is_known = all(used_ratio(trial.others) is not None for trial in seen)
        return Condition(state=ConditionState.QUIET if is_known else ConditionState.UNKNOWN)
    (share, state), *rest = found
    culprit, is_sure = _culprit(state, seen)
    return Condition(
        state=state,
        share=share,
        culprit=culprit,
        is_sure=is_sure,
        also={other: of for of, other in rest},
    )


def _named(
    shares: Mapping[ConditionState, float], *, is_disturbed: bool
) -> list[tuple[float, ConditionState]]:
    """Return the shares that are large enough to be reported, the largest first.

    Of a disturbed case the largest share is reported however small it is: calling its host quiet
    would contradict the verdict.
    """
    ranked = sorted(((share, state) for state, share in shares.items() if share > 0), reverse=True)
    return [
        (share, state)
        for place, (share, state) in enumerate(ranked)
        if share >= _least(state) or (is_disturbed and place == 0)
    ]


def _least(state: ConditionState) -> float:
    """Return the smallest share at which the state is reported."""
    if state is ConditionState.QUOTA:
        return 0.0
    return STOLEN_LEAST if state is ConditionState.STOLEN else SHARE_LEAST


def _hidden(trial: TrialRecord, primary: Metric) -> float:
    if trial.end is None:
        return 0.0
    codes, lost = reason_codes(trial), 0.0
    if UNSTEADY in codes and (ratio := best_over_figure(trial.end, primary)):
        lost = 1 - 1 / ratio
    # Steady slices already show that no core was shared; the sentinel, before and after them, adds
    # nothing.
    if SHARED_CORE in codes or (PARTLY_SHARED_CORE in codes and is_disturbed(trial)):
        ratios = core_ratios(trial.end)
        lost = max(lost, 1 - sum(min(1.0, ratio) for ratio in ratios) / len(ratios))
    return lost


def _shares(trial: _Seen, trials: int) -> Iterator[tuple[ConditionState, float]]:
    """Yield each state with the share that it took of the CPU time that the threads had available.

    The trial is one of `trials` whose mean is taken. States that the kernel does not count are left
    out.
    """
    start, end, others = trial.start, trial.end, trial.others
    seen = end.disturbance
    available_s = end.elapsed_s * len(set(start.placement.cpus))
    if available_s <= 0:
        return
    by_quota = kept = min(1.0, (seen.throttled_s or 0.0) / available_s)
    if by_quota:
        yield ConditionState.QUOTA, by_quota
    if seen.steal_s is not None:
        stolen = max(0.0, seen.steal_s - TICK_S) / available_s
        kept += stolen
        yield ConditionState.STOLEN, stolen
    if stopped := stopped_ratio(seen, end.elapsed_s):
        kept += stopped
        yield ConditionState.STOLEN, stopped
    ratio = cpu_ratio_of(seen, start.placement)
    taken = None if ratio is None else max(0.0, 1 - ratio - kept)
    used = used_ratio(others, trials)
    if used is not None:
        # While a quota stops the threads, others take nothing from them.
        used *= 1 - by_quota
    known = [share for share in (taken, used, disk_ratio(others)) if share is not None]
    if known or trial.hidden:
        yield ConditionState.SHARED, max([*known, trial.hidden])
    if held := [ratio for ratio in (_cpu_held(trial), _card_held(trial)) if ratio is not None]:
        yield ConditionState.THROTTLED, max(held)


def _cpu_held(trial: _Seen) -> float | None:
    """Return the share of the time in which heat or power lowered the clock of a CPU, or None where
    no CPU counts it."""
    others = trial.others
    if others is None or others.clock_held_s is None:
        return None
    return min(1.0, others.clock_held_s / others.elapsed_s)


def _card_held(trial: _Seen) -> float | None:
    """Return the share of the time in which a GPU's clock was held down, or None without a GPU."""
    return trial.end.metrics.get(CARD_HELD)


def _culprit(state: ConditionState, seen: Sequence[_Seen]) -> tuple[str | None, bool]:
    """Return what caused a state, and whether that is certain."""
    if state is ConditionState.STOLEN:
        stopped = (stopped_ratio(one.end.disturbance, one.end.elapsed_s) for one in seen)
        return OUTSIDE_HOST, not any(stopped)
    if state is ConditionState.QUOTA:
        quota = seen[0].start.placement.quota_cpus
        of = "" if quota is None else f" of {quota:g} CPUs"
        return f"the CPU quota{of} of this control group", True
    if state is ConditionState.THROTTLED:
        by_card, by_cpu = (
            sum(held(one) or 0.0 for one in seen) for held in (_card_held, _cpu_held)
        )
        return BY_CARD if by_card > by_cpu else "heat or power, by the CPU's own counters", True
    others = [trial.others for trial in seen if trial.others is not None]
    used = [used_ratio(one) or 0.0 for one in others]
    if any(trial.hidden for trial in seen) and max(used, default=0.0) < SHARE_LEAST:
        return OUTSIDE_HOST, False
    of_disk = [disk_ratio(one) or 0.0 for one in others]
    if max(of_disk, default=0.0) > max([SHARE_LEAST, *used]):
        return disk_user(others)
    return culprit_of(others)
