"""What is left to a program to choose: the first trial of a case tries it out, the later ones take
its choice over."""

from collections.abc import Mapping, Sequence

from hostbench.models.events import ParamValue
from hostbench.models.result import TrialRecord

# What a program replaces by the best it finds.
BEST = "best"
# And by what works here: with another engine or path a trial would measure something else.
_LEFT_OPEN = frozenset({"engine", "send_path", "receive_path", "udp_path"})
_AUTO = "auto"


def settled(
    params: Mapping[str, ParamValue], trials: Sequence[TrialRecord]
) -> dict[str, ParamValue]:
    """What `best` (of an engine: `auto`) became in the first of a case's trials, for the later
    ones: where two choices are about equal each trial might take another, and they would not
    measure the same."""
    start = next((trial.start for trial in trials if trial.start), None)
    if start is None:
        return {}
    return {
        name: chosen
        for name, asked in params.items()
        if (asked == BEST or (asked == _AUTO and name in _LEFT_OPEN))
        and isinstance(chosen := start.params.get(name), str | int | float)
    }


def trials_telling(
    metric: str,
    params: Mapping[str, ParamValue],
    trials: Sequence[TrialRecord],
    counted: Sequence[TrialRecord],
) -> Sequence[TrialRecord]:
    """The trials that the statistics of a metric are made from: all that count, or none if one of
    them has no figure. What the first trial found when it tried out what `best` is stands by
    itself: the later ones do not look for it again."""
    if all(_tells(trial, metric) for trial in counted):
        return counted
    first, later = trials[0], [trial for trial in counted if trial.index != trials[0].index]
    alone = _tells(first, metric) and not any(_tells(trial, metric) for trial in later)
    return (first,) if BEST in params.values() and alone else ()


def _tells(trial: TrialRecord, metric: str) -> bool:
    return trial.end is not None and trial.end.metrics.get(metric) is not None
