"""Judge the trials of peers, and compute their figures beside a case."""

import math
from collections.abc import Iterable, Sequence

from hostbench.base.units import bound, human, percent, plural
from hostbench.judge.statistics import describe
from hostbench.judge.trial import STEAL_RATIO_MOST, failed_trial, skipped_trial, was_crowded
from hostbench.judge.verdict import noisy_reasons
from hostbench.model.limit import Limit
from hostbench.model.peer import PeerEndEvent
from hostbench.model.result import (
    USABLE,
    WITH_FIGURE,
    CaseResult,
    ClassSpread,
    ClassSpreads,
    PeerFigures,
    PeerResult,
    PlannedCase,
    Reason,
    Statistics,
    TrialRecord,
    Verdict,
)
from hostbench.model.trial import Beside, TrialFailed
from hostbench.programs.peer import BadOutput, Peer

# As a share of the time of the peer's CPUs. /proc/stat counts in hundredths of a second, so a trial
# of one second allows no finer measurement.
OTHERS_RATIO_MOST = 0.05
OUTPUT_CHARACTERS = 300

# Of two values, either may be the outlier.
PEER_PAIRS_LEAST = 3

Pair = tuple[TrialRecord, TrialRecord]


def peer_pairs(case: PlannedCase) -> int:
    """Return how many of our trials are followed by one trial of each peer.

    These are the first `min_trials`, which run in any case, and at least 3 where the case has as
    many.
    """
    return min(case.repeats.max_trials, max(PEER_PAIRS_LEAST, case.repeats.min_trials))


def judged_peer_trial(
    record: TrialRecord, peer: Peer, beside: Beside, limit: Limit | None
) -> TrialRecord:
    """Return the trial with its figure, or with the reason why it has none. `limit` is the limit of
    our trial for the same quantity."""
    end = record.peer_end
    if end is None:
        return skipped_trial(record)
    try:
        value = _figure(end, peer, beside)
    except TrialFailed as failure:
        return failed_trial(record, failure)
    too_high = _above_limit(value, peer, limit)
    disturbances = _disturbances(end)
    verdict = Verdict.DISTURBED if disturbances else Verdict.CLEAN
    if too_high:
        verdict = Verdict.INVALID
    return record.model_copy(
        update={
            "verdict": verdict,
            "reasons": too_high + disturbances + _remarks(end),
            "value": value,
            "efficiency": value / limit.value if limit is not None and limit.value else None,
        }
    )


def _figure(end: PeerEndEvent, peer: Peer, beside: Beside) -> float:
    """Return the peer's figure. Raise TrialFailed if there is none to trust."""
    if end.timed_out:
        raise TrialFailed(
            "timeout", f"it did not finish within {end.elapsed_s:.0f} s{_output_of(end)}"
        )
    if end.exit_code is None:
        raise TrialFailed("not_started", f"it could not be started{_output_of(end)}")
    if end.exit_code < 0:
        raise TrialFailed("killed", f"killed by signal {-end.exit_code}{_output_of(end)}")
    if end.exit_code > 0:
        raise TrialFailed("exit_code", f"exit code {end.exit_code}{_output_of(end)}")
    try:
        value = peer.parse(end.output, beside)
    except BadOutput as error:
        raise TrialFailed("malformed_output", f"{error}{_output_of(end)}") from None
    if not math.isfinite(value) or value <= 0:
        raise TrialFailed("no_figure", f"its figure {value:g} is not a positive number")
    return value


def _output_of(end: PeerEndEvent) -> str:
    """Return the end of the peer's output as one line."""
    last = " ".join(end.output.split())[-OUTPUT_CHARACTERS:]
    return f"; its output: {shown_text(last)}" if last else "; it printed nothing"


def shown_text(text: str) -> str:
    """Return `text` with control characters replaced, so that none reaches a terminal."""
    return "".join(character if character.isprintable() else "�" for character in text)


