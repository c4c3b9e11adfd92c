"""Comparisons as content: a page, or Markdown for a pull request."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase

from hostbench.base.units import human, percent, plural
from hostbench.decisions.words import (
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
from hostbench.page.decision import decision_page, plain_table, sentence
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
_Row = tuple[CaseChange, str, Change]
# By case, the commands that measure it again.
Repeats = Mapping[str, tuple[str, ...]]


def comparison_report(comparisons: Sequence[Comparison], repeats: Repeats | None = None) -> Report:
    """Return the report of sides B, C … each compared with the same side A."""
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
            for section in _sections(one, str(number) if several else "", repeats or {})
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
        row for one in comparisons for row in _rows(one) if row[2].word in (Word.WORSE, Word.BETTER)
    ]
    items = tuple(
        (
            f"{case.title}{added}: {relative(one.ratio or 1.0)}, {one.word}.",
            f"{human(one.value_a, case.unit)} on A, {human(one.value_b, case.unit)} on B; "
            f"interval {interval(one)}.",
        )
        for case, added, one in changed[:ITEMS_SHOWN]
    )
    return Answer(QUESTION, sentence(text), _KINDS[word], items)


def _rows(comparison: Comparison) -> list[_Row]:
    """Return all figures: first those that are not the same, the largest changes before the
    others."""
    order = list(Word)
    rows = [
        (case, added, one)
        for case in comparison.cases
        for added, one in (rows_of(case) if case.changes else ())
    ]
    return sorted(rows, key=lambda row: (order.index(row[2].word), -abs((row[2].ratio or 1.0) - 1)))


def _sections(comparison: Comparison, number: str, repeats: Repeats) -> Iterator[Section]:
    added = f": {comparison.b.name}" if number else ""
    yield Section(f"figures{number}", f"Figures{added}", tuple(_figures(comparison, repeats)))
    if comparison.facts:
        yield Section(f"facts{number}", f"What else differs{added}", (_facts(comparison),))
    sure = Paragraph(error_sentence(comparison))
    yield Section(f"sure{number}", f"How sure this is{added}", (sure,))


def _figures(comparison: Comparison, repeats: Repeats) -> Iterator[Block]:
    rows = _rows(comparison)
    changed = [row for row in rows if row[2].word is not Word.SAME]
    same = [row for row in rows if row[2].word is Word.SAME]
    if rows:
        yield _chart(rows[:ROWS_DRAWN], len(rows))
    if changed:
        yield _table("Figures that are not the same, the worst first", changed, repeats)
    if same:
        table = _table("Figures that are the same", same, repeats)
        yield Fold(f"{plural(len(same), 'figure')} the same", (table,), on_paper=True)
    remarks = (*undecided_sentences(comparison), *not_comparable_sentences(comparison))
    if remarks:
        yield Bullets(remarks)


def _chart(rows: Sequence[_Row], count: int) -> Chart:
    drawn = tuple(
        ForestRow(
            label=case.title + added,
            ratio=one.ratio or 1.0,
            low=one.low,
            high=one.high,
            margin=one.margin,
            remark=f"{relative(one.ratio or 1.0)} {one.word}",
            stands_out=one.word is Word.WORSE,
        )
        for case, added, one in rows
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


def _table(caption: str, rows: Sequence[_Row], repeats: Repeats) -> Table:
    return plain_table(
        caption,
        (*_COLUMNS, Column("repeat")) if repeats else _COLUMNS,
        (
            (
                case.title + added,
                human(one.value_a, case.unit),
                human(one.value_b, case.unit),
                relative(one.ratio) if one.ratio is not None else DASH,
                interval(one),
                _least(one),
                Mark(one.word),
                *([_repeat(case, added, repeats)] if repeats else ()),
            )
            for case, added, one in rows
        ),
    )


def _repeat(case: CaseChange, added: str, repeats: Repeats) -> Text:
    found = repeats.get(case.case)
    return DASH if found is None else Commands(case.title + added, found)


def _least(change: Change) -> str:
    least = change.least_effect_ratio
    return DASH if least is None else f"≥ {percent(least)}"


def _facts(comparison: Comparison) -> Table:
    return plain_table(
        "Facts of host and programs that differ between the sides",
        (Column("fact"), Column("A"), Column("B")),
        ((one.fact, values_words(one.a), values_words(one.b)) for one in comparison.facts),
    )
