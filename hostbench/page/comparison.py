"""Comparisons as content: a page, or Markdown for a pull request."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from hostbench.base.units import human, percent, plural
from hostbench.decisions.words import (
    CHANGED_FIRST,
    DASH,
    error_sentence,
    headline,
    interval,
    not_comparable_sentences,
    notices,
    relative,
    rows_of,
    side_words,
    undecided_sentences,
    values_words,
)
from hostbench.model.decision import CaseChange, Change, Comparison, Word
from hostbench.page.decision import capitalised, decision_page, plain_table
from hostbench.report.content import (
    Answer,
    AnswerKind,
    Block,
    Bullets,
    Chart,
    Column,
    Commands,
    Fold,
    ForestChart,
    ForestRow,
    Mark,
    Paragraph,
    Report,
    Section,
    Table,
    Text,
    Workload,
)

QUESTION = "Did it change?"
ROWS_DRAWN = 60
ITEMS_SHOWN = 5
_KINDS = {
    Word.WORSE: AnswerKind.BAD,
    Word.UNDECIDED: AnswerKind.DOUBTFUL,
    Word.NOT_COMPARABLE: AnswerKind.OPEN,
    Word.BETTER: AnswerKind.GOOD,
    Word.SAME: AnswerKind.GOOD,
}
_COLUMNS = (
    Column("case"),
    Column("A", figures=True),
    Column("B", figures=True),
    Column("change", figures=True),
    Column("interval", figures=True),
    Column("smallest found", figures=True),
    Column("word"),
)
# By case, the commands that measure it again.
Repeats = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class FigureRow:
    """A figure of a case; `title` names both. `change` None: the case is not comparable."""

    case: CaseChange
    title: str
    change: Change | None

    @property
    def word(self) -> Word:
        """The word of the figure."""
        return self.case.word if self.change is None else self.change.word

    @property
    def ratio(self) -> float:
        """B over A; 1 where it is unknown."""
        return 1.0 if self.change is None else self.change.ratio or 1.0


@dataclass(frozen=True)
class Excerpt:
    """What one of several pages of a comparison shows: some of its figures, and how to measure
    their cases again."""

    rows: Sequence[FigureRow]
    repeats: Repeats


def figure_rows(comparison: Comparison) -> list[FigureRow]:
    """Return all figures: first those that changed, the largest changes before the others."""
    rows = [
        row
        for case in comparison.cases
        for row in (
            [FigureRow(case, case.title + added, one) for added, one in rows_of(case)]
            if case.changes
            else [FigureRow(case, case.title, None)]
        )
    ]
    return sorted(rows, key=lambda row: (CHANGED_FIRST.index(row.word), -abs(row.ratio - 1)))


def comparison_report(comparisons: Sequence[Comparison], excerpt: Excerpt | None = None) -> Report:
    """Return the report of sides B, C … each compared with the same side A. `excerpt`: of a single
    comparison, the figures to list; None: all."""
    first = comparisons[0]
    names = (first.a.name, *(one.b.name for one in comparisons))
    sides = (first.a, *(one.b for one in comparisons))
    words = Counter(case.word for one in comparisons for case in one.cases)
    several = len(comparisons) > 1
    return decision_page(
        "compare",
        f"{names[0]} compared with {', '.join(names[1:])}",
        _answer(comparisons),
        (
            section
            for number, one in enumerate(comparisons)
            for section in _sections(one, str(number) if several else "", excerpt)
        ),
        facts=(
            (f"side {letter}", side_words(side))
            for letter, side in zip(ascii_uppercase, sides, strict=False)
        ),
        counts=((word, words[word]) for word in Word),
        notices=(text for one in comparisons for text in notices(one)),
    )


def _answer(comparisons: Sequence[Comparison]) -> Answer:
    """Return the result, and the figures that changed, the worst first."""
    several = len(comparisons) > 1
    texts = [f"{one.b.name} {headline(one)}" if several else headline(one) for one in comparisons]
    text = " ".join(texts)
    order = list(Word)
    word = min((one.word for one in comparisons), key=order.index)
    changed = [
        (row, row.change)
        for compared in comparisons
        for row in figure_rows(compared)
        if row.change is not None and row.word in (Word.WORSE, Word.BETTER)
    ]
    items = tuple(
        (
            f"{row.title}: {relative(row.ratio)}, {row.word}.",
            f"{human(one.value_a, row.case.unit)} on A, {human(one.value_b, row.case.unit)} on B; "
            f"interval {interval(one)}.",
        )
        for row, one in changed[:ITEMS_SHOWN]
    )
    return Answer(QUESTION, capitalised(text), _KINDS[word], items)


def _sections(comparison: Comparison, number: str, excerpt: Excerpt | None) -> Iterator[Section]:
    added = f": {comparison.b.name}" if number else ""
    yield Section(f"figures{number}", f"Figures{added}", tuple(_figures(comparison, excerpt)))
    if comparison.facts:
        yield Section(f"facts{number}", f"What else differs{added}", (_facts(comparison),))
    sure = Paragraph(error_sentence(comparison))
    yield Section(f"sure{number}", f"How sure this is{added}", (sure,))


def _figures(comparison: Comparison, excerpt: Excerpt | None) -> Iterator[Block]:
    rows = figure_rows(comparison) if excerpt is None else excerpt.rows
    repeats = {} if excerpt is None else excerpt.repeats
    changed = [row for row in rows if row.word is not Word.SAME]
    same = [row for row in rows if row.word is Word.SAME]
    drawn = [(row, row.change) for row in rows if row.change is not None]
    if drawn:
        yield _chart(drawn[:ROWS_DRAWN], len(drawn))
    if changed:
        caption = "Figures that are not the same, those that changed first"
        yield _table(caption, changed, repeats)
    if same:
        table = _table("Figures that are the same", same, repeats)
        yield Fold(f"{plural(len(same), 'figure')} the same", (table,), on_paper=True)
    remarks = (*undecided_sentences(comparison), *not_comparable_sentences(comparison))
    if remarks:
        yield Bullets(remarks)


def _chart(rows: Sequence[tuple[FigureRow, Change]], count: int) -> Chart:
    drawn = tuple(
        ForestRow(
            label=row.title,
            ratio=row.ratio,
            low=one.low,
            high=one.high,
            margin=one.margin,
            remark=f"{relative(row.ratio)} {row.word}",
            stands_out=row.word is Word.WORSE,
        )
        for row, one in rows
    )
    more = f" Of {count} figures the first {len(rows)}." if count > len(rows) else ""
    return Chart(
        title="Change from A to B",
        description=(
            "Same: the interval lies within the margin. Better, worse: the interval excludes 0 % "
            "and leaves the margin. A mark without a line has no interval: the spread between jobs "
            f"is unknown.{more}"
        ),
        drawing=ForestChart(drawn),
    )


def _table(caption: str, rows: Sequence[FigureRow], repeats: Repeats) -> Table:
    return plain_table(
        caption,
        (*_COLUMNS, Column("repeat")) if repeats else _COLUMNS,
        (
            (
                _named(row),
                *_numbers(row),
                Mark(row.word),
                *([_repeat(row, repeats)] if repeats else ()),
            )
            for row in rows
        ),
    )


def _named(row: FigureRow) -> Text:
    workload, _, rest = row.title.partition(" ")
    return Workload(workload), f" {rest}"


def _numbers(row: FigureRow) -> tuple[str, ...]:
    """Return the figures of both sides, the change, its interval and the least that shows."""
    one, unit = row.change, row.case.unit
    if one is None:
        return (DASH,) * 5
    return (
        human(one.value_a, unit),
        human(one.value_b, unit),
        relative(one.ratio) if one.ratio is not None else DASH,
        interval(one),
        _least(one),
    )


def _repeat(row: FigureRow, repeats: Repeats) -> Text:
    found = repeats.get(row.case.case)
    return DASH if found is None else Commands(row.title, found)


def _least(change: Change) -> str:
    least = change.least_effect_ratio
    return DASH if least is None else f"≥ {percent(least)}"


def _facts(comparison: Comparison) -> Table:
    return plain_table(
        "Facts of host and programs that differ between the sides",
        (Column("fact"), Column("A"), Column("B")),
        ((one.fact, values_words(one.a), values_words(one.b)) for one in comparison.facts),
    )