def _above_limit(value: float, peer: Peer, limit: Limit | None) -> tuple[Reason, ...]:
    if limit is None or limit.value is None or value <= limit.value * (1 + limit.tolerance):
        return ()
    text = (
        f"{peer.tool} {human(value, peer.unit)} is {percent(value / limit.value)} of the limit "
        f"{human(limit.value, limit.unit)} of the hostbench trial before it (tolerance "
        f"{bound(limit.tolerance)}): its figure or the limit is wrong"
    )
    return (Reason(code="above_limit", text=text),)


def _disturbances(end: PeerEndEvent) -> tuple[Reason, ...]:
    reasons = []
    if end.steal_ratio is not None and end.steal_ratio > STEAL_RATIO_MOST:
        reasons.append(
            Reason(
                code="stolen",
                text=f"the hypervisor gave {percent(end.steal_ratio)} of its CPU time to other "
                f"guests (at most {bound(STEAL_RATIO_MOST)} is tolerated)",
            )
        )
    if end.others_ratio is not None and end.others_ratio > OTHERS_RATIO_MOST:
        reasons.append(
            Reason(
                code="cpu_taken_away",
                text=f"other processes used {percent(end.others_ratio)} of the time of its CPUs "
                f"(at most {bound(OTHERS_RATIO_MOST)} is tolerated)",
            )
        )
    return tuple(reasons)


def _remarks(end: PeerEndEvent) -> tuple[Reason, ...]:
    if not end.left_behind:
        return ()
    text = f"it left processes behind, which hostbench killed: {end.left_behind}"
    return (Reason(code="left_behind", text=text),)


def peer_figures(
    case: PlannedCase,
    ours: Sequence[TrialRecord],
    peers: Sequence[TrialRecord],
    others: ClassSpreads,
) -> tuple[PeerFigures, ...]:
    """Return the figures of each peer that ran in turn with `ours`, in the order they ran.

    `others` is what is known about the case's class: a peer's trials are taken to differ and to
    drift between jobs as much as ours.
    """
    tools = dict.fromkeys(trial.tool for trial in peers)
    return tuple(
        result
        for tool in tools
        if (result := _figures(case, ours, [one for one in peers if one.tool == tool], others))
    )


def _figures(
    case: PlannedCase,
    ours: Sequence[TrialRecord],
    trials: Sequence[TrialRecord],
    others: ClassSpreads,
) -> PeerFigures | None:
    started = [trial.peer_start for trial in trials if trial.peer_start is not None]
    if not started:
        return None
    start = started[-1]
    pairs = _counted_pairs(case, _pairs(ours, trials))
    values = [_value(peer) for _, peer in pairs]
    found = describe(values, others.figure, others.drift_ratio) if pairs else None
    verdict, reasons = _verdict(case, trials, pairs, found, others.usual_half_width)
    measured = verdict in WITH_FIGURE
    beside = _ours(pairs, start.metric)
    ratios = [our / value for our, value in zip(beside, values, strict=True)] if beside else []
    return PeerFigures(
        tool=start.tool,
        title=start.title,
        version=start.version,
        measures=start.measures,
        library=start.library,
        command=start.command,
        differs=start.differs,
        metric=start.metric,
        unit=start.unit,
        statistics=found if measured else None,
        ours=describe(beside, others.figure, others.drift_ratio) if measured and beside else None,
        # The drift between jobs is the same for both.
        ratio=describe(ratios, _of_ratios(others.figure)) if verdict in USABLE and ratios else None,
        verdict=verdict,
        reasons=reasons,
    )


def _of_ratios(others: ClassSpread | None) -> ClassSpread | None:
    """Return how much ratios of two trials differ."""
    if others is None:
        return None
    return others.model_copy(update={"deviation_ratio": math.sqrt(2) * others.deviation_ratio})


def _value(trial: TrialRecord) -> float:
    assert trial.value is not None
    return trial.value


