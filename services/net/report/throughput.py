"""Payload a second: curves over what a suite swept, bars for the other cases, and what was
offered."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import full_sentence, human, significant
from hostbench.model.result import CaseResult
from hostbench.report.cases import WORKLOAD, median, number, share, shown
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    Curve,
    CurveAxis,
    CurveChart,
    CurvePoint,
    Paragraph,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.curves import CURVES_A_CHART
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    figures_table,
    folded,
    label,
    primary,
)
from hostbench.report.grouping import Layout, distinguishing_params, group_name, param_meanings
from hostbench.report.sweeps import Sweep, Sweeps, by_label, sweep_charts
from services.net.report.cases import (
    BLOCK,
    CONGESTION,
    COUNT,
    DIRECTION,
    GOODPUT,
    LOST,
    OFFERED,
    RATE,
    SEND_PATH,
    TARGET,
    UDP_PATH,
    UDP_STREAM,
    VERSION,
    bits,
    directions,
    distinguishing,
    of_workloads,
)

THROUGHPUT = Paragraph(
    "The payload that the receiver got, over the receiver's own clock from its first byte after "
    "the warm-up to its last. Offered is what the sender gave to its kernel in the meantime, by "
    "its own clock. A sender that is faster than the path only fills buffers (TCP) or loses "
    "datagrams (UDP). Each stream has a connected socket and a thread at each end."
)
LOSS = Paragraph(
    "Each datagram has a number. Lost: the sender reported it, over TCP at the end, and the "
    "receiver never got a copy of it, so a lost tail counts too. Dropped by the receiver: those "
    "lost datagrams that reached its socket and found no room in its buffer, because the "
    "receiving program, not the path, was too slow. Refused: sends to which the far host answered "
    "that no program listens. Blocks below 16 bytes have no number, so only their totals are "
    "known. A datagram larger than the path's MTU travels in fragments, and is lost if one of "
    "them is."
)

_AXES = (
    WORKLOAD,
    DIRECTION,
    SEND_PATH,
    UDP_PATH,
    TARGET,
    VERSION,
    CONGESTION,
    BLOCK,
    COUNT,
)
_FIRST = (WORKLOAD, TARGET, BLOCK, COUNT, DIRECTION, SEND_PATH, UDP_PATH)
BARS = Layout(axes=_AXES, first=_FIRST)
CURVES = Layout(axes=(WORKLOAD, BLOCK, COUNT), first=_FIRST)
HOW = Sweeps(
    (
        Sweep(BLOCK, steep=True),
        Sweep(COUNT),
    ),
    CURVES,
    by_label(BARS),
    distinguishing,
)
OFFERED_AXIS = CurveAxis("offered", "byte/s")


def throughput(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about streams."""
    if not cases:
        return
    yield THROUGHPUT
    yield from sweep_charts(_unpaced(cases), HOW, "Throughput", CurveAxis("throughput", "byte/s"))
    yield from _rates(cases, of=of)
    yield figures_table(cases, "Figures of streams", of=of)


