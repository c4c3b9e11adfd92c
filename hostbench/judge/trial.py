"""How far a trial and a case can be trusted, always with the reasons.

A trial's own evidence decides `disturbed`. The idle gate only says what was true before: a host
that was busy then and gave the trial all it needed has measured well, so its flag is a reason
that is shown and never a verdict.
"""

import time
from collections.abc import Mapping, Sequence

from hostbench.base.units import bound, human, percent, plural
from hostbench.model.events import (
    Disturbance,
    EndEvent,
    Placement,
    StartEvent,
    WarningEvent,
)
from hostbench.model.limit import Limit
from hostbench.model.result import (
    IdleRecord,
    PlannedCase,
    Reason,
    Statistics,
    TrialFailure,
    TrialRecord,
    Verdict,
)
from hostbench.model.table import Direction, Metric
from hostbench.model.trial import TrialFailed
from hostbench.programs.stream import FALLBACK_WARNING

# Below this share of clean slices the median of those that are left is still right (on a loaded
# host it stays within 10 %), but the host was not ours: docs/measurement.md.
CLEAN_SLICE_RATIO_LEAST = 0.80
# The threads want the CPU all the time, or are given it as soon as what they wait for is there; on
# a quiet host they have it for more than 99 % of that time.
CPU_RATIO_LEAST = 0.97
# The idle gate allows as much before a trial.
STEAL_RATIO_MOST = 0.01
NOT_IDLE = "host_not_idle"
CPU_RATIO = "disturbance.cpu_ratio"
# Any throttling means that a cgroup quota, not the CPU, was measured.
THROTTLED_S_MOST = 0.0
ABOVE_LIMIT = "above_limit"
# What a program warns of where its figure is that of the page cache instead of the disk's.
CONTAMINATED = "cache_contaminated"
# What it warns of where the page cache took part. Where that was requested, it is a note.
PAGE_CACHE = "page_cache_measured"
# What it warns of where a GPU's memory or the GPU itself had an error while the trial ran.
DEVICE_ERRORS = ("ecc", "xid")
INVALID_CODES = (ABOVE_LIMIT, CONTAMINATED, PAGE_CACHE, *DEVICE_ERRORS)


def trial_disturbances(start: StartEvent, end: EndEvent) -> tuple[Reason, ...]:
    """Why this trial is disturbed; nothing when it is not.

    Threads that share a CPU wait for one another: their waiting was requested, and is no
    slice is expected to be clean. Together they still want all of their CPUs' time.
    """
    seen = end.disturbance
    reasons = [_steal(seen, start.placement, end.elapsed_s), _throttling(seen)]
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


def _cpu_share(seen: Disturbance, placement: Placement) -> Reason | None:
    if seen.cpu_ratio is None:
        return None
    # 8 threads on 2 CPUs can have a quarter of their time each.
    ratio = seen.cpu_ratio * len(placement.cpus) / len(set(placement.cpus))
    if ratio >= CPU_RATIO_LEAST:
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
    ratio = seen.steal_s / available_s
    if ratio <= STEAL_RATIO_MOST:
        return None
    return Reason(
        code="stolen",
        text=f"the hypervisor gave {percent(ratio)} of the CPU time to others "
        f"(at most {bound(STEAL_RATIO_MOST)} is tolerated)",
    )


