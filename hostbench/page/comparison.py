"""Comparisons as a page: content for the renderers of the report."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import human, percent
from hostbench.decisions.words import (
    DASH,
    error_sentence,
    headline,
    interval,
    kinds_sentence,
    not_comparable_sentences,
    relative,
    rows_of,
    side_words,
    undecided_sentences,
    values_words,
)
from hostbench.judge.case import full_sentence
from hostbench.model.decision import CaseChange, Change, Comparison, Word
from hostbench.report.content import (
    Block,
    Bullets,
    Chart,
    Code,
    Column,
    Facts,
    Fold,
    Notice,
    Paragraph,
    RatioChart,
    RatioRow,
    Report,
    RowGroup,
    Section,
    Strong,
    Table,
    Text,
)

# A page is to open at once; the table has them all.
ROWS_DRAWN_MOST = 60
# Rows that are the same are folded where there are more.
SAME_SHOWN = 10
_COLUMNS = (
    Column("case"),
    Column("A", figures=True),
    Column("B", figures=True),
    Column("change", figures=True),
    Column("interval", figures=True),
    Column("word"),
    Column("least change seen", figures=True),
    Column("jobs", figures=True),
)
_FACTS = (Column("fact"), Column("A"), Column("B"))
Row = tuple[CaseChange, str, Change]


def comparison_page(comparisons: Sequence[Comparison]) -> Report:
    """A page of one side beside others."""
    first = comparisons[0]
    sections = [
        section
        for number, one in enumerate(comparisons, start=1)
        for section in _sections(one, f"-{number}" if len(comparisons) > 1 else "")
    ]
    hosts = dict.fromkeys(host for one in comparisons for host in (*one.a.hosts, *one.b.hosts))
    notices = tuple(
        Notice((Strong(str(one.word)), headline(one).removeprefix(str(one.word))), _is_serious(one))
        for one in comparisons
    )
    return Report(
        title=f"{first.a.name} beside {', '.join(one.b.name for one in comparisons)}",
        subtitle=f"on {' and '.join(hosts)}",
        facts=Facts(
            (
                ("A", side_words(first.a)),
                *((f"B{_number(comparisons, one)}", side_words(one.b)) for one in comparisons),
            )
        ),
        tally=(),
        notices=notices,
        sections=tuple(sections),
        kind="comparison",
    )


def _number(comparisons: Sequence[Comparison], one: Comparison) -> str:
    return f" {comparisons.index(one) + 1}" if len(comparisons) > 1 else ""


def _is_serious(comparison: Comparison) -> bool:
    return comparison.word is Word.WORSE


def _sections(comparison: Comparison, suffix: str) -> Iterator[Section]:
    of = f" of {comparison.b.name}" if suffix else ""
    order = list(Word)
    rows = [
        (case, added, one)
        for case in comparison.cases
        for added, one in (rows_of(case) if case.changes else ())
    ]
    rows.sort(key=lambda row: order.index(row[2].word))
    yield Section(f"figures{suffix}", f"Figures{of}", tuple(_figures(comparison, rows)))
    if comparison.facts:
        table = Table(
            "Facts of host and programs that are not the same",
            _FACTS,
            (
                RowGroup(
                    None,
                    tuple(
                        (one.fact, values_words(one.a), values_words(one.b))
                        for one in comparison.facts
                    ),
                ),
            ),
        )
        yield Section(f"facts{suffix}", f"What else differs{of}", (table,))
    yield Section(f"jobs{suffix}", f"Jobs{of}", (_jobs(comparison),), in_brief=False)


def _figures(comparison: Comparison, rows: Sequence[Row]) -> Iterator[Block]:
    if (sentence := kinds_sentence(comparison)) is not None:
        yield Paragraph(sentence)
    drawn = tuple(
        RatioRow(
            label=case.title + added,
            ratio=one.ratio,
            low=one.low,
            high=one.high,
            margin=one.margin,
            word=f"{relative(one.ratio)} {one.word}",
            stands_out=one.word is Word.WORSE,
        )
        for case, added, one in rows[:ROWS_DRAWN_MOST]
        if one.ratio is not None
    )
    if drawn:
        yield Chart(
            "B over A, the worst first",
            "Each dot is the median of B's jobs over that of A's, with the interval that holds the "
            "true ratio. Of rates more is better, of times less.",
            RatioChart(drawn),
        )
    others = [row for row in rows if row[2].word is not Word.SAME]
    same = [row for row in rows if row[2].word is Word.SAME]
    if others or len(same) <= SAME_SHOWN:
        shown = rows if len(same) <= SAME_SHOWN else others
        yield _table("Figures of both sides", shown)
    if len(same) > SAME_SHOWN:
        yield Fold(f"{len(same)} that are the same", (_table("Figures that are the same", same),))
    sentences = (*undecided_sentences(comparison), *not_comparable_sentences(comparison))
    if sentences:
        yield Bullets(tuple(full_sentence(sentence) for sentence in sentences))
    yield Paragraph(error_sentence(comparison))


def _table(caption: str, rows: Sequence[Row]) -> Table:
    return Table(caption, _COLUMNS, (RowGroup(None, tuple(_cells(*row) for row in rows)),))


def _cells(case: CaseChange, added: str, one: Change) -> tuple[Text, ...]:
    word: Text = Strong(one.word) if one.word in (Word.WORSE, Word.BETTER) else str(one.word)
    return (
        case.title + added,
        human(one.value_a, case.unit),
        human(one.value_b, case.unit),
        DASH if one.ratio is None else relative(one.ratio),
        interval(one),
        word,
        percent(one.least_effect_ratio),
        f"{one.jobs_a} and {one.jobs_b}",
    )


def _jobs(comparison: Comparison) -> Block:
    return Facts(
        tuple(
            (name, tuple(part for job in side.jobs for part in (Code(job), " ")))
            for name, side in (("A", comparison.a), ("B", comparison.b))
        )
    )
