"""Decide whether a case needs another trial, compute its result once from its trials, and list the
reasons of its verdict as sentences.

Report, CSV, points and API read the figures from the case's record.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hostbench.base.units import full_sentence, plural, some_of
from hostbench.judge.between_jobs import between_jobs, varying_reasons
from hostbench.judge.condition import condition_of
from hostbench.judge.figure import Measured, two_figures
from hostbench.judge.overview import WORST_FIRST
from hostbench.judge.peer import peer_figures, shown_text
from hostbench.judge.statistics import describe
from hostbench.judge.trial import NOT_IDLE, efficiency
from hostbench.judge.verdict import UNSTABLE, case_verdict
from hostbench.model.events import ParamValue
from hostbench.model.limit import Limit
from hostbench.model.result import (
    FAILURES,
    USABLE,
    WITH_FIGURE,
    CaseFigures,
    CaseRecord,
    CaseResult,
    ClassSpreads,
    IdleRecord,
    MetricResult,
    Reason,
    StopReason,
    TrialRecord,
    TwoFigures,
    Verdict,
)
from hostbench.model.table import Metric, ParamMeaning

# A program replaces this value with the best one that it finds; a label names what it found.
BEST = "best"
# `grouped_reasons` is for more paragraphs than these.
REASONS_SHOWN = 8
# A time limit may skip dozens of cases; the tables of the report have a row for each.
SKIPPED_NAMED = 6


def first_choices(
    params: Mapping[str, ParamValue],
    meanings: Iterable[ParamMeaning],
    trials: Sequence[TrialRecord],
) -> dict[str, ParamValue]:
    """Return what words such as `best` became in the first trial of a case, for its later trials.

    Where two choices are about equal, each trial might choose another one, and the trials would not
    measure the same.
    """
    start = next((trial.start for trial in trials if trial.start), None)
    if start is None:
        return {}
    return {
        param.name: chosen
        for param in meanings
        if param.resolved_once
        and params.get(param.name) in param.resolved
        and isinstance(chosen := start.params.get(param.name), str | int | float)
    }


def trials_with_metric(
    metric: str,
    params: Mapping[str, ParamValue],
    trials: Sequence[TrialRecord],
    counted: Sequence[TrialRecord],
) -> Sequence[TrialRecord]:
    """Return the trials for the statistics of a metric: all `counted`, or none if one of them lacks
    it.

    Only the first trial searches for `best`, so a metric of that search comes from the first trial
    alone.
    """
    if all(_has_metric(trial, metric) for trial in counted):
        return counted
    first, later = trials[0], [trial for trial in counted if trial.index != trials[0].index]
    alone = _has_metric(first, metric) and not any(_has_metric(trial, metric) for trial in later)
    return (first,) if BEST in params.values() and alone else ()


def _has_metric(trial: TrialRecord, metric: str) -> bool:
    return trial.end is not None and trial.end.metrics.get(metric) is not None


def stop_reason(one: Measured, others: ClassSpreads) -> StopReason | None:
    """Return why a case needs no further trial, or None: run another.

    `others` is how much the trials of other cases of its class differ.
    """
    trials, repeats = one.trials, one.case.repeats
    if not trials:
        return None
    # With the same parameters, the next trial would fail or be skipped, too.
    if trials[-1].verdict is Verdict.SKIPPED:
        return StopReason.SKIPPED
    if trials[-1].verdict in FAILURES:
        return StopReason.FAILED
    if len(trials) >= repeats.max_trials:
        return StopReason.MAX_TRIALS
    if len(trials) < repeats.min_trials:
        return None
    if _target_reached(one, others):
        return StopReason.TARGET_REACHED
    spent_s = sum(trial.wall_s for trial in trials)
    if spent_s + trials[-1].wall_s > repeats.max_time_s:
        return StopReason.MAX_TIME
    return None


def _target_reached(one: Measured, others: ClassSpreads) -> bool:
    values = one.values
    if one.is_disturbed or len(values) < max(2, one.case.repeats.min_trials):
        return False
    # Without the drift: more trials do not reduce it.
    half_width_ratio = describe(values, others.figure).half_width_ratio
    return half_width_ratio is not None and half_width_ratio <= one.case.repeats.target


def finished_case(
    one: Measured,
    peers: Sequence[TrialRecord],
    idle: IdleRecord | None,
    stopped: StopReason,
    others: ClassSpreads,
) -> CaseRecord:
    """Return the record of a case that needs no further trial: its verdict and its figures.

    `peers` are the peers' trials that ran beside ours; `idle` is the idle gate's record for the
    case.
    """
    figures = unfinished_figures(one, peers, others)
    primary = figures.metrics.get(one.primary.name)
    found = primary.statistics if primary else None
    verdict, reasons = case_verdict(one, found, idle, others.usual_half_width)
    between = between_jobs(one, others.usual_half_width) if verdict in USABLE else None
    if varying := varying_reasons(between, one.primary.unit):
        verdict, reasons = Verdict.NOISY, (*varying, *reasons)
    update: dict[str, object] = {"reasons": reasons, "between_jobs": between}
    if verdict not in WITH_FIGURE:
        # A case that failed in one trial has no figure from the others.
        none = dict.fromkeys(TwoFigures.model_fields)
        update |= {**none, "metrics": {}, "counted": ()}
    figures = figures.model_copy(update=update)
    return CaseRecord(case=one.case.case, stopped=stopped, verdict=verdict, figures=figures)


def unfinished_figures(
    one: Measured, peers: Sequence[TrialRecord], others: ClassSpreads
) -> CaseFigures:
    """The figures of the trials so far, without a verdict's reasons."""
    return CaseFigures(
        **dict(two_figures(one, others, condition_of(one))),
        reasons=(),
        metrics=_metric_results(one, others),
        counted=tuple(trial.index for trial in one.counted),
        peers=peer_figures(one.case, one.trials, peers, others),
        others=others,
    )


