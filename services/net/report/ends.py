"""Both ends of each case: their cost, the settings in force, the path between them, and whether one
end received what the other sent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hostbench.base.units import binary_bytes, human, percent
from hostbench.model.events import StartEvent
from hostbench.model.result import CaseResult
from hostbench.report.cases import (
    caution_blocks,
    median,
    resolved_text,
    row_of,
    share,
    shown,
    total,
    warned,
)
from hostbench.report.content import (
    Bar,
    BarGroup,
    Block,
    Code,
    Column,
    Fold,
    Paragraph,
    RowGroup,
    Table,
)
from hostbench.report.figures import (
    NOTHING,
    ROWS_A_CHART,
    bar_charts,
    by_workload,
    folded,
    label,
    primary,
    quantity,
)
from hostbench.report.grouping import resolved
from hostbench.report.inventory import cpu_list
from services.net.report.cases import (
    CONGESTION,
    RECEIVE_PATH,
    SAMPLED,
    SEND_PATH,
    TARGET,
    TOTAL,
    UDP_PATH,
    WAIT,
    target_of,
)

CPU = Paragraph(
    "CPU time, user and system, of the program at either end for 10⁹ bytes of payload, or for 10⁶ "
    "round trips. It does not include the kernel's work in interrupts, which the kernel counts "
    "for no process. On the loopback the sender's CPU also does most of the receiver's work, so "
    "there only the sum is meaningful."
)
IN_FORCE = Paragraph(
    "The values that the kernels reported after the program had set up the sockets, which may "
    "differ from those requested: the kernel doubles a buffer that a program requests, and cuts "
    "it at a limit of the system. Congestion window, round trip and retransmits are TCP's own, at "
    "the end of the timed region."
)
PATH = Paragraph(
    "The addresses and the interfaces between which the data went. A figure of the loopback is "
    "one of this host's kernel and memory. A virtual interface (veth, bridge, virtio) has no "
    "speed of its own. Neither is a figure of a network."
)
EVIDENCE = Paragraph(
    "Sent: what the sender counted in the timed region. Received: what the receiver counted. Each "
    "end counts for itself, and they exchange the counts over a separate connection. TCP loses "
    "nothing, so a trial whose counts differ fails. For UDP the difference is what was lost."
)
NEAR_CPU, FAR_CPU = "cpu_seconds_per_gigabyte", "far_cpu_seconds_per_gigabyte"
NEAR_TRIP_CPU, FAR_TRIP_CPU = (f"{end}cpu_seconds_per_million_operations" for end in ("", "far_"))
MEANINGS = {
    "receiver_overloaded": "the receiving sockets were full: the receiver, not the path, was too "
    "slow for these datagrams; request a lower rate, or a larger receive_buffer_bytes for bursts",
    "rate_not_reached": "the senders or the path did not reach the requested rate: the figure is "
    "that of the rate that was sent",
    "strangers": "another sender reached the far end's ports and was turned away",
    "zerocopy_copied": "the kernel copied what was to be sent without copies, as it does on a "
    "loopback",
    "fragmented": "blocks larger than a packet: a datagram travels in pieces, and is lost with "
    "any of them",
    "totals_only": "blocks too small to hold a number: loss is computed from totals, and a "
    "duplicate hides a loss",
    "buffer_capped": "the kernel gave smaller socket buffers than requested; raise "
    "net.core.wmem_max and net.core.rmem_max there",
    "oversubscribed": "more threads than CPUs: their figures hold the waiting for one",
    SAMPLED: "the time ended before the total was transferred: the figures are those of a sample, "
    "and the evidence says of how many bytes",
}
Cell = Callable[[CaseResult], str]


@dataclass(frozen=True)
class _Field:
    """A column: its title, and its cell for a case."""

    title: str
    cell: Cell
    figures: bool = True


def cautions(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield what a reader must know before the figures, the most serious first."""
    yield from caution_blocks(cases, MEANINGS)


