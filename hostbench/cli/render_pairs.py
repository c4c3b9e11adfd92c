"""The network between hosts as a table for people."""

from typing import TextIO

from rich.table import Table
from rich.text import Text

from hostbench.cli.render_list import console_for
from hostbench.decisions.pair_words import (
    at_once_sentence,
    base_sentence,
    conspicuous,
    coverage_sentence,
    error_sentence,
    headline,
    locks_sentence,
    named,
    next_sentence,
    rack_sentences,
    round_words,
    suspect_links_sentence,
)
from hostbench.decisions.words import relative
from hostbench.model.pairs import Judged, PairMatrix, PairWord

STYLES = {
    PairWord.SLOW: "bold red",
    PairWord.SUSPECT: "yellow",
    PairWord.UNKNOWN: "dim",
    PairWord.AS_EXPECTED: "",
}
ROWS_SHOWN, ROUNDS_SHOWN = 40, 4


def show_pairs(matrix: PairMatrix, stream: TextIO) -> None:
    """Print the result, what is slow and suspect, how sure that is, and what to measure next."""
    console = console_for(stream)
    found = conspicuous(matrix)
    style = STYLES[found[0].word] if found else ""
    console.print(headline(matrix), style=style)
    console.print(base_sentence(matrix))
    if found:
        console.print(_table(found[:ROWS_SHOWN]))
    if (more := len(found) - ROWS_SHOWN) > 0:
        console.print(f"and {more} more: --json")
    for sentence in (
        *rack_sentences(matrix),
        *map(at_once_sentence, matrix.at_once),
        suspect_links_sentence(matrix),
        coverage_sentence(matrix),
        error_sentence(matrix),
        locks_sentence(matrix),
    ):
        if sentence is not None:
            console.print(sentence)
    for left_out in matrix.left_out:
        console.print(f"not used: {left_out}")
    what_next = next_sentence(matrix)
    if what_next is not None:
        console.print(what_next)
        for number, one in enumerate(matrix.next_rounds[:ROUNDS_SHOWN], start=1):
            console.print(f"round {number}: {round_words(one.pairs)}")
        if (more := len(matrix.next_rounds) - ROUNDS_SHOWN) > 0:
            console.print(f"and {more} more: --json has all of them")


def _table(found: list[Judged]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("what")
    for column in ("beside the others", "measured"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("word", no_wrap=True)
    for one in found:
        table.add_row(
            named(one),
            relative(one.ratio),
            str(one.measured),
            Text(one.word, style=STYLES[one.word]),
        )
    return table
