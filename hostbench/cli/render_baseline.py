"""A baseline as a table for people."""

import math
import statistics
from typing import TextIO

from rich.table import Table
from rich.text import Text

from hostbench.base.units import human, percent
from hostbench.cli.render_list import console_for
from hostbench.decisions.baseline import described, headline_cases
from hostbench.decisions.host_words import baseline_words
from hostbench.decisions.hostcheck import expectation
from hostbench.model.baseline import Baseline, BaselineCase

HEADLINE = "*"


def show_baseline(baseline: Baseline, name: str, stream: TextIO) -> None:
    """Print its model, and a line for each case: the usual value, the least value of a sound host,
    and how much jobs and hosts differ."""
    console = console_for(stream)
    console.print(baseline_words(described(baseline, name)))
    headlines = set(headline_cases(baseline.cases))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("case", overflow="fold")
    for title in ("hosts", "median", "expected", "jobs ±", "hosts ±"):
        table.add_column(title, justify="right", no_wrap=True)
    for case, one in baseline.cases.items():
        mark = HEADLINE if case in headlines else ""
        table.add_row(Text(f"{one.title}{mark}"), *_cells(one))
    console.print(table)
    console.print(
        "expected: a sound host reaches at least this figure, or for times at most (95/95). "
        f"{HEADLINE}: headline figures, which decide. ±: standard deviation between jobs of a "
        "host, and between hosts."
    )


def _cells(case: BaselineCase) -> tuple[str, ...]:
    medians = [of.median for of in case.hosts.values()]
    expected = expectation(case)
    return (
        str(len(medians)),
        human(statistics.median(medians), case.unit),
        human(expected, case.unit),
        percent(None if case.within is None else math.sqrt(case.within)),
        percent(None if case.between is None else math.sqrt(case.between)),
    )
