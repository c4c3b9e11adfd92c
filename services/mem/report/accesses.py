"""Small accesses at random places that do not wait for each other."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import percent
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Column, Paragraph, RowGroup, Table, Text
from hostbench.report.figures import label, primary, workload_table
from hostbench.report.grouping import Layout, charts
from services.mem.params import BLOCK, OPERATION, THREADS
from services.mem.report.values import median_of, requested, shown, working_set

# Above this, the loop is a good part of the figure.
EMPTY_LOOP_MOST = 0.2

SMALL = Paragraph(
    "Independent accesses to random places: the time of one, averaged over many in flight, and "
    "therefore far below the latency. Raw is the measured time, empty that of the same loop "
    "without the access, net the difference. If the empty loop takes more than a fifth of raw, "
    "the loop is a large part of the figure."
)

ACCESS_BARS = Layout(
    axes=(BLOCK, OPERATION, THREADS),
    first=(OPERATION, THREADS),
)


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield bars, and what the loop alone takes."""
    yield SMALL
    yield from charts(
        [(case, requested(case)) for case in cases], ACCESS_BARS, title="Time of an access"
    )
    yield from _net_table(cases)
    yield workload_table("mem.random_access", cases, of=len(document.cases))


def _net_table(cases: Sequence[CaseResult]) -> Iterator[Block]:
    columns = (
        Column("case"),
        Column("working set", figures=True),
        Column("raw", figures=True),
        Column("empty", figures=True),
        Column("net", figures=True),
        Column("empty / raw", figures=True),
        Column("accesses", figures=True),
    )
    rows = tuple(_net_row(case) for case in cases if primary(case))
    if rows:
        yield Table("Raw, empty loop and net", columns, (RowGroup(None, rows),))


def _net_row(case: CaseResult) -> tuple[Text, ...]:
    ratio = median_of(case, "empty_loop_ratio")
    flag = ", above a fifth" if ratio is not None and ratio > EMPTY_LOOP_MOST else ""
    return (
        label(case),
        working_set(case),
        shown(case, case.primary),
        shown(case, "access_time_s_empty"),
        shown(case, "access_time_s_net"),
        f"{percent(ratio)}{flag}",
        shown(case, "accesses_per_second"),
    )
