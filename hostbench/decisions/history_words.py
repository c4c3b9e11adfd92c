"""Histories in sentences, the same in the terminal and on the page."""

from collections.abc import Iterator
from datetime import datetime

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.change_points import ASSUMED_AUTOCORRELATION, series_least
from hostbench.decisions.clock import clock_sentence
from hostbench.decisions.words import relative, values_words
from hostbench.model.decision import (
    ChangePoint,
    FactDifference,
    FigureKind,
    History,
    HostHistory,
    Word,
)

# How a reader of the terminal asks for the other figure of a case.
BY_OPTION = "--figure {}"


def day(unix_s: float) -> str:
    """Return a time such as `2026-11-20 14:30`, in this host's time zone."""
    return f"{datetime.fromtimestamp(unix_s).astimezone():%Y-%m-%d %H:%M}"


def history_headline(history: History) -> str:
    """Return a sentence such as `mem.triad on a, 40 jobs, undisturbed: changed once.`"""
    jobs = plural(len(history.points), "job")
    start = f"{history.title} on {history.host}, {jobs}, {history.kind}"
    if history.word is Word.UNDECIDED:
        least = series_least(history.confidence)
        return f"{start}: undecided: finding a change needs {least} jobs."
    if not history.changes:
        return f"{start}: no change found."
    return f"{start}: changed {_times(len(history.changes))}."


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def change_sentence(change: ChangePoint, unit: str) -> str:
    """Return one change point in one line."""
    before, after = human(change.value_before, unit), human(change.value_after, unit)
    low, high = relative(change.low).removesuffix(" %"), relative(change.high)
    return (
        f"{day(change.created_unix_s)} {change.word} {relative(change.ratio)} ({low} to "
        f"{high}): {before} in {plural(change.jobs_before, 'job')} before, {after} in "
        f"{change.jobs_after} from {change.job} on; changes of "
        f"{percent(change.least_effect_ratio)} or more would show"
    )


def fact_change(difference: FactDifference) -> str:
    """Return a text such as `kernel: 6.1.0 before, 6.8.0 after`."""
    before, after = values_words(difference.a), values_words(difference.b)
    return f"{difference.fact}: {before} before, {after} after"


def history_remarks(history: History) -> Iterator[str]:
    """Yield what would have been seen, and what is missing."""
    if history.least_effect_ratio is not None and history.least_effect_jobs is not None:
        yield (
            f"Changes of {percent(history.least_effect_ratio)} or more would show with "
            f"{history.least_effect_jobs} jobs on each side."
        )
    for why in history.left_out:
        yield f"{why}."
    shown = history.autocorrelation
    if shown is not None and shown > ASSUMED_AUTOCORRELATION:
        yield (
            f"Neighbouring jobs have an autocorrelation of {shown:.1f}: the host drifts, and a "
            "change may be part of the drift. Jobs further apart give more evidence."
        )
    if history.clock_went_back:
        yield clock_sentence(
            history.clock_went_back,
            "the jobs are in the order of their time stamps, which may differ from the order "
            "in which they were measured.",
        )


def error_sentences(found: HostHistory, other: str = BY_OPTION) -> Iterator[str]:
    """Yield how often such words are wrong, and how to see the other figure. `other`: how its
    reader asks for one, with {} for its name."""
    known = [history for history in found.histories if history.points]
    if not known:
        return
    error = bound(round(1 - found.confidence, 3))
    kinds = {history.kind for history in known}
    what = "such histories show a change"
    if len(found.histories) > 1:
        what = f"such answers, of {len(found.histories)} histories together, show a change"
    what += f", as long as neighbouring jobs correlate by {ASSUMED_AUTOCORRELATION:g} at most"
    more = ""
    if len(kinds) == 1:
        left = next(kind for kind in FigureKind if kind not in kinds)
        more = f" The {left} figure: {other.format(left)}."
    yield f"Error rate: if nothing changed, at most {error} of {what}.{more}"
