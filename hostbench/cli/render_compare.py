"""A comparison as a table for people."""

from typing import TextIO

from rich.table import Table
from rich.text import Text

from hostbench.base.units import full_sentence, human
from hostbench.cli.render_list import console_for
from hostbench.decisions.words import (
    CHANGED_FIRST,
    error_sentence,
    fact_sentence,
    headline,
    interval,
    not_comparable_sentences,
    notices,
    relative,
    rows_of,
    side_words,
    undecided_sentences,
)
from hostbench.model.decision import Comparison, Word

STYLES = {
    Word.WORSE: "bold red",
    Word.UNDECIDED: "yellow",
    Word.NOT_COMPARABLE: "dim",
    Word.BETTER: "green",
    Word.SAME: "",
}
# If more figures than this are the same, they are only counted; --json and the page have every row.
SAME_SHOWN = 20
FACTS_SHOWN = 12


def show_comparison(comparison: Comparison, stream: TextIO) -> None:
    """Print the result, the facts that differ, the figures, those that changed first, and what
    would decide the undecided ones."""
    console = console_for(stream)
    console.print(headline(comparison), style=STYLES[comparison.word])
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        console.print(f"{name} {side_words(side)}")
    for sentence in notices(comparison):
        console.print(sentence)
    for fact in comparison.facts[:FACTS_SHOWN]:
        console.print(f"  {fact_sentence(fact)}")
    if (more := len(comparison.facts) - FACTS_SHOWN) > 0:
        console.print(f"  and {more} more facts that differ: --json")
    table, same = _table(comparison)
    if table.row_count:
        console.print(table)
    if same:
        console.print(f"{same} more are the same.")
    for sentence in (*undecided_sentences(comparison), *not_comparable_sentences(comparison)):
        console.print(full_sentence(sentence))
    console.print(error_sentence(comparison))


def _table(comparison: Comparison) -> tuple[Table, int]:
    """Return the rows, and how many of the unchanged ones were left out."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("case", overflow="fold")
    for name in ("A", "B", "change", "interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("word", no_wrap=True)
    rows = [
        (case, added, one)
        for case in comparison.cases
        for added, one in (rows_of(case) if case.changes else ())
    ]
    rows.sort(key=lambda row: CHANGED_FIRST.index(row[2].word))
    shown = 0
    for case, added, one in rows:
        if one.word is Word.SAME and shown >= SAME_SHOWN:
            continue
        shown += 1
        table.add_row(
            Text(case.title + added),
            human(one.value_a, case.unit),
            human(one.value_b, case.unit),
            relative(one.ratio) if one.ratio is not None else "–",
            interval(one),
            Text(one.word, style=STYLES[one.word]),
        )
    return table, len(rows) - shown
