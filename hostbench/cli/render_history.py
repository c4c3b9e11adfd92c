"""A history for people: a line of bars, one for each job, and a line for each change."""

import itertools
import statistics
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from hostbench.base.units import full_sentence, human
from hostbench.cli.render_compare import STYLES
from hostbench.cli.render_list import console_for
from hostbench.decisions.history_words import (
    change_sentence,
    error_sentences,
    fact_change,
    history_headline,
    history_remarks,
)
from hostbench.model.decision import History, HostHistory

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
COLUMNS_MOST = 72
FACTS_SHOWN = 12


def show_histories(found: HostHistory, stream: TextIO) -> None:
    """Print each history, and the error rate."""
    console = console_for(stream)
    for history in found.histories:
        _show(history, console, stream.encoding)
        if len(found.histories) > 1:
            console.print()
    if not found.histories:
        console.print(f"No job of {found.host} has a headline case; name a case.")
    for why in found.left_out:
        console.print(full_sentence(why))
    for sentence in error_sentences(found):
        console.print(sentence)


def _show(history: History, console: Console, encoding: str | None) -> None:
    """Print the answer, the figures in the order of time, the changes with the facts that changed
    there, and what could not be seen."""
    console.print(history_headline(history), style=STYLES[history.word])
    values = [point.value for point in history.points]
    if values:
        bars = _bars(encoding)
        columns = _columns(len(values))
        console.print(_sparkline([statistics.median(values[one]) for one in columns], bars))
        if history.changes:
            console.print(_marks(history, columns))
        low, high = human(min(values), history.unit), human(max(values), history.unit)
        console.print(f"{bars[0]} {low}, {bars[-1]} {high}; ^ the first job after a change")
    for change in history.changes:
        console.print(change_sentence(change, history.unit), style=STYLES[change.word])
        for fact in change.facts[:FACTS_SHOWN]:
            console.print(f"  {fact_change(fact)}")
        if (more := len(change.facts) - FACTS_SHOWN) > 0:
            console.print(f"  and {more} more facts that changed: --json")
    for sentence in history_remarks(history):
        console.print(full_sentence(sentence))


def _bars(encoding: str | None) -> str:
    """Return the bars that the stream's encoding can write."""
    try:
        BARS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII_BARS
    return BARS


def _columns(jobs: int) -> list[slice]:
    """Return the jobs of each column: as few columns as fit."""
    count = min(jobs, COLUMNS_MOST)
    ends = [jobs * column // count for column in range(count + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(ends)]


def _sparkline(values: Sequence[float], bars: str) -> str:
    low, high = min(values), max(values)
    if high == low:
        return bars[len(bars) // 2] * len(values)
    steps = len(bars) - 1
    return "".join(bars[round((value - low) / (high - low) * steps)] for value in values)


def _marks(history: History, columns: Sequence[slice]) -> str:
    first_after = {change.job for change in history.changes}
    return "".join(
        "^" if any(point.job in first_after for point in history.points[one]) else " "
        for one in columns
    ).rstrip()
