"""Rates of sequential and of random access: curves over what a suite swept, bars for the other
cases."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult
from hostbench.report.cases import WORKLOAD, row_of, shown
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    CurveAxis,
    Paragraph,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.figures import by_workload, figures_table, folded, label, primary
from hostbench.report.grouping import THREADS, Layout
from hostbench.report.sweeps import Sweep, Sweeps, laid_out, sweep_charts
from services.disk.params import BLOCK, DEPTH, MODE
from services.disk.report.cases import is_cached

THROUGHPUT = Paragraph(
    "Blocks in the order of the file; each thread has its own part of it. A device that reads "
    "ahead or merges requests shows its best here. Small blocks say more about the path to the "
    "device than about the device."
)
OPERATIONS = Paragraph(
    "Blocks anywhere in the file. Unless a skewed distribution was requested, no block repeats "
    "before every other one had its turn. The number of requests in flight is the queue depth "
    "times the threads. A device that works on several requests at a time needs several to show "
    "it; on others, more requests only wait longer."
)

BARS = Layout(
    axes=(WORKLOAD, MODE, BLOCK, DEPTH, THREADS),
    first=(WORKLOAD, BLOCK, DEPTH, THREADS, MODE),
)
CURVES = Layout(axes=(WORKLOAD, MODE, BLOCK, DEPTH), first=BARS.first)
HOW = Sweeps((Sweep(BLOCK), Sweep(DEPTH), Sweep(THREADS)), CURVES, laid_out(BARS))


def throughput(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about sequential access."""
    if not cases:
        return
    yield THROUGHPUT
    yield from disk_charts(cases, "Throughput", CurveAxis("throughput", "byte/s"))
    yield from _rates(cases, "Rates of sequential access", of=of)
    yield figures_table(cases, "Figures of sequential access", of=of)


def operations(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about random access."""
    if not cases:
        return
    yield OPERATIONS
    axis = CurveAxis("operations a second", "operation/s")
    yield from disk_charts(cases, "Operations a second", axis)
    yield from _rates(cases, "Rates of random access", of=of)
    yield figures_table(cases, "Figures of random access", of=of)


def disk_charts(cases: Sequence[CaseResult], title: str, y: CurveAxis) -> Iterator[Chart]:
    """Yield the charts. Figures of the page cache have charts of their own, which would otherwise
    compress the disk's figures."""
    cached = [case for case in cases if is_cached(case)]
    uncached = [case for case in cases if not is_cached(case)]
    yield from sweep_charts(uncached, HOW, title, y)
    yield from sweep_charts(cached, HOW, f"{title} of the page cache", y)


_RATES = (
    ("operations_per_second", "operations"),
    ("bytes_per_second", "bytes"),
    ("read_operations_per_second", "reads"),
    ("write_operations_per_second", "writes"),
    ("cpu_seconds_per_million_operations", "CPU for 10⁶"),
)


def _rates(cases: Sequence[CaseResult], caption: str, *, of: int) -> Iterator[Block]:
    """Yield the same work in operations and in bytes, the share of reads, and its cost."""
    rates = [(metric, title) for metric, title in _RATES if row_of(cases, metric)]
    groups = tuple(
        RowGroup(workload, rows)
        for workload, found in by_workload(cases).items()
        if (rows := tuple(_rate_row(case, rates) for case in found if primary(case)))
    )
    if groups:
        columns = (Column("case"), *(Column(title, figures=True) for _, title in rates))
        table = Table(caption, columns, groups)
        yield folded(table, sum(len(group.rows) for group in groups), of=of)


def _rate_row(case: CaseResult, rates: Sequence[tuple[str, str]]) -> tuple[Text, ...]:
    return (label(case), *(shown(case, metric) for metric, _ in rates))