def _metric_results(one: Measured, others: ClassSpreads) -> dict[str, MetricResult]:
    """Return the results of the metrics that have values.

    The spread of other cases counts for the primary metric only: the other metrics of two cases
    need not be comparable.
    """
    results = {}
    for metric in one.metrics:
        used = trials_with_metric(metric.name, one.case.params, one.trials, one.counted)
        ends = [trial.end for trial in used if trial.end]
        values = [value for end in ends if (value := end.metrics[metric.name]) is not None]
        if values:
            of_class = others if metric.primary else ClassSpreads()
            results[metric.name] = _metric_result(metric, values, used, of_class)
    return results


def _metric_result(
    metric: Metric,
    values: Sequence[float],
    counted: Sequence[TrialRecord],
    others: ClassSpreads,
) -> MetricResult:
    limits = [trial.limits[metric.name] for trial in counted if metric.name in trial.limits]
    ratios = [
        ratio
        for value, trial in zip(values, counted, strict=True)
        if (ratio := efficiency(value, trial.limits.get(metric.name), metric.direction)) is not None
    ]
    return MetricResult(
        unit=metric.unit,
        direction=metric.direction,
        statistics=describe(values, others.figure, others.drift_ratio),
        limit=_middle_limit(limits),
        efficiency=statistics.median(ratios) if len(ratios) == len(values) else None,
    )


def _middle_limit(limits: Sequence[Limit]) -> Limit | None:
    """Return the limit of the trial in the middle: one that a trial really had, so that its factors
    multiply to its value."""
    known = [limit for limit in limits if limit.value is not None]
    if not known:
        return limits[0] if limits else None
    middle = statistics.median_low([limit.value for limit in known if limit.value is not None])
    return next(limit for limit in known if limit.value == middle)


