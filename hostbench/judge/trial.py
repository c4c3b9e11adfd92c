"""How far a trial can be trusted, always with the reasons: `measured_trial` decides its verdict.

A trial's own evidence decides `disturbed`. The idle gate only says what was true before: a host
that was busy then and gave the trial all it needed has measured well, so its flag is a reason
that is shown and never a verdict.
"""

import time
from collections.abc import Mapping, Sequence

from hostbench.base.units import bound, human, percent
from hostbench.judge.culprit import (
    TICK_S,
    disk_ratio,
    disk_user,
    others_of,
    taken_by,
    used_ratio,
)
from hostbench.model.events import (
    Disturbance,
    EndEvent,
    OthersEvent,
    Placement,
    StartEvent,
    WarningEvent,
)
from hostbench.model.limit import Limit
from hostbench.model.result import (
    PlannedCase,
    Reason,
    TrialFailure,
    TrialRecord,
    Verdict,
)
from hostbench.model.subsystem import Sensitivity
from hostbench.model.table import Direction, Metric
from hostbench.model.trial import TrialFailed
from hostbench.programs.stream import FALLBACK_WARNING

# Below this share of clean slices the median of those that are left is still right (on a loaded
# host it stays within 10 %), but the host was not ours: docs/measurement.md.
CLEAN_SLICE_RATIO_LEAST = 0.80
# The threads want the CPU all the time, or are given it as soon as what they wait for is there; on
# a quiet host they have it for more than 99 % of that time.
CPU_RATIO_LEAST = 0.97
# The best clean slice of a kernel on registers does 1.00 to 1.04 times what the median does; where
# the hypervisor puts another guest, or two of our own CPUs, on one core for a while it is 1.1 to 2
# (seen on an AMD EPYC of family 25, 2 CPUs).
STEADY_RATIO_MOST = 1.05
# The idle gate allows as much before a trial.
STEAL_RATIO_MOST = 0.01
# Of the time of all CPUs, while something waits for a disk or a network: a hog on one of two CPUs
# was seen to make a random read faster by a fifth, and hogs on both by a half.
USED_RATIO_MOST = 0.05
# Of the bytes that went to and from disks.
DISK_RATIO_MOST = 0.05
DISK_IN_USE = "disk_in_use"
NOT_IDLE = "host_not_idle"
# What a figure is made of where slices ran that nothing interrupted; a tenth of them at least.
CLEAN_SLICES = "clean_slices"
# Of the additions per cycle of a core alone, beside our other threads: two hardware threads of one
# core did 0.5 to 0.6 of it, distinct cores 0.95 to 1.05 (AMD EPYC of family 25).
OWN_CORE_RATIO_LEAST = 0.75
# Any throttling means that a cgroup quota, not the CPU, was measured.
THROTTLED_S_MOST = 0.0
ABOVE_LIMIT = "above_limit"
# What a program warns of where its figure is that of the page cache instead of the disk's.
CONTAMINATED = "cache_contaminated"
# What it warns of where the page cache took part. Where that was requested, it is a note.
PAGE_CACHE = "page_cache_measured"
# What it warns of where a GPU's memory or the GPU itself had an error while the trial ran.
DEVICE_ERRORS = ("ecc", "xid")
# Others on this host had the CPU.
CROWDED_OUT_CODES = frozenset({"dirty_slices", "cpu_taken_away", "host_in_use"})
# Something that cannot be seen from here had the cores: slices that nothing interrupted were slow.
UNSTEADY = "unsteady"
# The program did not run for a while though nothing else had the CPU.
STOPPED = "stopped"
# The hypervisor had two of our threads on one core, throughout the trial; and in a part of it.
SHARED_CORE, PARTLY_SHARED_CORE = "shared_core", "partly_shared_core"
DISTURBANCE_CODES = CROWDED_OUT_CODES | {
    *("stolen", "throttled", STOPPED, UNSTEADY, PARTLY_SHARED_CORE, DISK_IN_USE),
}
INVALID_CODES = (ABOVE_LIMIT, CONTAMINATED, PAGE_CACHE, *DEVICE_ERRORS)


