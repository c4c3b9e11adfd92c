"""Judge how far a trial can be trusted, always with the reasons: `measured_trial` decides its
verdict.

Only a trial's own evidence makes it `disturbed`. The idle gate describes the host before the trial.
A host that was busy then may still have given the trial all it needed, so the gate's flag is a
reason that is shown, never a verdict.
"""

import time
from collections.abc import Mapping, Sequence

from hostbench.base.exitcode import ExitCode
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

# Below this share of clean slices, the median of the remaining ones is still correct (within 10 %
# on a loaded host), but the host was not ours alone: docs/measurement.md.
CLEAN_SLICE_RATIO_LEAST = 0.80
# The threads always want the CPU, or get it as soon as what they wait for arrives. On a quiet host
# they have it for more than 99 % of that time.
CPU_RATIO_LEAST = 0.97
# For a kernel on registers, the best clean slice does 1.00 to 1.04 times the work of the median
# one. The factor is 1.1 to 2 where the hypervisor puts another guest, or two of our own CPUs, on
# one core for a while (seen on an AMD EPYC of family 25, 2 CPUs).
STEADY_RATIO_MOST = 1.05
# The idle gate allows the same share before a trial.
STEAL_RATIO_MOST = 0.01
# As a share of the time of all CPUs, while the trial waits for a disk or a network. A busy process
# on one of two CPUs was seen to make a random read faster by a fifth, and busy processes on both by
# a half.
USED_RATIO_MOST = 0.05
# As a share of the bytes that went to and from disks.
DISK_RATIO_MOST = 0.05
DISK_IN_USE = "disk_in_use"
NOT_IDLE = "host_not_idle"
# The basis of a figure from slices that nothing interrupted; at least a tenth of the slices must be
# such.
CLEAN_SLICES = "clean_slices"
# The additions per cycle that a core does beside our other threads, over those that it does alone.
# Two hardware threads of one core had 0.5 to 0.6, distinct cores 0.95 to 1.05 (AMD EPYC of family
# 25).
OWN_CORE_RATIO_LEAST = 0.75
# Any throttling means that the trial measured a cgroup quota, not the CPU.
THROTTLED_S_MOST = 0.0
ABOVE_LIMIT = "above_limit"
# The warning of a program whose figure is that of the page cache, not of the disk.
CONTAMINATED = "cache_contaminated"
# The warning where the page cache took part. If that was requested, it is only a note.
PAGE_CACHE = "page_cache_measured"
# The warnings where a GPU or its memory had an error during the trial.
DEVICE_ERRORS = ("ecc", "xid")
# Other processes on this host had the CPU.
CROWDED_OUT_CODES = frozenset({"dirty_slices", "cpu_taken_away", "host_in_use"})
# Something invisible to this host used the cores: slices that nothing interrupted were slow.
UNSTEADY = "unsteady"
# The program did not run for a while although nothing else had the CPU.
STOPPED = "stopped"
# The hypervisor ran two of our threads on one core: throughout the trial, or in a part of it.
SHARED_CORE, PARTLY_SHARED_CORE = "shared_core", "partly_shared_core"
DISTURBANCE_CODES = CROWDED_OUT_CODES | {
    *("stolen", "throttled", STOPPED, UNSTEADY, PARTLY_SHARED_CORE, DISK_IN_USE),
}
INVALID_CODES = (ABOVE_LIMIT, CONTAMINATED, PAGE_CACHE, *DEVICE_ERRORS)


