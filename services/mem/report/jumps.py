"""Jumps through code: what a core takes to fetch instructions, by the size of the code."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import human
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Column, CurveAxis, Paragraph, RowGroup, Table
from hostbench.report.figures import folded, label, primary, workload_table
from hostbench.report.grouping import Layout
from services.mem.params import PAGES, PATTERN, RANDOM, SIZE, THREADS
from services.mem.report.sizes import over_size
from services.mem.report.summary import largest_sets
from services.mem.report.values import (
    DATA,
    cache_marks,
    median_of,
    number_of,
    shown,
    size_word,
)

CODE = Paragraph(
    "The time of one jump to code on another cache line, over the size of the code. While the "
    "branch predictor knows all jumps, a core fetches ahead of them, so the steps are lower than "
    "those of dependent data accesses. The first step is the size of the L1 instruction cache or "
    "the number of jumps that the predictor remembers, whichever is smaller."
)
CODE_CURVES = Layout(axes=(PATTERN, PAGES, THREADS), first=(PATTERN,))


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield the curves over the size of the code, and the cycles of a jump."""
    yield CODE
    yield from over_size(
        "Time of a jump over the size of the code",
        cases,
        CODE_CURVES,
        CurveAxis("time of a jump", "s", logarithmic=True),
        x="size of the code",
        marks=cache_marks(document.host, without=DATA),
    )
    yield from _cycles(cases, of=len(document.cases))
    yield workload_table("mem.code_chase", cases, of=len(document.cases))


def headline(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the largest code in each page mode, in random order if there is one."""
    return largest_sets([case for case in cases if case.params.get(PATTERN) == RANDOM] or cases)


def _cycles(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield a row for each case whose clock is known."""
    rows = tuple(
        (
            size_word(number_of(case, SIZE)),
            label(case),
            shown(case, case.primary),
            human(cycles, "cycle"),
        )
        for case in sorted(cases, key=lambda case: number_of(case, SIZE) or 0)
        if primary(case) and (cycles := median_of(case, "jump_cycles")) is not None
    )
    if rows:
        columns = (
            Column("size of the code", figures=True),
            Column("case"),
            Column("time of a jump", figures=True),
            Column("of the core clock", figures=True),
        )
        yield folded(Table("Cycles of a jump", columns, (RowGroup(None, rows),)), len(rows), of=of)