def trial_disturbances(start: StartEvent, end: EndEvent) -> tuple[Reason, ...]:
    """Why this trial is disturbed; nothing when it is not.

    Threads that share a CPU wait for one another, so no slice is expected to be clean. Together
    they should still get all the time of their CPUs.
    """
    seen = end.disturbance
    reasons = [
        *(_steal(seen, start.placement, end.elapsed_s), _throttling(seen)),
        _stop(seen, end.elapsed_s),
    ]
    if not start.placement.oversubscribed:
        reasons.append(_dirty_slices(seen))
    reasons.append(_cpu_share(seen, start.placement))
    return tuple(reason for reason in reasons if reason)


def _dirty_slices(seen: Disturbance) -> Reason | None:
    ratio = seen.clean_slice_ratio
    if ratio is None or ratio >= CLEAN_SLICE_RATIO_LEAST:
        return None
    return Reason(
        code="dirty_slices",
        text=f"only {percent(ratio)} of the time slices ran without interruption "
        f"(at least {bound(CLEAN_SLICE_RATIO_LEAST)} are expected)",
    )


def cpu_ratio_of(seen: Disturbance, placement: Placement) -> float | None:
    """The share that the threads had of the CPU time they could have had: 8 threads on 2 CPUs can
    have a quarter of their time each. None: the kernel does not tell."""
    if seen.cpu_ratio is None:
        return None
    return seen.cpu_ratio * len(placement.cpus) / len(set(placement.cpus))


def best_over_figure(end: EndEvent, primary: Metric) -> float | None:
    """How many times what the figure says the best clean slice of a trial did; None: the program
    does not tell."""
    value, best = end.metrics.get(primary.name), end.metrics.get(f"{primary.name}_best")
    if not value or not best:
        return None
    return best / value if primary.direction == "higher" else value / best


def _use_by_others(trial: TrialRecord) -> tuple[Reason, ...]:
    ratio = used_ratio(others_of(trial))
    if ratio is None or ratio <= USED_RATIO_MOST:
        return ()
    return (
        Reason(
            code="host_in_use",
            text=f"other processes used {percent(ratio)} of the time of the CPUs (at most "
            f"{bound(USED_RATIO_MOST)} is tolerated): what waits is woken later beside them, or "
            "sooner, where a CPU that works need not be woken",
        ),
    )


def _disk_in_use(others: OthersEvent | None) -> tuple[Reason, ...]:
    ratio = disk_ratio(others)
    if others is None or ratio is None or ratio <= DISK_RATIO_MOST:
        return ()
    who, _ = disk_user([others])
    return (
        Reason(
            code=DISK_IN_USE,
            text=f"other processes moved {percent(ratio)} of the bytes that went to and from disks "
            f"meanwhile (at most {bound(DISK_RATIO_MOST)} are tolerated), most of all {who}",
        ),
    )


def _unsteadiness(end: EndEvent, primary: Metric) -> Reason | None:
    ratio = best_over_figure(end, primary)
    if ratio is None or ratio <= STEADY_RATIO_MOST:
        return None
    return Reason(
        code=UNSTEADY,
        text=f"the best uninterrupted slice was {ratio:.2f} times as fast as the figure (expected: "
        f"at most {STEADY_RATIO_MOST:.2f} times): something outside this host, or on the other "
        "thread of a core, slowed down the cores, or their clock fell",
    )


def core_ratios(end: EndEvent) -> tuple[float, ...]:
    """What the first thread's core did beside the other threads, over what it did alone: before the
    trial and after it; empty where that was not measured."""
    seen = end.sentinel
    if seen is None:
        return ()
    pairs = ((seen.all_before, seen.alone_before), (seen.all_after, seen.alone_after))
    return tuple(beside / alone for beside, alone in pairs if alone)


def _shared_core(end: EndEvent) -> Reason | None:
    shared = [ratio < OWN_CORE_RATIO_LEAST for ratio in core_ratios(end)]
    if not any(shared):
        return None
    seen = end.sentinel
    assert seen is not None
    return Reason(
        code=SHARED_CORE if all(shared) else PARTLY_SHARED_CORE,
        text="threads share a core, which the host calls two: the first did "
        f"{seen.alone_before:.1f} additions a cycle alone and {seen.all_before:.1f} beside the "
        f"others before the trial, {seen.alone_after:.1f} and {seen.all_after:.1f} after it",
    )


