"""Which trials of a case count, and when enough have been run."""

from collections.abc import Sequence

from hostbench.models.result import (
    WITH_FIGURE,
    PlannedCase,
    StopReason,
    TrialRecord,
    Verdict,
)
from hostbench.statistics import describe
from hostbench.verdict import is_disturbed

# Of two values nobody knows which one is the odd one out.
PEER_PAIRS_LEAST = 3


def counted_trials(case: PlannedCase, trials: Sequence[TrialRecord]) -> tuple[TrialRecord, ...]:
    """The undisturbed trials when there are at least `min_trials` of them, otherwise all."""
    measured = tuple(trial for trial in trials if trial.verdict in WITH_FIGURE)
    undisturbed = tuple(trial for trial in measured if not is_disturbed(trial))
    return undisturbed if len(undisturbed) >= case.repeats.min_trials else measured


def peer_pairs(case: PlannedCase) -> int:
    """How many of our trials are followed by one of each peer: the first `min_trials`, since
    those are run in any case, and 3 at least where there are as many."""
    return min(case.repeats.max_trials, max(PEER_PAIRS_LEAST, case.repeats.min_trials))


def stop_reason(case: PlannedCase, trials: Sequence[TrialRecord]) -> StopReason | None:
    """Why no further trial of this case is needed; None: run another."""
    if not trials:
        return None
    # The same parameters would fail or be skipped again.
    if trials[-1].verdict is Verdict.SKIPPED:
        return StopReason.SKIPPED
    if trials[-1].verdict is Verdict.FAILED:
        return StopReason.FAILED
    repeats = case.repeats
    if len(trials) >= repeats.max_trials:
        return StopReason.MAX_TRIALS
    if len(trials) < repeats.min_trials:
        return None
    if _target_reached(case, trials):
        return StopReason.TARGET_REACHED
    spent_s = sum(trial.wall_s for trial in trials)
    if spent_s + trials[-1].wall_s > repeats.max_time_s:
        return StopReason.MAX_TIME
    return None


def _target_reached(case: PlannedCase, trials: Sequence[TrialRecord]) -> bool:
    undisturbed = [trial for trial in trials if not is_disturbed(trial)]
    values = [trial.value for trial in undisturbed if trial.value is not None]
    if len(values) < max(2, case.repeats.min_trials):
        return False
    half_width_ratio = describe(values).half_width_ratio
    return half_width_ratio is not None and half_width_ratio <= case.repeats.target_half_width
