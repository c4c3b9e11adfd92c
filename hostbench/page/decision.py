"""The frame that the pages of decisions share: a question, its answer, and what it rests on."""

from collections.abc import Iterable, Sequence

from hostbench.model.baseline import HostWord
from hostbench.model.decision import Word
from hostbench.report.content import (
    Answer,
    Column,
    Facts,
    Narrow,
    Notice,
    Report,
    RowGroup,
    Section,
    Table,
    Text,
)


def decision_page(
    command: str,
    title: str,
    answer: Answer,
    sections: Iterable[Section],
    *,
    facts: Iterable[tuple[str, str]] = (),
    counts: Iterable[tuple[Word | HostWord, int]] = (),
    notices: Iterable[str] = (),
    more_answers: Iterable[Answer] = (),
) -> Report:
    """Return the page of a command. `counts` has how many figures or hosts have each word; words
    that none has are left out. `more_answers`: those to further questions."""
    return Report(
        kind=f"hostbench {command}",
        title=title,
        subtitle="",
        answer=(answer, *more_answers),
        facts=Facts(tuple(facts)),
        tally=tuple((word, count) for word, count in counts if count),
        notices=tuple(map(Notice, notices)),
        sections=tuple(sections),
    )


def plain_table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Text]],
    *,
    narrow: Narrow = "scrolls",
) -> Table:
    """Return a table whose rows are in one group."""
    return Table(caption, tuple(columns), (RowGroup(None, tuple(map(tuple, rows))),), narrow)


def capitalised(text: str) -> str:
    """Return a text that begins with a capital letter, unless it begins with a path."""
    return text if "/" in text.partition(" ")[0] else f"{text[0].upper()}{text[1:]}"
