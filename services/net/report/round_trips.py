"""Round trips and connections: their times, percentiles, and the effect of a load beside them."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import significant
from hostbench.model.result import CaseResult
from hostbench.report.cases import median, requested, row_of, shown
from hostbench.report.content import (
    Block,
    Column,
    CurveAxis,
    Paragraph,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    figures_table,
    folded,
    label,
    primary,
)
from hostbench.report.percentiles import (
    FIGURES,
    TOO_FEW,
    cells,
    has_percentiles,
    lacks_percentiles,
    percentile_charts,
)
from hostbench.report.sweeps import sweep_charts
from services.net.report.cases import (
    LOAD,
    LOAD_DIRECTION,
    bits,
    is_loaded,
)
from services.net.report.throughput import HOW

ROUND_TRIPS = Paragraph(
    "A block goes there and back, one at a time on each stream. Only the near end's clock is "
    "read, so a time is that of the whole round trip, never half of it. Every round trip counts. "
    "A UDP answer that does not come is a lost operation and has no time. The times change where "
    "both ends share CPUs, or wait without sleeping (spinning), so the placement is a part of the "
    "case."
)
CONNECTIONS = Paragraph(
    "Connect, ask, answer, close, then the next: what a server gets that keeps no connection."
)
UNDER_LOAD = Paragraph(
    "The same round trips while bulk TCP streams run between the same ends: they show how long "
    "packets wait in queues on the way. The case without load is shown too, if the suite has one."
)
TRIP = CurveAxis("round trip", "s")
TRIP_RARE = CurveAxis("time of a round trip", "s", logarithmic=True)


def round_trips(
    cases: Sequence[CaseResult], headline: Sequence[CaseResult], *, of: int
) -> Iterator[Block]:
    """Yield the part about round trips. `headline`: the cases whose percentiles are drawn if all
    would be too many."""
    if not cases:
        return
    yield ROUND_TRIPS
    quiet = [case for case in cases if not is_loaded(case)]
    yield from sweep_charts(quiet, HOW, "Time of a round trip", TRIP)
    yield from _percentiles(cases, headline, of=of)
    yield from _under_load(cases)
    yield figures_table(cases, "Figures of round trips", of=of)


def connections(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about connections."""
    if not cases:
        return
    yield CONNECTIONS
    axis = CurveAxis("connections a second", "operation/s")
    yield from sweep_charts(cases, HOW, "Connections a second", axis)
    timed = [case for case in cases if has_percentiles(case)]
    if timed:
        yield folded(_table("Time of a connection", timed), len(timed), of=of)
    yield figures_table(cases, "Figures of connections", of=of)


def _percentiles(
    cases: Sequence[CaseResult], headline: Sequence[CaseResult], *, of: int
) -> Iterator[Block]:
    timed = [case for case in cases if has_percentiles(case)]
    if not timed:
        return
    yield from percentile_charts(timed, headline, TRIP_RARE, title="Percentiles of round trips")
    yield folded(_table("Times of round trips", timed), len(timed), of=of)
    if lacks_percentiles(timed):
        yield TOO_FEW


_COUNTS = (("operations_per_second", "a second"), ("lost_operations", "lost"))


def _table(caption: str, cases: Sequence[CaseResult]) -> Table:
    known = [one for one in _COUNTS if row_of(cases, one[0])]
    columns = (
        Column("case"),
        *(Column(title, figures=True) for _, title in FIGURES),
        *(Column(title, figures=True) for _, title in known),
    )
    groups = tuple(
        RowGroup(
            workload,
            tuple(
                (label(case), *cells(case), *(shown(case, metric) for metric, _ in known))
                for case in found
            ),
        )
        for workload, found in by_workload(cases).items()
    )
    return Table(caption, columns, groups)


# ---- under load ----


def _under_load(cases: Sequence[CaseResult]) -> Iterator[Block]:
    loaded = [case for case in cases if is_loaded(case) and primary(case)]
    if not loaded:
        return
    yield UNDER_LOAD
    columns = (
        Column("case"),
        Column("load", figures=True),
        Column("in bits", figures=True),
        Column("50 %", figures=True),
        Column("99 %", figures=True),
        Column("50 % without load", figures=True),
        Column("times as long", figures=True),
    )
    quiet = {_but_load(case): case for case in cases if not is_loaded(case)}
    groups = tuple(
        RowGroup(workload, tuple(_loaded_row(case, quiet.get(_but_load(case))) for case in found))
        for workload, found in by_workload(loaded).items()
    )
    yield Table("Round trips under load", columns, groups)


def _but_load(case: CaseResult) -> frozenset[tuple[str, str]]:
    """Return what a case has in common with the same one under another load."""
    load = (LOAD, LOAD_DIRECTION)
    return frozenset(
        (name, str(value)) for name, value in requested(case).items() if name not in load
    )


def _loaded_row(case: CaseResult, quiet: CaseResult | None) -> tuple[Text, ...]:
    with_load = median(case, "latency_p50_s")
    without = median(quiet, "latency_p50_s") if quiet else None
    return (
        label(case),
        shown(case, "load_bytes_per_second"),
        bits(median(case, "load_bytes_per_second")),
        shown(case, "latency_p50_s"),
        shown(case, "latency_p99_s"),
        shown(quiet, "latency_p50_s") if quiet else NOTHING,
        significant(with_load / without, 3) if with_load and without else NOTHING,
    )