def _unpaced(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the cases without a set rate: such a rate is no figure, and is shown under loss."""
    return [case for case in cases if case.params.get(RATE) is None]


def _rates(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    columns = (
        Column("case"),
        Column("received", figures=True),
        Column("in bits", figures=True),
        Column("offered", figures=True),
        Column("received of it", figures=True),
    )
    groups = tuple(
        RowGroup(workload, rows)
        for workload, found in by_workload(cases).items()
        if (rows := tuple(row for case in found if primary(case) for row in _rate_rows(case)))
    )
    if groups:
        table = Table("Received and offered", columns, groups)
        yield folded(table, sum(len(group.rows) for group in groups), of=of)


def _rate_rows(case: CaseResult) -> Iterator[tuple[Text, ...]]:
    for prefix, name in directions(case):
        received, offered = (median(case, f"{prefix}{metric}") for metric in (GOODPUT, OFFERED))
        if received is None:
            continue
        yield (
            f"{label(case)}: {name}" if name else label(case),
            shown(case, f"{prefix}{GOODPUT}"),
            bits(received),
            shown(case, f"{prefix}{OFFERED}"),
            f"{significant(100 * received / offered)} %" if offered else NOTHING,
        )


# ---- loss ----


def loss(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about datagrams; `cases` are streams of any protocol."""
    counted = [case for case in of_workloads(cases, (UDP_STREAM,)) if primary(case)]
    if not counted:
        return
    yield LOSS
    share_lost, received = CurveAxis("lost", "%"), CurveAxis("received", "byte/s")
    yield from _over_offered(counted, "Loss over the offered rate", share_lost, LOST, 100.0)
    yield from _over_offered(counted, "Received over the offered rate", received, GOODPUT, 1.0)
    yield folded(_loss_table(counted), len(counted), of=of)


def _over_offered(
    cases: Sequence[CaseResult], title: str, y: CurveAxis, metric: str, factor: float
) -> Iterator[Chart]:
    """Yield a curve for cases that differ only in the set rate."""
    known = [
        (case, {name: value for name, value in distinguishing(case).items() if name != RATE}, point)
        for case in cases
        if number(case, RATE) is not None and (point := _offered_point(case, metric, factor))
    ]
    meanings = param_meanings([(case, params) for case, params, _ in known])
    names = distinguishing_params([params for _, params, _ in known], CURVES, meanings)
    points: dict[str, list[CurvePoint]] = {}
    for _, params, point in known:
        points.setdefault(group_name(params, names, CURVES, meanings), []).append(point)
    curves = [
        Curve(name, tuple(sorted(found, key=lambda point: point.x)))
        for name, found in points.items()
        if len(found) > 1
    ]
    for first in range(0, len(curves), CURVES_A_CHART):
        page = tuple(curves[first : first + CURVES_A_CHART])
        pages = -(-len(curves) // CURVES_A_CHART)
        of = f" ({first // CURVES_A_CHART + 1} of {pages})" if pages > 1 else ""
        yield Chart(
            title=f"{title}{of}",
            description=" ".join(_description(curve, y) for curve in page),
            drawing=CurveChart(OFFERED_AXIS, y, page),
        )


def _offered_point(case: CaseResult, metric: str, factor: float) -> CurvePoint | None:
    offered, found = median(case, OFFERED), case.metrics.get(metric)
    if offered is None or found is None:
        return None
    statistics = found.statistics
    low, high = statistics.interval.low, statistics.interval.high
    return CurvePoint(offered, factor * statistics.median, factor * max(0.0, low), factor * high)


def _description(curve: Curve, y: CurveAxis) -> str:
    ends = (
        f"{human(point.y, y.unit)} of {human(point.x, OFFERED_AXIS.unit)}"
        for point in (curve.points[0], curve.points[-1])
    )
    words = f"from {' to '.join(ends)}"
    return full_sentence(f"{curve.label}: {words}" if curve.label else words.capitalize())


_DATAGRAMS = (
    ("sent_datagrams", "sent"),
    ("received_datagrams", "received"),
    ("lost_datagrams", "lost"),
    ("duplicated_datagrams", "duplicated"),
    ("reordered_datagrams", "reordered"),
    ("receiver_dropped_datagrams", "dropped by receiver"),
    ("refused_datagrams", "refused"),
)


def _loss_table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("offered", figures=True),
        Column("lost share", figures=True),
        *(Column(title, figures=True) for _, title in _DATAGRAMS),
    )
    rows = tuple(row for case in cases for row in _loss_rows(case))
    return Table("Datagrams of a trial", columns, (RowGroup(None, rows),))


def _loss_rows(case: CaseResult) -> Iterator[tuple[Text, ...]]:
    for prefix, name in directions(case):
        counted = [median(case, f"{prefix}{metric}") for metric, _ in _DATAGRAMS]
        known = f"{prefix}{LOST}" in case.metrics or any(value is not None for value in counted)
        if name and not known:
            continue
        yield (
            f"{label(case)}: {name}" if name else label(case),
            shown(case, f"{prefix}{OFFERED}"),
            share(case, f"{prefix}{LOST}"),
            *(NOTHING if value is None else f"{value:,.0f}" for value in counted),
        )
