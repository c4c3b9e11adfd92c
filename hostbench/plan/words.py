"""Plans, estimates and the wait for an idle host in sentences: the same in terminal and console."""

from collections.abc import Collection

from hostbench.base.units import duration, plural
from hostbench.model.result import Estimate, IdleWindow
from hostbench.plan.estimate import Plan


def plan_sentence(plan: Plan, kept: Collection[str]) -> str:
    """Return a text such as `15 cases, 45 to 75 trials, 41 s to 1 min 10 s`."""
    plan = plan.without(kept)
    text = f"{plural(len(plan.cases), 'case')}, {estimate_sentence(plan.estimate())}"
    skipped = sum(case.skip is not None for case in plan.cases)
    if skipped:
        text += f"; {plural(skipped, 'case')} skipped because there is no second host"
    if kept:
        text += f"; {plural(len(kept), 'case')} kept from earlier"
    return text


def estimate_sentence(estimate: Estimate) -> str:
    """Return a text such as `45 to 75 trials, 41 s to 1 min 10 s`."""
    trials = _range(str(estimate.trials_low), plural(estimate.trials_high, "trial"))
    if estimate.peer_trials_high:
        low, high = estimate.peer_trials_low, estimate.peer_trials_high
        trials += f" and {_range(str(low), str(high))} of peers"
    time_taken = _range(duration(estimate.low_s), duration(estimate.high_s))
    text = f"{trials}, {time_taken}"
    if not estimate.complete:
        text += " plus the time of the trials with a fixed amount of work"
    return text


def _range(low: str, high: str) -> str:
    return high if high.partition(" ")[0] == low or high == low else f"{low} to {high}"


def waiting_sentence(window: IdleWindow) -> str:
    """Return what keeps the idle gate waiting."""
    return f"waiting for an idle host: {'; '.join(reason.text for reason in window.reasons)}"
