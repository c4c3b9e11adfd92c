"""Comparisons in sentences, the same in the terminal, in Markdown and on the page."""

from collections import Counter
from collections.abc import Iterator

from hostbench.base.units import bound, percent, plural
from hostbench.decisions.change import MORE_MOST
from hostbench.decisions.clock import clock_sentence
from hostbench.model.decision import (
    CaseChange,
    Change,
    Comparison,
    FactDifference,
    FigureKind,
    Side,
    Word,
)

MINUS, DASH = "−", "–"
# With hundreds of jobs, what distinguishes two of them does not matter.
JOBS_NAMED = 2
VALUES_NAMED = 3
# In which order figures are listed: a reader looks for what changed.
CHANGED_FIRST = (Word.WORSE, Word.BETTER, Word.UNDECIDED, Word.NOT_COMPARABLE, Word.SAME)


def relative(ratio: float) -> str:
    """Return `+3.1 %` for 1.031 and `−2.4 %` for 0.976; with two digits below one percent."""
    share = ratio - 1
    digits = 2 if abs(share) < 0.01 else 1
    text = f"{abs(share) * 100:.{digits}f} %"
    return text if not float(text.split()[0]) else f"{'+' if share > 0 else MINUS}{text}"


def interval(change: Change) -> str:
    """Return a text such as `−5.3 to −4.7 %`."""
    if change.low is None or change.high is None:
        return DASH
    return f"{relative(change.low).removesuffix(' %')} to {relative(change.high)}"


def side_words(side: Side) -> str:
    """Return a text such as `latest: 1 job of a, 2026…`."""
    jobs = f"{plural(len(side.jobs), 'job')} of {' and '.join(side.hosts)}"
    first, last = side.jobs[0], side.jobs[-1]
    span = first if first == last else f"{first} to {last}"
    # A name that only lists the jobs says nothing more, and may be very long.
    listed = {part.strip() for part in side.name.split(",")} == set(side.jobs)
    return f"{jobs}, {span}" if listed else f"{side.name}: {jobs}, {span}"


def headline(comparison: Comparison) -> str:
    """Return the result in one sentence: `worse: of 47 cases 2 are worse, 44 same, 1 undecided.`"""
    counts = Counter(case.word for case in comparison.cases)
    parts = [f"{counts[word]} {word}" for word in Word if counts[word]]
    return f"{comparison.word}: of {plural(len(comparison.cases), 'case')} {', '.join(parts)}."


def kinds_sentence(comparison: Comparison) -> str | None:
    """Return which of the two figures changed, if only one did."""
    changed: dict[FigureKind, int] = {
        kind: sum(
            kind in case.changes and case.changes[kind].word in (Word.WORSE, Word.BETTER)
            for case in comparison.cases
        )
        for kind in FigureKind
    }
    undisturbed, delivered = changed[FigureKind.UNDISTURBED], changed[FigureKind.DELIVERED]
    both = any(len(case.changes) > 1 for case in comparison.cases)
    if delivered and not undisturbed and both:
        return (
            "Only delivered figures changed: other load or a quota takes a different share of the "
            "hardware, whose undisturbed figures show no change."
        )
    if undisturbed and not delivered and both:
        return "Only undisturbed figures changed: other load hides the change in delivered ones."
    return None


def fact_sentence(difference: FactDifference) -> str:
    """Return a text such as `kernel: 6.1.0 on A, 6.8.0 on B`."""
    return (
        f"{difference.fact}: {values_words(difference.a)} on A, {values_words(difference.b)} on B"
    )


def values_words(values: tuple[str, ...]) -> str:
    """Return a text such as `6.1.0 or 6.8.0`, or `unknown` if no job has a value."""
    if not values:
        return "unknown"
    more = f" and {len(values) - VALUES_NAMED} others" if len(values) > VALUES_NAMED else ""
    return " or ".join(values[:VALUES_NAMED]) + more


def rows_of(case: CaseChange) -> Iterator[tuple[str, Change]]:
    """Yield the changes of a case to show, each with an addition to its title: only the undisturbed
    one if both figures have the same word."""
    changes = list(case.changes.items())
    if len({one.word for _, one in changes}) == 1:
        yield "", changes[0][1]
        return
    for kind, one in changes:
        yield f" ({kind})", one


def notices(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader must know before the figures."""
    if set(comparison.a.hosts) != set(comparison.b.hosts):
        # The unit of evidence between models is the host, and a side seldom has several.
        yield (
            "The sides are of different hosts: the words are about these hosts, not about their "
            "models."
        )
    if (sentence := kinds_sentence(comparison)) is not None:
        yield sentence
    if comparison.clock_went_back:
        yield clock_sentence(
            comparison.clock_went_back,
            "the order in which the sides were measured is unknown, so intervals of a virtual "
            "machine include the drift between two moments.",
        )


def undecided_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield what would decide the undecided figures."""
    undecided = [
        one
        for case in comparison.cases
        for one in case.changes.values()
        if one.word is Word.UNDECIDED
    ]
    for reason in dict.fromkeys(one.reason for one in undecided if one.reason):
        yield f"Undecided: {reason}."
    least = sorted(one.least_effect_ratio for one in undecided if one.least_effect_ratio)
    if least:
        widest = percent(least[-1])
        most = f" (the least precise: {widest} or more)" if widest != percent(least[0]) else ""
        yield f"The undecided figures would show changes of {percent(least[0])} or more{most}."
    judged = [one for one in undecided if one.reason is None]
    more = sorted(one.more for one in judged if one.more is not None)
    if more:
        some = "them" if len(more) == len(undecided) else f"{len(more)} of these {len(undecided)}"
        half = more[(len(more) - 1) // 2]
        yield (
            f"About {half} more jobs on each side would decide half of {some}, about {more[-1]} "
            "all."
            if more[-1] > half
            else f"About {half} more jobs on each side would decide {some}."
        )
    if too_many := len(judged) - len(more):
        yield (
            f"{plural(too_many, 'undecided figure')} would need more than {MORE_MOST} more jobs on "
            "each side: alternate the sides or spread the jobs over days; for a setting, "
            "hostbench ab shows smaller changes."
        )


def not_comparable_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield why cases could not be compared, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for case in comparison.cases:
        if case.reason:
            by_reason.setdefault(case.reason, []).append(case.title)
    for reason, titles in by_reason.items():
        named = ", ".join(titles[:VALUES_NAMED])
        more = f" and {len(titles) - VALUES_NAMED} others" if len(titles) > VALUES_NAMED else ""
        yield f"Not comparable: {reason} ({named}{more})."
    if comparison.word is Word.NOT_COMPARABLE:
        yield (
            "Compare jobs that have clean or noisy cases in common; hostbench doctor shows "
            "what disturbs a host."
        )


def error_sentence(comparison: Comparison) -> str:
    """Return how often such words are wrong."""
    wrong = 1 - comparison.confidence
    earlier = ""
    if comparison.earlier:
        jobs = plural(comparison.earlier, "other job")
        earlier = f" The spread between jobs comes from {jobs} of the same hosts."
    return (
        f"Error rate: if nothing changed, at most {bound(round(wrong, 3))} of comparisons call "
        f"any figure better or worse.{earlier}"
    )
