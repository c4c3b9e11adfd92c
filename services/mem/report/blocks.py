"""The same bytes in blocks, in order or not."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Column, CurveAxis, Paragraph, RowGroup, Table, Text
from hostbench.report.curves import curve_charts
from hostbench.report.figures import by_workload, figures_table, label
from hostbench.report.grouping import Layout
from hostbench.report.sweeps import along_param
from services.mem.params import BLOCK, PATTERN, THREADS
from services.mem.report.values import (
    KERNEL,
    cache_marks,
    number_of,
    requested,
    shown,
    size_word,
)

BLOCKS = Paragraph(
    "The same bytes in blocks, one after another or in random order. Blocks of 8 KiB or more also "
    "have times of their own; for smaller ones, reading the clock would take most of that time."
)

BLOCK_CURVES = Layout(axes=(KERNEL, PATTERN, THREADS), first=(KERNEL, PATTERN))


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield the curve over the size of a block, and the times of single blocks."""
    yield BLOCKS
    yield from curve_charts(
        "Bandwidth over the size of a block",
        [(case, requested(case)) for case in cases],
        BLOCK_CURVES,
        along_param(cases, BLOCK),
        CurveAxis("bandwidth", "byte/s"),
        marks=cache_marks(document.host),
    )
    yield from _block_times(cases)
    yield figures_table(cases, "Figures of blocks", of=len(document.cases))


_QUANTILES = {"median": "median", "p99": "99 %", "p999": "99.9 %", "max": "longest"}


def _block_times(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield the distribution of the blocks that were timed one by one."""
    columns = (
        Column("case"),
        Column("block", figures=True),
        *(Column(title, figures=True) for title in _QUANTILES.values()),
    )
    groups = []
    for workload, found in by_workload(cases).items():
        rows = tuple(_block_row(case) for case in found if "block_time_s_median" in case.metrics)
        if rows:
            groups.append(RowGroup(workload, rows))
    if groups:
        yield Table("Time of a block", columns, tuple(groups))


def _block_row(case: CaseResult) -> tuple[Text, ...]:
    return (
        label(case),
        size_word(number_of(case, BLOCK)),
        *(shown(case, f"block_time_s_{quantile}") for quantile in _QUANTILES),
    )