def cpu(cases: Sequence[CaseResult], headline: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about CPU time. `headline`: the cases to draw if all would be too many."""
    measured = [case for case in cases if row_of([case], NEAR_CPU, FAR_CPU)]
    trips = [case for case in cases if row_of([case], NEAR_TRIP_CPU, FAR_TRIP_CPU)]
    if not measured and not trips:
        return
    yield CPU
    remembered = {case.case for case in headline}
    few = 2 * len(measured) <= ROWS_A_CHART
    drawn = [case for case in measured if few or case.case in remembered]
    groups = [BarGroup(case.title.partition(".")[2], tuple(_cpu_bars(case))) for case in drawn]
    yield from bar_charts("CPU time for 10⁹ bytes", "s", groups, has_limits=False)
    table = _table("CPU time for 10⁹ bytes at both ends", measured, _CPU)
    yield from _shown(table, measured, of=of)
    table = _table("CPU time for 10⁶ round trips at both ends", trips, _TRIP_CPU)
    yield from _shown(table, trips, of=of)


def _cpu_bars(case: CaseResult) -> Iterator[Bar]:
    for metric, end in ((NEAR_CPU, "near end"), (FAR_CPU, "far end")):
        found = case.metrics.get(metric)
        if found is not None:
            interval = found.statistics.interval
            yield Bar(end, found.statistics.median, interval.low, interval.high, None, None)


def _sum(*metrics: str) -> Cell:
    def cell(case: CaseResult) -> str:
        found = [value for metric in metrics if (value := median(case, metric)) is not None]
        return human(sum(found), "s") if len(found) == len(metrics) else NOTHING

    return cell


def in_force(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about what the kernel made of the requested options."""
    measured = [case for case in cases if primary(case)]
    tables = (
        _table("What was in force", measured, _IN_FORCE),
        _table("TCP at the end of the timed region", measured, _TCP),
    )
    blocks = [block for table in tables for block in _shown(table, measured, of=of)]
    if blocks:
        yield IN_FORCE
        yield from blocks


def path(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield the part about the path: a line for each path of any case."""
    taken: dict[tuple[tuple[str, str], ...], int] = {}
    for case in cases:
        values = _path_of(case)
        if values:
            facts = tuple(values.items())
            taken[facts] = taken.get(facts, 0) + 1
    if not taken:
        return
    names = [name for name in _PATH if any(name in dict(facts) for facts in taken)]
    columns = (*(Column(quantity(name)) for name in names), Column("cases", figures=True))
    rows = tuple(
        (*(dict(facts).get(name, NOTHING) for name in names), str(count))
        for facts, count in taken.items()
    )
    yield PATH
    yield Table("Paths that cases took", columns, (RowGroup(None, rows),))


def _path_of(case: CaseResult) -> dict[str, str]:
    """Return the facts about the path that its first trial reported."""
    start = _start(case)
    if start is None:
        return {}
    facts = {name: start.facts[name] for name in _PATH if start.facts.get(name)}
    return {TARGET: target_of(case).replace("_", " "), **facts}


def evidence(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield the part about what each end counted."""
    measured = [case for case in cases if primary(case)]
    table = _table("What either end counted in all trials together", measured, _EVIDENCE)
    blocks = list(_shown(table, measured, of=of))
    if blocks:
        yield EVIDENCE
        yield from blocks
    yield from _commands(measured)


def _commands(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield the same cases as iperf3 commands; nothing runs from here."""
    known = [case for case in cases if case.equivalent_command is not None]
    if not known:
        return
    groups = tuple(
        RowGroup(
            workload, tuple((label(case), Code(case.equivalent_command or "")) for case in found)
        )
        for workload, found in by_workload(known).items()
    )
    caption = "The same with iperf3, where it can do it"
    columns = (Column("case"), Column("command"))
    yield Fold(caption, (Table(caption, columns, groups),))


# ---- tables ----


def _table(caption: str, cases: Sequence[CaseResult], fields: Sequence[_Field]) -> Table | None:
    """Return a table with a row for each case that has any of the fields, without empty columns, or
    None if nothing is left."""
    known = [field for field in fields if any(field.cell(case) != NOTHING for case in cases)]
    groups = []
    for workload, found in by_workload(cases).items():
        rows = tuple((label(case), *cells) for case in found if (cells := _cells(case, known)))
        if rows:
            groups.append(RowGroup(workload, rows))
    columns = (Column("case"), *(Column(field.title, figures=field.figures) for field in known))
    return Table(caption, columns, tuple(groups)) if groups else None


def _cells(case: CaseResult, fields: Sequence[_Field]) -> tuple[str, ...]:
    cells = tuple(field.cell(case) for field in fields)
    return cells if any(cell != NOTHING for cell in cells) else ()


def _shown(table: Table | None, cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    if table is not None:
        yield folded(table, len(cases), of=of)


def _of(metric: str) -> Cell:
    return lambda case: shown(case, metric)


def _size(metric: str) -> Cell:
    def cell(case: CaseResult) -> str:
        value = median(case, metric)
        return NOTHING if value is None else binary_bytes(value)

    return cell


def _total(metric: str) -> Cell:
    def cell(case: CaseResult) -> str:
        value = total(case, metric)
        return NOTHING if value is None else human(value, "byte")

    return cell


def _count(metric: str) -> Cell:
    def cell(case: CaseResult) -> str:
        value = median(case, metric)
        return NOTHING if value is None else f"{value:,.0f}"

    return cell


def _turned_away(case: CaseResult) -> str:
    value = total(case, "turned_away")
    return f"{value:,.0f}" if value else NOTHING


def _near_cpus(case: CaseResult) -> str:
    start = _start(case)
    return cpu_list(tuple(set(start.placement.cpus))) if start else NOTHING


def _fact(name: str) -> Cell:
    def cell(case: CaseResult) -> str:
        start = _start(case)
        return (start.facts.get(name) if start else None) or NOTHING

    return cell


def _start(case: CaseResult) -> StartEvent | None:
    """Return the start of its first trial that got that far."""
    return next((trial.start for trial in case.trials if trial.start), None)


def _param(name: str) -> Cell:
    return lambda case: resolved_text(case, name)


def _arrived(case: CaseResult) -> str:
    sent, received = total(case, "sender_bytes"), total(case, "receiver_bytes")
    return percent(received / sent) if sent and received is not None else NOTHING


def _gro(case: CaseResult) -> str:
    value = median(case, "gro_active")
    return NOTHING if value is None else ("yes" if value else "no")


def _warnings(case: CaseResult) -> str:
    words = (_caution(case, code) for code in sorted(warned(case)))
    return ", ".join(words) or NOTHING


def _caution(case: CaseResult, code: str) -> str:
    moved, requested = median(case, "receiver_bytes"), resolved(case).get(TOTAL)
    if code != SAMPLED or moved is None or not isinstance(requested, int | float):
        return code.replace("_", " ")
    return f"sampled, {human(moved, 'byte')} of {human(requested, 'byte')}"


_CPU = (
    _Field("near end", _of(NEAR_CPU)),
    _Field("far end", _of(FAR_CPU)),
    _Field("both", _sum(NEAR_CPU, FAR_CPU)),
)
_TRIP_CPU = (
    _Field("near end", _of(NEAR_TRIP_CPU)),
    _Field("far end", _of(FAR_TRIP_CPU)),
    _Field("both", _sum(NEAR_TRIP_CPU, FAR_TRIP_CPU)),
)
_IN_FORCE = (
    _Field("congestion control", _fact(CONGESTION), figures=False),
    _Field("of the far end", _fact("far_congestion"), figures=False),
    _Field("send path", _param(SEND_PATH), figures=False),
    _Field("receive path", _param(RECEIVE_PATH), figures=False),
    _Field("UDP path", _param(UDP_PATH), figures=False),
    _Field("segments a send", _count("gso_segments")),
    _Field("GRO", _gro, figures=False),
    _Field("copied after all", lambda case: share(case, "zerocopy_copied_ratio")),
    _Field("send buffer", _size("send_buffer_in_force_bytes")),
    _Field("receive buffer", _size("receive_buffer_in_force_bytes")),
    _Field("path MTU", _count("path_mtu_bytes")),
    _Field("waiting", _param(WAIT), figures=False),
    _Field("near end's CPUs", _near_cpus, figures=False),
    _Field("far end's CPUs", _fact("far_cpus"), figures=False),
)
_TCP = (
    _Field("retransmits", _count("retransmits")),
    _Field("MSS", _count("mss_bytes")),
    _Field("congestion window", _size("congestion_window_bytes")),
    _Field("TCP's round trip", _of("tcp_rtt_s")),
)
_PATH = (
    TARGET,
    "near_address",
    "far_address",
    "interface",
    "interface_mtu",
    "network_mode",
    "far_interface",
    "far_interface_mtu",
    "far_network_mode",
    "far_host_name",
)
_EVIDENCE = (
    _Field("sent", _total("sender_bytes")),
    _Field("received", _total("receiver_bytes")),
    _Field("arrived", _arrived),
    _Field("strangers turned away", _turned_away),
    _Field("warnings", _warnings, figures=False),
)