def _cpu_share(seen: Disturbance, placement: Placement) -> Reason | None:
    ratio = cpu_ratio_of(seen, placement)
    if ratio is None or ratio >= CPU_RATIO_LEAST:
        return None
    return Reason(
        code="cpu_taken_away",
        text=f"the threads had a CPU for only {percent(ratio)} of the time they could have had one "
        f"(at least {bound(CPU_RATIO_LEAST)} is expected)",
    )


def _steal(seen: Disturbance, placement: Placement, elapsed_s: float) -> Reason | None:
    available_s = elapsed_s * len(set(placement.cpus))
    if seen.steal_s is None or available_s <= 0:
        return None
    if seen.steal_s <= STEAL_RATIO_MOST * available_s + TICK_S:
        return None
    return Reason(
        code="stolen",
        text=f"the hypervisor gave {percent(seen.steal_s / available_s)} of the CPU time to others "
        f"(at most {bound(STEAL_RATIO_MOST)} and a tick of the kernel's count are tolerated)",
    )


def _throttling(seen: Disturbance) -> Reason | None:
    if seen.throttled_s is None or seen.throttled_s <= THROTTLED_S_MOST:
        return None
    return Reason(
        code="throttled",
        text=f"a cgroup CPU quota stopped the threads for {human(seen.throttled_s, 's')}; "
        "raise the quota or ask for fewer threads",
    )


def stopped_ratio(seen: Disturbance, elapsed_s: float) -> float:
    """The share of a trial's time for which the program was stopped, or the machine suspended. A
    quota stops it, too, and is counted by the kernel."""
    if not seen.stopped_s or seen.throttled_s or elapsed_s <= 0:
        return 0.0
    return min(1.0, seen.stopped_s / elapsed_s)


def _stop(seen: Disturbance, elapsed_s: float) -> Reason | None:
    if not stopped_ratio(seen, elapsed_s):
        return None
    return Reason(
        code=STOPPED,
        text=f"nothing of the program ran for {human(seen.stopped_s, 's')}: the machine was "
        "suspended, or something outside it, or a debugger, stopped it",
    )


def efficiency(
    value: float | None, limit: Limit | None, direction: Direction = "higher"
) -> float | None:
    """The share of what the hardware can do: the figure over its limit, and the limit over the
    figure where lower is better, such as of a time. None without either.
    """
    if value is None or limit is None or not limit.value:
        return None
    if direction == "higher":
        return value / limit.value
    return limit.value / value if value else None


def above_limit(
    figures: Mapping[str, float | None], limits: Mapping[str, Limit], metrics: Sequence[Metric]
) -> tuple[Reason, ...]:
    """Which figures are better than the hardware can do, beyond the limit's tolerance."""
    table = {metric.name: metric for metric in metrics}
    reasons = []
    for name, limit in limits.items():
        value, metric = figures.get(name), table.get(name)
        share = efficiency(value, limit, metric.direction if metric else "higher")
        if share is None or share <= 1 + limit.tolerance:
            continue
        unit = metric.unit if metric else limit.unit
        reasons.append(
            Reason(
                code=ABOVE_LIMIT,
                text=f"{name} {human(value, unit)} is {percent(share)} of its limit "
                f"{human(limit.value, unit)} (tolerance {bound(limit.tolerance)}): "
                "the figure or the limit is wrong",
            )
        )
    return tuple(reasons)


def contaminations(start: StartEvent, warnings: Sequence[WarningEvent]) -> tuple[Reason, ...]:
    """Why a figure is not that of what was to be measured, by the program's own evidence."""
    by_code = {warning.code: warning for warning in warnings}
    decisive = [CONTAMINATED, *DEVICE_ERRORS]
    if FALLBACK_WARNING in by_code or str(start.params.get("cache_mode")).startswith("direct"):
        decisive.append(PAGE_CACHE)
    found = [by_code[code] for code in decisive if code in by_code]
    return tuple(Reason(code=warning.code, text=warning.message) for warning in found)


def _was_crowded_out(disturbances: Sequence[Reason]) -> bool:
    return any(reason.code in CROWDED_OUT_CODES for reason in disturbances)


