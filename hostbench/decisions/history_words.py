"""Histories in sentences, the same in the terminal and on the page."""

from collections.abc import Iterator
from datetime import datetime

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.change_points import ASSUMED_AUTOCORRELATION, SERIES_LEAST
from hostbench.decisions.words import relative, values_words
from hostbench.model.decision import ChangePoint, FactDifference, FigureKind, History, Word

JOBS_NAMED = 3


def day(unix_s: float) -> str:
    """`2026-11-20 14:30`, in this host's time."""
    return f"{datetime.fromtimestamp(unix_s).astimezone():%Y-%m-%d %H:%M}"


def history_headline(history: History) -> str:
    """`mem.triad on a, 40 jobs, undisturbed: changed once.`"""
    jobs = plural(len(history.points), "job")
    start = f"{history.title} on {history.host}, {jobs}, {history.kind}"
    if history.word is Word.UNDECIDED:
        return f"{start}: undecided, since changes are told from {SERIES_LEAST} jobs on."
    if not history.changes:
        return f"{start}: no change found."
    return f"{start}: changed {_times(len(history.changes))}."


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def change_sentence(change: ChangePoint, unit: str) -> str:
    """One change point in a line."""
    before, after = human(change.value_before, unit), human(change.value_after, unit)
    low, high = relative(change.low).removesuffix(" %"), relative(change.high)
    return (
        f"{day(change.created_unix_s)} {change.word} {relative(change.ratio)} ({low} to {high}): "
        f"{before} in {plural(change.jobs_before, 'job')} before, {after} in {change.jobs_after} "
        f"from {change.job} on; at least {percent(change.least_effect_ratio)} would have been seen"
    )


def fact_change(difference: FactDifference) -> str:
    """`kernel: 6.1.0 before, 6.8.0 after`."""
    before, after = values_words(difference.a), values_words(difference.b)
    return f"{difference.fact}: {before} before, {after} after"


def history_remarks(history: History) -> Iterator[str]:
    """What would have been seen, what is missing, and how often such words are wrong."""
    if history.least_effect_ratio is not None and history.least_effect_jobs is not None:
        yield (
            f"A change of {percent(history.least_effect_ratio)} with {history.least_effect_jobs} "
            "jobs on each side would have been seen."
        )
    for why in history.left_out:
        yield f"{why}."
    shown = history.autocorrelation
    if shown is not None and shown > ASSUMED_AUTOCORRELATION:
        yield (
            f"Neighbouring jobs have an autocorrelation of {shown:.1f}: the host drifts, and a "
            "change may be a part of that. Jobs further apart tell more."
        )
    if went_back := history.clock_went_back:
        more = len(went_back) - JOBS_NAMED
        others = f" and {more} others" if more > 0 else ""
        yield (
            "The clock of the host went backwards before "
            f"{', '.join(went_back[:JOBS_NAMED])}{others}: the jobs are in the order of their "
            "times, which may not be that in which they were measured."
        )
    if history.points:
        other = next(kind for kind in FigureKind if kind is not history.kind)
        yield (
            f"Where nothing changed, at most {bound(round(1 - history.confidence, 3))} of such "
            "histories show a change, for an autocorrelation of neighbouring jobs up to "
            f"{ASSUMED_AUTOCORRELATION:g}. The {other} figure has a history of its own: "
            f"--figure {other}."
        )
