"""Latency, alone and under load."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Column, CurveAxis, Paragraph, RowGroup, Table
from hostbench.report.curves import Along, curve_charts
from hostbench.report.figures import label, primary, workload_table
from hostbench.report.grouping import Layout
from services.mem.params import CHAINS, INTENSITY, LOAD, PAGES, STRIDE, THREADS
from services.mem.report import chains, levels, reach
from services.mem.report.sizes import over_size
from services.mem.report.values import (
    cache_marks,
    chains_of,
    is_plain_chase,
    median_of,
    number_of,
    requested,
    shown,
)

LATENCY = Paragraph(
    "The time of one access that must wait for the one before it, over the size of the working "
    "set: one pointer leads to the next, in an order that no prefetcher can predict. At each step "
    "of a curve the working set no longer fits into a level of the hierarchy: first the caches, "
    "then the memory that the TLB covers."
)
STRIDES = Paragraph(
    "The same with one access in each stride of several lines, so that the same range of "
    "addresses needs far fewer cache lines. With a page for each access, the curve of 4 KiB pages "
    "rises where the TLB no longer holds all translations; with huge pages it rises much later."
)
LOADED = Paragraph(
    "The time of one such access of the first thread while the other threads load the memory, "
    "over the bandwidth of these threads. The curve bends where requests begin to queue."
)

ACCESS_TIME = CurveAxis("time of an access", "s", logarithmic=True)
LATENCY_CURVES = Layout(axes=(PAGES, THREADS))
LOADED_CURVES = Layout(axes=(LOAD, PAGES), first=(LOAD, PAGES))


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield the curve over the working set, the levels that it shows, that of strides, and how many
    accesses are in flight."""
    yield LATENCY
    plain = [case for case in cases if is_plain_chase(case)]
    found = levels.found_levels(plain, document.host)
    marks = cache_marks(document.host) + levels.marks(found)
    yield from over_size(
        "Latency over the working set",
        plain,
        LATENCY_CURVES,
        ACCESS_TIME,
        same=(CHAINS, STRIDE),
        marks=marks,
    )
    yield from levels.blocks(found, document.host)
    strides = [case for case in cases if chains_of(case) == 1 and not is_plain_chase(case)]
    if strides:
        yield STRIDES
        yield from over_size(
            "Latency over the working set, by stride",
            strides,
            LATENCY_CURVES,
            ACCESS_TIME,
            same=(CHAINS,),
        )
        yield from reach.blocks(strides)
    yield from chains.blocks(cases)
    yield workload_table("mem.pointer_chase", cases, of=len(document.cases))


def part_under_load(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield the curve over what the load moves."""
    yield LOADED
    ordered = sorted(cases, key=lambda case: number_of(case, INTENSITY) or 0.0)
    along = Along(
        CurveAxis("bandwidth of the load", "byte/s"),
        lambda case: median_of(case, "load_bytes_per_second"),
        left_out=(INTENSITY,),
        as_given=True,
    )
    yield from curve_charts(
        "Latency under load",
        [(case, requested(case)) for case in ordered],
        LOADED_CURVES,
        along,
        CurveAxis("time of an access", "s"),
        numbers=_load_table(ordered),
    )
    yield workload_table("mem.loaded_latency", cases, of=len(document.cases))


def _load_table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("bandwidth of the load", figures=True),
        Column("time of an access", figures=True),
    )
    rows = tuple(
        (label(case), shown(case, "load_bytes_per_second"), shown(case, case.primary))
        for case in cases
        if primary(case)
    )
    return Table("Latency and the load beside it", columns, (RowGroup(None, rows),))