def trial_disturbances(start: StartEvent, end: EndEvent) -> tuple[Reason, ...]:
    """Return why this trial is disturbed; empty when it is not.

    Threads that share a CPU wait for one another, so none of their slices needs to be clean.
    Together they should still get all the time of their CPUs.
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
        text=f"only {percent(ratio)} of the time slices ran without interruption (at least "
        f"{bound(CLEAN_SLICE_RATIO_LEAST)} is expected)",
    )


def cpu_ratio_of(seen: Disturbance, placement: Placement) -> float | None:
    """Return the share of the available CPU time that the threads had, or None if the kernel does
    not report it.

    Eight threads on 2 CPUs can have a quarter of their time each.
    """
    if seen.cpu_ratio is None:
        return None
    return seen.cpu_ratio * len(placement.cpus) / len(set(placement.cpus))


def best_over_figure(end: EndEvent, primary: Metric) -> float | None:
    """Return how many times as fast as the figure the trial's best clean slice was, or None if the
    program does not report it."""
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
            f"{bound(USED_RATIO_MOST)} is tolerated): a waiting thread wakes up later "
            "beside them, or sooner if its CPU is already awake",
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
            text=f"other processes moved {percent(ratio)} of the bytes transferred to and from "
            f"disks in the meantime (at most {bound(DISK_RATIO_MOST)} is tolerated), most "
            f"of all {who}",
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
    """Return the work of the first thread's core beside the other threads, over its work alone:
    before the trial and after it. Empty where that was not measured."""
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
        text="threads share one core that the host reports as two: before the trial the first "
        f"thread did {seen.alone_before:.1f} additions per cycle alone and "
        f"{seen.all_before:.1f} beside the others, after it {seen.alone_after:.1f} and "
        f"{seen.all_after:.1f}",
    )


def _cpu_share(seen: Disturbance, placement: Placement) -> Reason | None:
    ratio = cpu_ratio_of(seen, placement)
    if ratio is None or ratio >= CPU_RATIO_LEAST:
        return None
    return Reason(
        code="cpu_taken_away",
        text=f"the threads had a CPU for only {percent(ratio)} of the time in which they could "
        f"run (at least {bound(CPU_RATIO_LEAST)} is expected)",
    )


def _steal(seen: Disturbance, placement: Placement, elapsed_s: float) -> Reason | None:
    available_s = elapsed_s * len(set(placement.cpus))
    if seen.steal_s is None or available_s <= 0:
        return None
    if seen.steal_s <= STEAL_RATIO_MOST * available_s + TICK_S:
        return None
    return Reason(
        code="stolen",
        text=f"the hypervisor gave {percent(seen.steal_s / available_s)} of the CPU time to "
        f"other guests (at most {bound(STEAL_RATIO_MOST)} plus one tick of the kernel's "
        "clock is tolerated)",
    )


def _throttling(seen: Disturbance) -> Reason | None:
    if seen.throttled_s is None or seen.throttled_s <= THROTTLED_S_MOST:
        return None
    return Reason(
        code="throttled",
        text=f"a cgroup CPU quota stopped the threads for {human(seen.throttled_s, 's')}; raise "
        "the quota or use fewer threads",
    )


def stopped_ratio(seen: Disturbance, elapsed_s: float) -> float:
    """Return the share of a trial's time during which the program was stopped or the machine
    suspended.

    A CPU quota also stops the program, but the kernel counts that, so such a trial returns 0.
    """
    if not seen.stopped_s or seen.throttled_s or elapsed_s <= 0:
        return 0.0
    return min(1.0, seen.stopped_s / elapsed_s)


def _stop(seen: Disturbance, elapsed_s: float) -> Reason | None:
    if not stopped_ratio(seen, elapsed_s):
        return None
    return Reason(
        code=STOPPED,
        text=f"the program did not run for {human(seen.stopped_s, 's')}: the machine was "
        "suspended, or a hypervisor, a debugger or another program stopped it",
    )


def efficiency(
    value: float | None, limit: Limit | None, direction: Direction = "higher"
) -> float | None:
    """Return the share of what the hardware can do, or None without a figure or a limit.

    It is the figure over its limit. Where lower is better, as for a time, it is the limit over the
    figure.
    """
    if value is None or limit is None or not limit.value:
        return None
    if direction == "higher":
        return value / limit.value
    return limit.value / value if value else None


def above_limit(
    figures: Mapping[str, float | None], limits: Mapping[str, Limit], metrics: Sequence[Metric]
) -> tuple[Reason, ...]:
    """Return a reason for each figure that exceeds what the hardware can do, beyond the limit's
    tolerance."""
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
    """Return why a figure is not that of the thing to be measured, by the program's own
    evidence."""
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
    """Whether something took the host away from this trial, whether or not its figure is usable."""
    return bool(reason_codes(trial) & DISTURBANCE_CODES)


def is_disturbed(trial: TrialRecord) -> bool:
    """Whether something took the host away from this trial and left no reliable figure."""
    return trial.verdict is not Verdict.CLEAN and was_crowded(trial)


def primary_metric(metrics: Sequence[Metric]) -> Metric:
    """Return the metric that has a limit, a verdict and a line in the table."""
    return next(metric for metric in metrics if metric.primary)


def failed_trial(record: TrialRecord, failure: TrialFailed) -> TrialRecord:
    """Return the record of a trial that failed or computed wrong, without a figure."""
    is_corrupt = failure.exit_code is ExitCode.CORRUPT
    return record.model_copy(
        update={
            "verdict": Verdict.CORRUPT if is_corrupt else Verdict.FAILED,
            "reasons": (Reason(code=failure.code, text=failure.message),),
            "failure": TrialFailure(
                code=failure.code, message=failure.message, exit_code=int(failure.exit_code)
            ),
        }
    )


def skipped_trial(record: TrialRecord) -> TrialRecord:
    """Return the record of a trial that cannot run here."""
    assert record.skip is not None, "a stream without end, skip or failure"
    return record.model_copy(
        update={
            "verdict": Verdict.SKIPPED,
            "reasons": (Reason(code="unsupported", text=record.skip.reason),),
        }
    )


def unmeasured_trial(case: PlannedCase, why: str, code: str = "no_far_host") -> TrialRecord:
    """Return the record of a skipped case for which no program was started."""
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
    """Return a trial with its figure, limits, verdict and reasons.

    It is invalid if its figure is above the limit, or if the page cache stood in for the disk; else
    disturbed or clean. With `sensitivity` core, a figure of uninterrupted slices is valid however
    few they are, unless they differ or the program was stopped. In a disturbed trial, the clock
    behind the limit may come from other moments than the figure, so the limit does not make it
    invalid.
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
    # Slices of kernels on registers show by themselves whether their core was shared.
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