def reason_paragraphs(cases: Sequence[CaseResult]) -> list[str]:
    """Return why each verdict is what it is, one paragraph each.

    Why cases were skipped, and what the idle gate saw, appears once for all cases that share it.
    """
    paragraphs = _skipped(cases)
    gate: list[str] = []
    for case in cases:
        gate += [reason.text for reason in case.reasons if reason.code == NOT_IDLE]
        own = [reason.text for reason in case.reasons if reason.code != NOT_IDLE]
        if own and case.verdict is not Verdict.SKIPPED:
            paragraphs.append(full_sentence(f"{case.title}, {case.verdict}: {'; '.join(own)}"))
        paragraphs += [
            full_sentence(f"{case.title}, {peer.tool} {peer.verdict}: {_texts(peer.reasons)}")
            for peer in case.peers
            if peer.reasons and peer.verdict is not Verdict.SKIPPED
        ]
    return paragraphs + [
        f"{plural(gate.count(text), 'case')}: {full_sentence(text)}" for text in dict.fromkeys(gate)
    ]


def grouped_reasons(cases: Sequence[CaseResult]) -> list[str]:
    """Return each kind of reason once, with one example case, for a reader with more than
    REASONS_SHOWN paragraphs. The first skipped cases are listed by name."""
    return _skipped(cases) + [
        full_sentence(f"{len(pairs)} cases, such as " * (len(pairs) > 1) + ": ".join(pairs[0]))
        for pairs in _kinds_of_reasons(cases)
    ]


def short_reasons(cases: Sequence[CaseResult]) -> list[str]:
    """Return the same reasons, one line each.

    A line has the number of cases and the beginning of the first case's reason: `13 cases: the
    threads had a CPU for only 26.0 % of the time`.
    """
    return [text.partition("; ")[0] for text in _skipped(cases)] + [
        f"{pairs[0][0] if len(pairs) == 1 else f'{len(pairs)} cases'}: {_short(pairs[0][1])}"
        for pairs in _kinds_of_reasons(cases)
    ]


def _short(reason: str) -> str:
    """Return a reason without its trials, its parentheses and what follows a semicolon."""
    text = re.sub(r"^\d+ of \d+ trials, such as trial \d+: ", "", reason)
    return re.sub(r" \([^()]*\)", "", text).partition("; ")[0]


def _kinds_of_reasons(cases: Sequence[CaseResult]) -> list[list[tuple[str, str]]]:
    """Return, for each kind of reason, the cases that have it with their texts; the worst verdicts
    come first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for case in sorted(cases, key=lambda case: WORST_FIRST.index(case.verdict or Verdict.CLEAN)):
        if case.verdict is not Verdict.SKIPPED:
            for code, text in {reason.code: reason.text for reason in case.reasons}.items():
                # The width of a noisy case's interval already shows that it is unstable.
                if code != UNSTABLE or case.verdict is not Verdict.NOISY:
                    found.setdefault(code, []).append((case.title, text))
        for peer in case.peers:
            if peer.reasons and peer.verdict is not Verdict.SKIPPED:
                title = f"{case.title}, {peer.tool} {peer.verdict}"
                found.setdefault(peer.tool, []).append((title, _texts(peer.reasons)))
    return list(found.values())


def _skipped(cases: Sequence[CaseResult]) -> list[str]:
    """Return why cases were skipped: each reason once, with the cases that have it.

    A subsystem whose cases were all skipped for that reason appears as `gpu (7 cases)`: a missing
    GPU affects many cases. Of many names, only the first SKIPPED_NAMED appear.
    """
    found: dict[str, list[CaseResult]] = {}
    for case in cases:
        if case.verdict is Verdict.SKIPPED:
            own = [reason.text for reason in case.reasons if reason.code != NOT_IDLE]
            found.setdefault("; ".join(own), []).append(case)
    there_are = Counter(map(_subsystem, cases))
    sentences = []
    for why, skipped in found.items():
        counts = Counter(map(_subsystem, skipped))
        whole = [name for name, n in counts.items() if n == there_are[name] > 1]
        names = [f"{name} ({counts[name]} cases)" for name in whole]
        names += [case.title for case in skipped if _subsystem(case) not in whole]
        sentences.append(full_sentence(f"{some_of(names, SKIPPED_NAMED)}, skipped: {why}"))
    return sentences


def _subsystem(case: CaseResult) -> str:
    return case.workload.split(".")[0]


def _texts(reasons: Sequence[Reason]) -> str:
    return shown_text("; ".join(reason.text for reason in reasons))
