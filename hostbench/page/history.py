"""A history as content of a page."""

import itertools
import statistics

from hostbench.base.units import human, percent, plural
from hostbench.decisions.history_words import (
    BY_OPTION,
    day,
    error_sentences,
    fact_change,
    history_headline,
    history_remarks,
)
from hostbench.decisions.words import DASH, relative
from hostbench.model.baseline import FigureCheck
from hostbench.model.decision import ChangePoint, History, HistoryPoint, HostHistory, Word
from hostbench.page.decision import capitalised, decision_page, plain_table
from hostbench.report.content import (
    Answer,
    AnswerKind,
    Block,
    Bullets,
    Chart,
    Column,
    HistoryChart,
    JobId,
    Level,
    Mark,
    Paragraph,
    Part,
    Report,
    Section,
)

QUESTION = "Did it change?"
FACTS_NAMED = 3


def history_report(
    history: History, reference: FigureCheck | None = None, other: str = BY_OPTION
) -> Report:
    """Return the page of a history. `reference`: what other hosts of the model do; None:
    unknown. `other`: see error_sentences."""
    sections = [Section("time", "Over time", _over_time(history, reference))]
    if history.changes:
        sections.append(Section("changes", "What changed", _changes(history)))
    alone = HostHistory(host=history.host, histories=(history,))
    remarks = Bullets((*history_remarks(history), *error_sentences(alone, other)))
    if remarks.items:
        sections.append(Section("sure", "How sure this is", (remarks,)))
    title = f"{history.title} on {history.host}"
    return decision_page("history", title, _answer(history), sections, facts=_facts(history))


def _answer(history: History) -> Answer:
    """Return the result, and each change with the facts that changed there."""
    text = history_headline(history).partition(f", {history.kind}: ")[2]
    kind = AnswerKind.OPEN if history.word is Word.UNDECIDED else AnswerKind.GOOD
    if history.changes and history.changes[-1].word is Word.WORSE:
        kind = AnswerKind.BAD
    items = tuple(
        (
            f"{day(one.created_unix_s)}: {relative(one.ratio)}, {one.word}.",
            f"{human(one.value_before, history.unit)} before, "
            f"{human(one.value_after, history.unit)} after. "
            + " ".join(f"{fact_change(fact)}." for fact in one.facts[:FACTS_NAMED]),
        )
        for one in history.changes
    )
    return Answer(QUESTION, capitalised(text), kind, items)


def _facts(history: History) -> tuple[tuple[str, str], ...]:
    if not history.points:
        return ()
    first, last = history.points[0], history.points[-1]
    return (
        ("Jobs", str(len(history.points))),
        ("From", day(first.created_unix_s)),
        ("To", day(last.created_unix_s)),
        ("Figure", history.kind),
    )


def _over_time(history: History, reference: FigureCheck | None) -> tuple[Block, ...]:
    if not history.points:
        return (Paragraph("No job has a figure of this case that may be used."),)
    points = tuple((point.created_unix_s, point.value) for point in history.points)
    numbers = plain_table(
        "The figure of every job",
        (
            Column("begun"),
            Column("job"),
            Column("figure", figures=True),
            Column("interval", figures=True),
        ),
        (
            (
                day(point.created_unix_s),
                JobId(point.job),
                human(point.value, history.unit),
                _interval(point, history.unit),
            )
            for point in history.points
        ),
    )
    chart = Chart(
        title=f"{history.title}, {history.kind}",
        description=(
            "A dot for each job, at the time it began; the axis does not start at zero. Horizontal "
            "lines are medians between changes; the numbers are those of the changes below."
            + _references(history, reference)
        ),
        drawing=HistoryChart(
            unit=history.unit,
            points=points,
            levels=_levels(history),
            changes=tuple(change.created_unix_s for change in history.changes),
            intervals=tuple(_ends(point) for point in history.points),
            jobs=tuple(point.job for point in history.points),
            limit=history.limit,
            expected=_expected(history, reference),
        ),
        numbers=numbers,
    )
    return (chart,)


def _ends(point: HistoryPoint) -> tuple[float, float] | None:
    return None if point.low is None or point.high is None else (point.low, point.high)


def _interval(point: HistoryPoint, unit: str) -> str:
    ends = _ends(point)
    return DASH if ends is None else f"{human(ends[0], unit)} to {human(ends[1], unit)}"


def _expected(
    history: History, reference: FigureCheck | None
) -> tuple[float | None, float | None] | None:
    """Return the figures of sound hosts: above the tolerance limit, or for times below it."""
    if reference is None or reference.expected is None:
        return None
    edge = reference.expected
    return (edge, None) if history.direction == "higher" else (None, edge)


def _references(history: History, reference: FigureCheck | None) -> str:
    """Return what the figures are held against, in words: the axis may not reach it."""
    text = ""
    if history.limit is not None:
        text += f" Theoretical limit: {human(history.limit, history.unit)}."
    if reference is not None and reference.expected is not None:
        least = "At least" if history.direction == "higher" else "At most"
        text += (
            f" {least} {human(reference.expected, history.unit)} on sound hosts of the model "
            f"(baseline of {plural(reference.hosts, 'host')})."
        )
    return text


def _levels(history: History) -> tuple[Level, ...]:
    """Return the median of each run of jobs between changes."""
    starts = [0, *itertools.accumulate(change.jobs_before for change in history.changes)]
    ends = [*starts[1:], len(history.points)]
    runs = [history.points[start:end] for start, end in zip(starts, ends, strict=True)]
    return tuple(
        Level(
            first=run[0].created_unix_s,
            last=run[-1].created_unix_s,
            y=statistics.median(point.value for point in run),
        )
        for run in runs
    )


def _changes(history: History) -> tuple[Block, ...]:
    columns = (
        Column("begun"),
        Column("number"),
        Column("before", figures=True),
        Column("after", figures=True),
        Column("change", figures=True),
        Column("interval", figures=True),
        Column("smallest found", figures=True),
        Column("word"),
    )
    rows = tuple(
        (
            day(change.created_unix_s),
            str(number),
            human(change.value_before, history.unit),
            human(change.value_after, history.unit),
            relative(change.ratio),
            f"{relative(change.low).removesuffix(' %')} to {relative(change.high)}",
            f"≥ {percent(change.least_effect_ratio)}",
            Mark(change.word),
        )
        for number, change in enumerate(history.changes, start=1)
    )
    table = plain_table("Changes in the order of time", columns, rows)
    parts = (_facts_of(number, one) for number, one in enumerate(history.changes, start=1))
    return (table, *parts)


def _facts_of(number: int, change: ChangePoint) -> Part:
    jobs = f"{plural(change.jobs_before, 'job')} before, {change.jobs_after} from {change.job} on."
    facts: Block = (
        Bullets(tuple(fact_change(fact) for fact in change.facts))
        if change.facts
        else Paragraph("No recorded fact of the host or of hostbench changed there.")
    )
    return Part(f"At change {number}", (Paragraph(jobs), facts))
