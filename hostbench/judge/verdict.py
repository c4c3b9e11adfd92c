"""The verdict of a case from its trials: the worst finding decides, and each finding is a
reason."""

from collections.abc import Sequence

from hostbench.base.units import bound, percent, plural, plus_minus
from hostbench.judge.culprit import TAKEN_BY
from hostbench.judge.figure import Measured
from hostbench.judge.trial import (
    ABOVE_LIMIT,
    DISTURBANCE_CODES,
    INVALID_CODES,
    NOT_IDLE,
    SHARED_CORE,
    above_limit,
    is_disturbed,
    reason_codes,
)
from hostbench.model.result import (
    FAILURES,
    IdleRecord,
    PlannedCase,
    Reason,
    Statistics,
    TrialRecord,
    Verdict,
)

UNSTABLE = "unstable"
CPU_RATIO = "disturbance.cpu_ratio"


def case_verdict(
    one: Measured,
    statistics: Statistics | None,
    idle: IdleRecord | None,
    usual_half_width: float = 0.0,
) -> tuple[Verdict, tuple[Reason, ...]]:
    """Decide whether the figure of a case, described by `statistics`, is usable within its
    interval.

    The worst finding decides: corrupt, failed, skipped, invalid, disturbed, noisy, clean. The other
    findings are listed as reasons, too. `usual_half_width`: see ClassSpreads. The state of the host
    is the case's condition (condition.py).
    """
    trials, counted = one.trials, one.counted
    for verdict in (*FAILURES, Verdict.SKIPPED):
        reasons = [
            reason for trial in trials if trial.verdict is verdict for reason in trial.reasons
        ]
        if reasons:
            return verdict, tuple(reasons)
    assert statistics is not None
    findings = [
        (Verdict.INVALID, _invalid(one)),
        (Verdict.DISTURBED, _disturbed(counted, len(trials))),
        (Verdict.NOISY, noisy_reasons(one.case, statistics, usual_half_width)),
        (Verdict.CLEAN, _remarks(one, statistics, idle)),
    ]
    verdict = next((verdict for verdict, reasons in findings if reasons), Verdict.CLEAN)
    return verdict, tuple(reason for _, reasons in findings for reason in reasons)


def _invalid(one: Measured) -> list[Reason]:
    counted = one.counted
    invalid = [trial for trial in counted if trial.verdict is Verdict.INVALID]
    by_code = {
        code: [trial for trial in invalid if code in reason_codes(trial)] for code in INVALID_CODES
    }
    by_code[ABOVE_LIMIT] = [trial for trial in by_code[ABOVE_LIMIT] if _is_confirmed(trial, one)]
    return [_over_trials(such, code, len(counted)) for code, such in by_code.items() if such]


def _is_confirmed(trial: TrialRecord, one: Measured) -> bool:
    """Whether a figure is above the limits of all trials of its case. The limits differ by the
    clock that each trial read, and a single reading may be too slow."""
    assert trial.end is not None, "a trial above its limit has a figure"
    figures = trial.end.metrics
    known = [
        other.limits
        for other in one.counted
        if any(limit.value for limit in other.limits.values()) and not is_disturbed(other)
    ]
    return all(above_limit(figures, limits, one.metrics) for limits in known)


def _disturbed(counted: Sequence[TrialRecord], ran: int) -> list[Reason]:
    codes = dict.fromkeys(
        reason.code
        for trial in counted
        if is_disturbed(trial)
        for reason in trial.reasons
        if reason.code in DISTURBANCE_CODES | {TAKEN_BY}
    )
    return [
        _over_trials([trial for trial in counted if code in reason_codes(trial)], code, ran)
        for code in codes
    ]


def _over_trials(trials: Sequence[TrialRecord], code: str, of: int) -> Reason:
    """One reason for several trials, with the figures of the first."""
    text = next(reason.text for reason in trials[0].reasons if reason.code == code)
    which = (
        "" if of == 1 else f"{len(trials)} of {of} trials, such as trial {trials[0].index + 1}: "
    )
    return Reason(code=code, text=f"{which}{text}")