def reason_codes(trial: TrialRecord) -> set[str]:
    """The codes of a trial's reasons."""
    return {reason.code for reason in trial.reasons}


def was_crowded(trial: TrialRecord) -> bool:
    """Whether something took the host away from this trial, whatever its figure is worth."""
    return bool(reason_codes(trial) & DISTURBANCE_CODES)


def is_disturbed(trial: TrialRecord) -> bool:
    """Whether something took the host away from this trial and left it no figure to rely on."""
    return trial.verdict is not Verdict.CLEAN and was_crowded(trial)


def primary_metric(metrics: Sequence[Metric]) -> Metric:
    """The one that has a limit, a verdict and a line in the table."""
    return next(metric for metric in metrics if metric.primary)


def failed_trial(record: TrialRecord, failure: TrialFailed) -> TrialRecord:
    """A trial without a figure."""
    return record.model_copy(
        update={
            "verdict": Verdict.FAILED,
            "reasons": (Reason(code=failure.code, text=failure.message),),
            "failure": TrialFailure(
                code=failure.code, message=failure.message, exit_code=int(failure.exit_code)
            ),
        }
    )


def skipped_trial(record: TrialRecord) -> TrialRecord:
    """A trial that cannot run here."""
    assert record.skip is not None, "a stream without end, skip or failure"
    return record.model_copy(
        update={
            "verdict": Verdict.SKIPPED,
            "reasons": (Reason(code="unsupported", text=record.skip.reason),),
        }
    )


def unmeasured_trial(case: PlannedCase, why: str, code: str = "no_far_host") -> TrialRecord:
    """The record of a case that is skipped: no program was started."""
    return TrialRecord(
        case=case.case,
        index=0,
        time_unix_s=time.time(),
        wall_s=0.0,
        verdict=Verdict.SKIPPED,
        reasons=(Reason(code=code, text=why),),
    )


def measured_trial(
    record: TrialRecord,
    metrics: Sequence[Metric],
    limits: dict[str, Limit],
    sensitivity: Sensitivity = Sensitivity.HOST,
) -> TrialRecord:
    """A trial with a figure: invalid above its limit, or where the page cache stood in for the
    disk, else disturbed or clean. With `sensitivity` core the figure of slices that nothing
    interrupted is right however few they are, unless they differ, or the program was stopped.

    In a crowded trial the clock that the limit is made with may be of other moments than the
    figure, so its limit proves nothing.
    """
    assert record.start is not None and record.end is not None
    primary = primary_metric(metrics)
    value = record.end.metrics[primary.name]
    too_high = above_limit(record.end.metrics, limits, metrics)
    not_the_disk = contaminations(record.start, record.warnings)
    disturbances = trial_disturbances(record.start, record.end)
    if sensitivity is Sensitivity.WAKING:
        disturbances += _use_by_others(record) + _disk_in_use(record.others)
    culprit = taken_by(record.others) if _was_crowded_out(disturbances) else None
    was_stopped = any(reason.code == STOPPED for reason in disturbances)
    stands = sensitivity is Sensitivity.CORE and record.end.basis == CLEAN_SLICES
    stands = stands and not was_stopped
    shared_core = _shared_core(record.end)
    if shared_core and shared_core.code == PARTLY_SHARED_CORE:
        disturbances += (shared_core,)
    verdict = Verdict.CLEAN
    # Slices of kernels on registers tell themselves whether their core was shared.
    unsteady = _unsteadiness(record.end, primary) if stands else None
    if unsteady:
        disturbances += (unsteady,)
        verdict = Verdict.DISTURBED
    elif disturbances:
        verdict = Verdict.CLEAN if stands else Verdict.DISTURBED
    elif too_high:
        verdict = Verdict.INVALID
    remarks = [one for one in (culprit, shared_core) if one and one not in disturbances]
    if not_the_disk:
        verdict = Verdict.INVALID
    return record.model_copy(
        update={
            "verdict": verdict,
            "reasons": (*too_high, *not_the_disk, *disturbances, *remarks),
            "value": value,
            "efficiency": efficiency(value, limits.get(primary.name), primary.direction),
            "limits": limits,
        }
    )
