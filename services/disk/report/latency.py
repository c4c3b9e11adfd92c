"""How long operations took: percentiles of reads and writes, and of commits."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import human
from hostbench.model.result import CaseResult
from hostbench.report.cases import number, shown
from hostbench.report.content import (
    Block,
    Column,
    CurveAxis,
    Paragraph,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.figures import NOTHING, by_workload, figures_table, folded, label, primary
from hostbench.report.percentiles import (
    FIGURES,
    TOO_FEW,
    cells,
    has_percentiles,
    lacks_percentiles,
    percentile_charts,
    percentile_metric,
)
from services.disk.params import RATE
from services.disk.report.sweeps import disk_charts

LATENCY = Paragraph(
    "The time of single operations; every operation counts. A closed loop starts the next "
    "operation when one is done. During a stall it counts one slow operation and starts none of "
    "the many that would have come. So its percentiles describe the requests that were made, and "
    "look better than for a user whose requests come at a fixed rate. At a given rate (open loop) "
    "an operation's time begins when it was due."
)
COMMITS = Paragraph(
    "The program writes a block and makes it durable (fdatasync) before the next one, as a "
    "database does. A device or a hypervisor that confirms from a volatile cache is fast here, "
    "and may lose what it confirmed. The time of a commit cannot show that."
)
STREAMS = ("read", "write")
TIME = CurveAxis("time of an operation", "s", logarithmic=True)


def percentiles(
    cases: Sequence[CaseResult], headline: Sequence[CaseResult], *, of: int
) -> Iterator[Block]:
    """Yield the part about reads and writes. `headline`: the cases to draw if all would be too
    many."""
    timed = [case for case in cases if has_percentiles(case)]
    if not timed:
        return
    yield LATENCY
    yield from percentile_charts(timed, headline, TIME)
    yield folded(_table(timed), len(timed), of=of)
    if lacks_percentiles(timed):
        yield TOO_FEW


def commits(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about commits."""
    if not cases:
        return
    yield COMMITS
    yield from disk_charts(cases, "Time of a commit", CurveAxis("time of a commit", "s"))
    timed = [case for case in cases if has_percentiles(case)]
    if timed:
        yield _commit_table(timed)
    yield figures_table(cases, "Figures of commits", of=of)


def _table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("loop"),
        *(Column(title, figures=True) for _, title in FIGURES),
    )
    groups = tuple(
        RowGroup(workload, tuple(row for case in found for row in _rows(case)))
        for workload, found in by_workload(cases).items()
    )
    return Table("Latency of operations", columns, groups)


def _rows(case: CaseResult) -> Iterator[tuple[Text, ...]]:
    """Yield all operations; for a mix also its reads and its writes."""
    yield (label(case), _loop(case), *cells(case))
    for stream in STREAMS:
        if percentile_metric("p50", stream) in case.metrics:
            yield (f"{label(case)}: {stream}s", NOTHING, *cells(case, f"{stream}_"))


def _loop(case: CaseResult) -> str:
    rate = number(case, RATE)
    return "closed" if rate is None else f"open, {human(rate, 'operation/s')}"


def _commit_table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("commits", figures=True),
        *(Column(title, figures=True) for _, title in FIGURES),
    )
    rows = tuple(
        (
            label(case),
            shown(case, "operations_per_second"),
            *cells(case),
        )
        for case in cases
        if primary(case)
    )
    return Table("Time of a commit, and how many a second", columns, (RowGroup(None, rows),))