def noisy_reasons(
    case: PlannedCase, statistics: Statistics, usual_half_width: float
) -> list[Reason]:
    """Return why the interval is too wide; empty when it is not. `usual_half_width`: see
    ClassSpreads."""
    half_width_ratio, target = statistics.half_width_ratio, case.repeats.target
    if half_width_ratio is None or half_width_ratio <= max(target, usual_half_width):
        return []
    bounds = f"the target is ± {bound(target)}"
    if usual_half_width > target:
        bounds += f", and ± {bound(usual_half_width)} is usual for its kind on a virtual machine"
    return [
        Reason(
            code="wide_interval",
            text=f"the figure is {_known_within(half_width_ratio)} after "
            f"{plural(statistics.n, 'trial')} ({bounds}); stop other work on the host or "
            "raise max_trials",
        )
    ]


def _known_within(half_width_ratio: float) -> str:
    if half_width_ratio > 1:
        return "not known within ± 100 %"
    return f"known within {plus_minus(half_width_ratio)}"


def _remarks(one: Measured, statistics: Statistics, idle: IdleRecord | None) -> list[Reason]:
    trials, counted = one.trials, one.counted
    remarks = []
    left_out = [trial for trial in trials if trial not in counted]
    if left_out:
        remarks.append(
            Reason(
                code="disturbed_trials_left_out",
                text=f"{len(left_out)} of {plural(len(trials), 'trial')} "
                f"{'was' if len(left_out) == 1 else 'were'} disturbed and left out",
            )
        )
    if statistics.n == 1:
        known = statistics.half_width_ratio is not None
        spread = "taken from other cases" if known else "unknown"
        remarks.append(Reason(code="single_trial", text=f"one trial: its spread is {spread}"))
    if any(SHARED_CORE in reason_codes(trial) for trial in counted):
        remarks.append(_over_trials(counted, SHARED_CORE, len(trials)))
    remarks += _unconfirmed(one)
    if statistics.outliers:
        remarks.append(
            Reason(
                code="outliers",
                text=f"{plural(len(statistics.outliers), 'outlier')} among {statistics.n} "
                "trials (modified z-score above 14.8); they hardly change the median",
            )
        )
    if statistics.unstable:
        remarks.append(Reason(code=UNSTABLE, text=statistics.unstable))
    remarks += _unseen_remarks(counted)
    remarks += _warnings(counted)
    if idle is not None and idle.idle is False:
        remarks.append(Reason(code=NOT_IDLE, text=not_idle_sentence(idle)))
    return remarks


def _unconfirmed(one: Measured) -> list[Reason]:
    """Return a remark on figures that are above the limit of their own trial only."""
    found = [
        trial
        for trial in one.counted
        if ABOVE_LIMIT in reason_codes(trial)
        and (trial.verdict is not Verdict.INVALID or not _is_confirmed(trial, one))
    ]
    if not found:
        return []
    return [
        Reason(
            code="limit_unsure",
            text=f"{len(found)} of {plural(len(one.counted), 'trial')} above the limit at its "
            "own clock: the clock was read too low, or while other processes had the CPU",
        )
    ]


def _unseen_remarks(counted: Sequence[TrialRecord]) -> list[Reason]:
    """Return a remark if the kernel reported neither counter without which a competitor for the CPU
    stays unnoticed."""
    ends = [trial.end for trial in counted if trial.end is not None]
    seen = [end.disturbance for end in ends]
    if any(one.cpu_ratio is not None or one.clean_slice_ratio is not None for one in seen):
        return []
    text = "the kernel does not report whether the threads were interrupted"
    # With more threads than CPUs, each waiting for a disk, the program reports why this is unknown.
    why = next((end.reasons[CPU_RATIO] for end in ends if CPU_RATIO in end.reasons), None)
    if why is not None:
        text = f"whether the threads were interrupted is unknown: {why}"
    return [Reason(code="disturbance_unknown", text=text)]


def _warnings(counted: Sequence[TrialRecord]) -> list[Reason]:
    warnings = {warning.code: warning for trial in counted for warning in trial.warnings}
    # What decides the verdict is already a reason.
    codes = {code for trial in counted for code in reason_codes(trial)}
    return [
        Reason(code=code, text=f"the program warns: {warning.message}")
        for code, warning in warnings.items()
        if code not in codes
    ]


def not_idle_sentence(idle: IdleRecord) -> str:
    """Return a sentence on what the gate saw when it gave up."""
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