def _pairs(ours: Sequence[TrialRecord], peers: Iterable[TrialRecord]) -> list[Pair]:
    """Return pairs of neighbours: a trial of ours and the peer's trial that followed it."""
    by_index = {trial.index: trial for trial in ours}
    return [
        (by_index[peer.index], peer)
        for peer in peers
        if peer.value is not None and peer.index in by_index
    ]


def _counted_pairs(case: PlannedCase, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs in which neither trial was disturbed and ours is valid, if there are enough
    of them; otherwise all pairs."""
    usable = [
        (our, peer)
        for our, peer in pairs
        if not (was_crowded(our) or was_crowded(peer) or our.verdict is Verdict.INVALID)
    ]
    enough = min(PEER_PAIRS_LEAST, case.repeats.min_trials)
    return usable if len(usable) >= enough else list(pairs)


def _ours(pairs: Iterable[Pair], metric: str | None) -> list[float]:
    """Return our figures of the pairs, or none unless all our trials have the metric."""
    values = []
    for our, _ in pairs:
        value = our.end.metrics.get(metric) if our.end is not None and metric else None
        if value is None:
            return []
        values.append(value)
    return values


def _verdict(
    case: PlannedCase,
    trials: Sequence[TrialRecord],
    pairs: Sequence[Pair],
    statistics: Statistics | None,
    usual_half_width: float,
) -> tuple[Verdict, tuple[Reason, ...]]:
    """Return the worst finding, as for a case of ours, and the reasons."""
    for verdict in (Verdict.FAILED, Verdict.SKIPPED):
        reasons = [reason for one in trials if one.verdict is verdict for reason in one.reasons]
        if reasons:
            return verdict, tuple(reasons)
    found = {reason.code: reason for _, peer in pairs for reason in peer.reasons}
    disturbed = {
        reason.code: reason for our, _ in pairs if was_crowded(our) for reason in our.reasons
    }
    reasons = list(found.values())
    ours_invalid = any(our.verdict is Verdict.INVALID for our, _ in pairs)
    if ours_invalid:
        reasons.append(
            Reason(code="our_trial_invalid", text="the hostbench trials beside it are invalid")
        )
    if disturbed:
        reasons.append(
            Reason(
                code="our_trial_disturbed",
                text="the hostbench trials beside it were disturbed, so there is no ratio",
            )
        )
    if ours_invalid or any(peer.verdict is Verdict.INVALID for _, peer in pairs):
        return Verdict.INVALID, tuple(reasons)
    if disturbed or any(was_crowded(peer) for _, peer in pairs):
        return Verdict.DISTURBED, tuple(reasons)
    # A disturbed peer is usually noisy, too; that adds nothing.
    assert statistics is not None, "a trial that neither failed nor was skipped has a figure"
    noisy = noisy_reasons(case, statistics, usual_half_width)
    return (Verdict.NOISY if noisy else Verdict.CLEAN), (*reasons, *noisy)


def ours_beside(case: CaseResult, peer: PeerResult) -> Statistics | None:
    """Return our figure beside a peer's; older documents do not have it, so the figure of the whole
    case stands in."""
    if peer.ours is None and peer.ratio is not None and peer.metric in case.metrics:
        return case.metrics[peer.metric].statistics
    return peer.ours


def compared_quantity(metric: str) -> str:
    """Return the quantity that both figures measure, in words, such as
    `operations per second, whole run`. It differs from the case's main figure, which is that of
    undisturbed slices."""
    quantity = metric.removesuffix("_makespan")
    words = quantity.removesuffix("_s").replace("_", " ")
    return words if quantity == metric else f"{words}, whole run"


def skipped_sentences(peers: Iterable[PeerResult]) -> list[str]:
    """Return why peers were not run: each reason with the number of cases that have it."""
    texts = [
        reason.text for peer in peers if peer.verdict is Verdict.SKIPPED for reason in peer.reasons
    ]
    return [
        f"{plural(texts.count(text), 'case')}: {shown_text(text)}" for text in dict.fromkeys(texts)
    ]