def _throttling(seen: Disturbance) -> Reason | None:
    if seen.throttled_s is None or seen.throttled_s <= THROTTLED_S_MOST:
        return None
    return Reason(
        code="throttled",
        text=f"a cgroup CPU quota stopped the threads for {human(seen.throttled_s, 's')}; "
        "raise the quota or ask for fewer threads",
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


def case_verdict(
    case: PlannedCase,
    trials: Sequence[TrialRecord],
    counted: Sequence[TrialRecord],
    statistics: Statistics | None,
    idle: IdleRecord | None,
) -> tuple[Verdict, tuple[Reason, ...]]:
    """The verdict of a case from all its trials and from those that count.

    The worst finding decides: failed, skipped, invalid, disturbed, noisy, clean. Findings that do
    not decide are reasons all the same.
    """
    for verdict in (Verdict.FAILED, Verdict.SKIPPED):
        reasons = [
            reason for trial in trials if trial.verdict is verdict for reason in trial.reasons
        ]
        if reasons:
            return verdict, tuple(reasons)
    assert statistics is not None
    findings = [
        (Verdict.INVALID, _invalid(counted)),
        (Verdict.DISTURBED, _disturbed(counted, len(trials))),
        (Verdict.NOISY, noisy_reasons(case, statistics)),
        (Verdict.CLEAN, _remarks(trials, counted, statistics, idle)),
    ]
    verdict = next((verdict for verdict, reasons in findings if reasons), Verdict.CLEAN)
    return verdict, tuple(reason for _, reasons in findings for reason in reasons)


def _invalid(counted: Sequence[TrialRecord]) -> list[Reason]:
    invalid = [trial for trial in counted if trial.verdict is Verdict.INVALID]
    by_code = {code: [one for one in invalid if code in _codes(one)] for code in INVALID_CODES}
    return [_over_trials(such, code, len(counted)) for code, such in by_code.items() if such]


def _disturbed(counted: Sequence[TrialRecord], ran: int) -> list[Reason]:
    codes = dict.fromkeys(
        reason.code
        for trial in counted
        if is_disturbed(trial)
        for reason in trial.reasons
        if reason.code in DISTURBANCE_CODES
    )
    return [
        _over_trials([trial for trial in counted if code in _codes(trial)], code, ran)
        for code in codes
    ]


DISTURBANCE_CODES = frozenset({"dirty_slices", "cpu_taken_away", "stolen", "throttled"})


def _codes(trial: TrialRecord) -> set[str]:
    return {reason.code for reason in trial.reasons}


def is_disturbed(trial: TrialRecord) -> bool:
    """Whether something took the host away from this trial, whatever else is wrong with it."""
    return bool(_codes(trial) & DISTURBANCE_CODES)


def _over_trials(trials: Sequence[TrialRecord], code: str, of: int) -> Reason:
    """What a trial says of itself, said of several: the first one's figures stand for them."""
    text = next(reason.text for reason in trials[0].reasons if reason.code == code)
    which = (
        "" if of == 1 else f"{len(trials)} of {of} trials, such as trial {trials[0].index + 1}: "
    )
    return Reason(code=code, text=f"{which}{text}")


def noisy_reasons(case: PlannedCase, statistics: Statistics) -> list[Reason]:
    """Why the spread between trials is too large; nothing when it is not."""
    reasons = []
    target = case.repeats.target_half_width
    if statistics.half_width_ratio is not None and statistics.half_width_ratio > target:
        reasons.append(
            Reason(
                code="wide_interval",
                text=f"the interval of the median is ± {percent(statistics.half_width_ratio)} wide "
                f"after {statistics.n} trials (the target is ± {bound(target)}); "
                "quieten the host or raise max_trials",
            )
        )
    if statistics.unstable:
        reasons.append(Reason(code="unstable", text=statistics.unstable))
    return reasons


def _remarks(
    trials: Sequence[TrialRecord],
    counted: Sequence[TrialRecord],
    statistics: Statistics,
    idle: IdleRecord | None,
) -> list[Reason]:
    remarks = []
    left_out = [trial for trial in trials if trial not in counted]
    if left_out:
        remarks.append(
            Reason(
                code="disturbed_trials_left_out",
                text=f"{len(left_out)} of {len(trials)} trials "
                f"{'was' if len(left_out) == 1 else 'were'} disturbed and left out",
            )
        )
    if statistics.n == 1:
        remarks.append(
            Reason(code="single_trial", text="one trial: the spread between trials is unknown")
        )
    if statistics.outliers:
        remarks.append(
            Reason(
                code="outliers",
                text=f"{plural(len(statistics.outliers), 'outlier')} among {statistics.n} trials "
                "(modified z-score above 14.8); the median hardly moves with them",
            )
        )
    remarks += _unseen_remarks(counted)
    remarks += _warnings(counted)
    if idle is not None and idle.idle is False:
        remarks.append(Reason(code=NOT_IDLE, text=not_idle_sentence(idle)))
    return remarks


def _unseen_remarks(counted: Sequence[TrialRecord]) -> list[Reason]:
    """Without these two counters a competitor for the CPU stays unnoticed."""
    ends = [trial.end for trial in counted if trial.end is not None]
    seen = [end.disturbance for end in ends]
    if any(one.cpu_ratio is not None or one.clean_slice_ratio is not None for one in seen):
        return []
    text = "the kernel does not report whether the threads were interrupted"
    # More threads than CPUs, each waiting for a disk: the program says why it cannot tell.
    why = next((end.reasons[CPU_RATIO] for end in ends if CPU_RATIO in end.reasons), None)
    if why is not None:
        text = f"it is unknown whether the threads were interrupted: {why}"
    return [Reason(code="disturbance_unknown", text=text)]


def _warnings(counted: Sequence[TrialRecord]) -> list[Reason]:
    warnings = {warning.code: warning for trial in counted for warning in trial.warnings}
    # What decides the verdict is said already.
    codes = {code for trial in counted for code in _codes(trial)}
    return [
        Reason(code=code, text=f"the program warns: {warning.message}")
        for code, warning in warnings.items()
        if code not in codes
    ]


def not_idle_sentence(idle: IdleRecord) -> str:
    """What the gate saw when it gave up."""
    sentence = "the host was not idle before the measurement"
    if idle.window is not None and idle.window.reasons:
        sentence += f": {'; '.join(reason.text for reason in idle.window.reasons)}"
    if idle.busiest:
        busiest = ", ".join(
            f"{busy.command} (pid {busy.pid}) {percent(busy.cpu_ratio)} of a CPU"
            for busy in idle.busiest
        )
        sentence += f"; busiest: {busiest}"
    return sentence


# In a disturbed trial the clock that the limit is made of may be of other moments than the figure.
FAR_ABOVE = 1.05


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


def unmeasured_trial(case: PlannedCase, why: str) -> TrialRecord:
    """The record of a case that its plan skips: no program was started."""
    return TrialRecord(
        case=case.case,
        index=0,
        time_unix_s=time.time(),
        wall_s=0.0,
        verdict=Verdict.SKIPPED,
        reasons=(Reason(code="no_far_host", text=why),),
    )


def measured_trial(
    record: TrialRecord, metrics: Sequence[Metric], limits: dict[str, Limit]
) -> TrialRecord:
    """A trial with a figure: invalid above its limit, or where the page cache stood in for the
    disk, else disturbed or clean."""
    assert record.start is not None and record.end is not None
    primary = primary_metric(metrics)
    value = record.end.metrics[primary.name]
    too_high = above_limit(record.end.metrics, limits, metrics)
    not_the_disk = contaminations(record.start, record.warnings)
    disturbances = trial_disturbances(record.start, record.end)
    verdict = Verdict.CLEAN
    if disturbances:
        verdict = Verdict.DISTURBED
    if too_high and (not disturbances or _far_above(record.end.metrics, limits, metrics)):
        verdict = Verdict.INVALID
    if not_the_disk:
        verdict = Verdict.INVALID
    return record.model_copy(
        update={
            "verdict": verdict,
            "reasons": too_high + not_the_disk + disturbances,
            "value": value,
            "efficiency": efficiency(value, limits.get(primary.name), primary.direction),
            "limits": limits,
        }
    )


def _far_above(
    figures: Mapping[str, float | None], limits: Mapping[str, Limit], metrics: Sequence[Metric]
) -> bool:
    """Whether some figure is so far above its limit that no disturbance explains it."""
    directions = {metric.name: metric.direction for metric in metrics}
    shares = (
        efficiency(figures.get(name), limit, directions.get(name, "higher"))
        for name, limit in limits.items()
    )
    return any(share is not None and share > FAR_ABOVE for share in shares)
