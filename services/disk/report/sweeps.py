"""Rates of sequential and of random access: curves over what a suite swept, bars of all else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostbench.models.result import CaseResult
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
from hostbench.report.curves import Along, curve_charts
from hostbench.report.figures import by_workload, figures_table, folded, label, primary
from hostbench.report.grouping import Layout, charts
from services.disk.report.cases import (
    BLOCK,
    DEPTH,
    MODE,
    THREADS,
    WORKLOAD,
    asked,
    is_cached,
    number,
    param_word,
    row_of,
    shown,
)

# Two cases are a comparison, which bars show better.
SWEEP_LEAST = 3

THROUGHPUT = Paragraph(
    "Blocks in the order in which they lie in the file, each thread in a part of its own. A "
    "device that reads ahead or merges requests shows its best here, and small blocks tell of the "
    "way to the device rather than of the device."
)
OPERATIONS = Paragraph(
    "Blocks anywhere in the file, each once before any comes again unless a skewed distribution "
    "was asked for. What is in flight is the queue depth times the threads: a device that works "
    "on several requests at a time needs several to show it, and one that does not only makes "
    "them wait."
)

BARS = Layout(
    axes={
        WORKLOAD: "workload",
        MODE: "cache mode",
        BLOCK: "block size",
        DEPTH: "queue depth",
        THREADS: "number of threads",
    },
    first=(WORKLOAD, BLOCK, DEPTH, THREADS, MODE),
    word=param_word,
)
CURVES = Layout(
    axes={WORKLOAD: "", MODE: "", BLOCK: "", DEPTH: ""},
    first=(WORKLOAD, BLOCK, DEPTH, THREADS, MODE),
    word=param_word,
)


@dataclass(frozen=True)
class Sweep:
    """What a suite may vary: the parameter, and the axis that it is drawn along."""

    param: str
    over: str
    axis: CurveAxis


SWEEPS = (
    Sweep(BLOCK, "the block size", CurveAxis("block", "byte", logarithmic=True)),
    Sweep(DEPTH, "the queue depth", CurveAxis("queue depth", "1", logarithmic=True)),
    Sweep(THREADS, "the number of threads", CurveAxis("threads", "1", logarithmic=True)),
)


def throughput(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """The part about sequential access."""
    if not cases:
        return
    yield THROUGHPUT
    yield from sweep_charts(cases, "Throughput", CurveAxis("throughput", "byte/s"))
    yield from _rates(cases, "Rates of sequential access", of=of)
    yield figures_table(cases, "Figures of sequential access", of=of)


def operations(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """The part about random access."""
    if not cases:
        return
    yield OPERATIONS
    axis = CurveAxis("operations a second", "operation/s")
    yield from sweep_charts(cases, "Operations a second", axis)
    yield from _rates(cases, "Rates of random access", of=of)
    yield figures_table(cases, "Figures of random access", of=of)


def sweep_charts(cases: Sequence[CaseResult], title: str, y: CurveAxis) -> Iterator[Chart]:
    """What the page cache gave has charts of its own: beside it, a disk's figures lie flat."""
    cached = [case for case in cases if is_cached(case)]
    yield from _charts([case for case in cases if not is_cached(case)], title, y)
    yield from _charts(cached, f"{title} of the page cache", y)


def _charts(cases: Sequence[CaseResult], title: str, y: CurveAxis) -> Iterator[Chart]:
    """A case stands on the curve of every parameter that was swept through it, or in the bars."""
    drawn: set[str] = set()
    for sweep in SWEEPS:
        found = swept(cases, sweep.param)
        drawn |= {case.case for case in found}
        yield from _curves(found, sweep, title, y)
    rest = [(case, asked(case)) for case in cases if case.case not in drawn]
    yield from charts(rest, BARS, title=title)


def swept(cases: Sequence[CaseResult], param: str) -> list[CaseResult]:
    """The cases with enough others that differ from them in nothing but `param`."""
    rows: dict[frozenset[tuple[str, str]], list[CaseResult]] = {}
    for case in cases:
        if primary(case) is not None and number(case, param) is not None:
            row = {(name, str(value)) for name, value in asked(case).items() if name != param}
            rows.setdefault(frozenset(row), []).append(case)
    return [case for row in rows.values() if len(row) >= SWEEP_LEAST for case in row]


def _curves(cases: Sequence[CaseResult], sweep: Sweep, title: str, y: CurveAxis) -> Iterator[Chart]:
    def place(case: CaseResult) -> float | None:
        return number(case, sweep.param)

    yield from curve_charts(
        f"{title} over {sweep.over}",
        [(case, asked(case)) for case in cases],
        CURVES,
        Along(sweep.axis, place, left_out=(sweep.param,)),
        y,
    )


_RATES = (
    ("operations_per_second", "operations"),
    ("bytes_per_second", "bytes"),
    ("read_operations_per_second", "reads"),
    ("write_operations_per_second", "writes"),
    ("cpu_seconds_per_million_operations", "CPU for 10⁶"),
)


def _rates(cases: Sequence[CaseResult], caption: str, *, of: int) -> Iterator[Block]:
    """The same work in operations and in bytes, what of it were reads, and what it cost."""
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
