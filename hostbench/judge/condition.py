"""What the host was like while the trials of a case ran, and who made it so.

It stands beside the verdict and does not decide it: a right figure from a busy host is a good
figure.
"""

from collections.abc import Iterable, Iterator, Sequence

from hostbench.judge.culprit import culprit_of
from hostbench.judge.trial import STEAL_RATIO_MOST, STEAL_TICK_S, cpu_ratio_of
from hostbench.model.events import EndEvent, OthersEvent, StartEvent
from hostbench.model.result import Condition, ConditionState, TrialRecord

# Of the CPUs' time. Below it the host counts as quiet: a guest that does nothing else was seen to
# spend 1 % on itself.
SHARE_LEAST = 0.03
# The hypervisor's share that the idle gate tolerates, too.
STOLEN_LEAST = STEAL_RATIO_MOST
OUTSIDE_HOST = "outside this host"
Shares = dict[ConditionState, float]


def condition_of(trials: Iterable[TrialRecord]) -> Condition | None:
    """The condition over all trials of a case that have a figure; None without one."""
    seen = [(trial.start, trial.end, trial.others) for trial in trials if trial.start and trial.end]
    if not seen:
        return None
    elapsed_s = sum(end.elapsed_s for _, end, _ in seen)
    shares: Shares = {}
    for start, end, others in seen:
        weight = end.elapsed_s / elapsed_s if elapsed_s else 1 / len(seen)
        for state, share in _shares(start, end, others):
            shares[state] = shares.get(state, 0.0) + weight * share
    if not shares:
        return Condition(state=ConditionState.UNKNOWN)
    found = sorted(
        ((share, state) for state, share in shares.items() if share >= _least(state)), reverse=True
    )
    if not found:
        return Condition(state=ConditionState.QUIET)
    (share, state), *rest = found
    culprit, is_sure = _culprit(state, [start for start, _, _ in seen], [one for *_, one in seen])
    return Condition(
        state=state,
        share=share,
        culprit=culprit,
        is_sure=is_sure,
        also={other: of for of, other in rest},
    )


def _least(state: ConditionState) -> float:
    """The share from which on it is said."""
    if state is ConditionState.QUOTA:
        return 0.0
    return STOLEN_LEAST if state is ConditionState.STOLEN else SHARE_LEAST


def _shares(
    start: StartEvent, end: EndEvent, others: OthersEvent | None
) -> Iterator[tuple[ConditionState, float]]:
    """What each took of the time of the CPUs that the threads of one trial were on; nothing of
    what the kernel does not tell."""
    seen = end.disturbance
    available_s = end.elapsed_s * len(set(start.placement.cpus))
    if available_s <= 0:
        return
    kept = 0.0
    if seen.throttled_s:
        kept += min(1.0, seen.throttled_s / available_s)
        yield ConditionState.QUOTA, kept
    if seen.steal_s is not None:
        stolen = max(0.0, seen.steal_s - STEAL_TICK_S) / available_s
        kept += stolen
        yield ConditionState.STOLEN, stolen
    ratio = cpu_ratio_of(seen, start.placement)
    taken = None if ratio is None else max(0.0, 1 - ratio - kept)
    used = None if others is None else _used(end, others)
    known = [share for share in (taken, used) if share is not None]
    if known:
        yield ConditionState.SHARED, max(known)
    if others is not None and others.clock_held_s is not None:
        yield ConditionState.THROTTLED, min(1.0, others.clock_held_s / others.elapsed_s)


def _used(end: EndEvent, others: OthersEvent) -> float | None:
    """What others used of the time of all CPUs. Of a loop's trial the kernel's own time is left
    out: its threads and interrupts work for the disk or the network that is measured."""
    all_s = others.elapsed_s * others.cpus
    if any(thread.clean_slices is None for thread in end.threads):
        return sum(one.cpu_s for one in others.busiest if not one.kernel) / all_s
    return None if others.cpu_s is None else others.cpu_s / all_s


def _culprit(
    state: ConditionState, starts: Sequence[StartEvent], others: Sequence[OthersEvent | None]
) -> tuple[str | None, bool]:
    if state is ConditionState.STOLEN:
        return f"{OUTSIDE_HOST} (the hypervisor)", True
    if state is ConditionState.QUOTA:
        quota = starts[0].placement.quota_cpus
        of = "" if quota is None else f" of {quota:g} CPUs"
        return f"the CPU quota{of} of this control group", True
    if state is ConditionState.THROTTLED:
        return "heat or power, by the CPU's own counters", True
    return culprit_of([one for one in others if one is not None])
