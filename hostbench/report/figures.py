"""What every section shows of cases: tables, bars, peers. Subsystems build their sections from
these parts."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from hostbench.base.units import full_sentence, human, percent, plural, plus_minus, significant
from hostbench.judge.clock import clock_words, share_of_limit
from hostbench.judge.peer import compared_quantity, ours_beside
from hostbench.model.result import WITH_FIGURE, CaseResult, MetricResult, PeerResult, Verdict
from hostbench.report.content import (
    Bar,
    BarChart,
    BarGroup,
    Block,
    Bullets,
    Chart,
    Code,
    Column,
    Fold,
    InBrief,
    Mark,
    Paragraph,
    RowGroup,
    Share,
    Table,
    Text,
)

# A drawing must fit on a printed page.
ROWS_A_CHART = 36
BARS_LEAST = 2
CASES_UNFOLDED = 40
NOTHING = "–"

FIGURE_COLUMNS = (
    Column("case"),
    Column("figure", figures=True),
    Column("within", figures=True),
    Column("best", figures=True),
    Column("limit", figures=True),
    Column("of limit", figures=True),
    Column("delivered", figures=True),
    Column("verdict"),
    Column("host"),
    Column("n", figures=True),
)


def primary(case: CaseResult) -> MetricResult | None:
    """Return the case's primary metric, or None without a figure."""
    return case.metrics.get(case.primary)


def label(case: CaseResult) -> str:
    """Return what distinguishes the case from the others of its workload."""
    return case.label or "(defaults)"


def by_workload(cases: Iterable[CaseResult]) -> dict[str, list[CaseResult]]:
    """Return the cases of each workload, in the order of the suite."""
    grouped: dict[str, list[CaseResult]] = {}
    for case in cases:
        grouped.setdefault(case.workload, []).append(case)
    return grouped


def case_table(cases: Sequence[CaseResult], caption: str, *, titles: bool = False) -> Table:
    """Return figure, interval, limit, delivered figure and verdict of each case. `titles`: the
    cases are of several workloads."""
    rows = tuple(case_row(case, case.title if titles else label(case)) for case in cases)
    return Table(caption, FIGURE_COLUMNS, (RowGroup(None, rows),))


def workload_table(workload: str, cases: Sequence[CaseResult], *, of: int) -> Block:
    """Return the figures of one workload below its chart. In a report of many cases (`of`) it is
    folded, as the chart shows most of it."""
    return figures_table(cases, f"Figures of {workload}", of=of)


def figures_table(cases: Sequence[CaseResult], caption: str, *, of: int) -> Block:
    """Return the same for several workloads under one chart, with a group of rows for each. Where
    all cases are skipped, return why."""
    if all(case.verdict is Verdict.SKIPPED for case in cases):
        return Bullets(tuple(_skipped(case) for case in cases))
    grouped = by_workload(cases)
    groups = tuple(
        RowGroup(
            workload if len(grouped) > 1 else None, tuple(case_row(c, label(c)) for c in found)
        )
        for workload, found in grouped.items()
    )
    table = Table(caption, FIGURE_COLUMNS, groups)
    drawn = sum(primary(case) is not None for case in cases) >= BARS_LEAST
    if not drawn:
        return table
    return folded(table, len(cases), of=of, brief=InBrief.UNFOLDED)


def _skipped(case: CaseResult) -> str:
    why = "; ".join(reason.text for reason in case.reasons) or "no reason was given"
    return full_sentence(f"{case.title}, skipped: {why}")


def folded(table: Table, cases: int, *, of: int, brief: InBrief = InBrief.FOLDED) -> Block:
    """Return the table of `cases` cases, folded in a report of many."""
    if of <= CASES_UNFOLDED:
        return table
    return Fold(f"{table.caption}: {plural(cases, 'case')}", (table,), on_paper=True, brief=brief)


def case_row(case: CaseResult, name: str) -> tuple[Text, ...]:
    """Return the cells of FIGURE_COLUMNS."""
    metric = primary(case)
    if metric is None:
        return (name, *(NOTHING for _ in range(6)), Mark(case.verdict), NOTHING, "0")
    spread = metric.statistics.half_width_ratio
    return (
        name,
        human(metric.statistics.median, metric.unit),
        NOTHING if spread is None else plus_minus(spread),
        human(case.best, metric.unit),
        human(metric.limit.value if metric.limit else None, metric.unit),
        limit_cell(case),
        percent(case.delivered_ratio),
        Mark(case.verdict),
        NOTHING if case.condition is None else str(case.condition.state),
        str(metric.statistics.n),
    )


def limit_cell(case: CaseResult) -> Text:
    """Return the figure's share of its limit; if the clock was below the expected one, with clock
    and work per cycle."""
    clock = clock_words(case)
    share = Share(share_of_limit(case))
    return (share, f" {clock}") if clock else share


def bar(case: CaseResult, name: str) -> Bar | None:
    """Return the case as a bar, or None without a figure that a bar from zero can show."""
    metric = primary(case)
    if metric is None or metric.statistics.minimum < 0:
        return None
    statistics = metric.statistics
    return Bar(
        label=name,
        value=statistics.median,
        low=statistics.interval.low,
        high=statistics.interval.high,
        limit=metric.limit.value if metric.limit else None,
        efficiency=metric.efficiency,
        peers=tuple(
            peer.statistics.median
            for peer in case.peers
            if peer.statistics and peer.metric is not None and peer.unit == metric.unit
        ),
        note="" if case.verdict is Verdict.CLEAN else str(case.verdict or "unfinished"),
    )


def bar_charts(
    title: str, unit: str, groups: Sequence[BarGroup], *, has_limits: bool = True
) -> Iterator[Chart]:
    """Yield as many charts as needed, each fitting a printed page. A single bar makes no chart: its
    figure already says all. `has_limits`: as in BarChart."""
    if sum(len(group.bars) for group in groups) < BARS_LEAST:
        return
    pages = list(_pages([group for group in groups if group.bars]))
    for number, page in enumerate(pages, start=1):
        of = f" ({number} of {len(pages)})" if len(pages) > 1 else ""
        yield Chart(
            title=f"{title}{of}",
            description=_description(page, unit, has_limits=has_limits),
            drawing=BarChart(unit, tuple(page), has_limits),
        )


def _pages(groups: Sequence[BarGroup]) -> Iterator[list[BarGroup]]:
    page: list[BarGroup] = []
    for group in groups:
        for bars in _batches(group.bars, ROWS_A_CHART):
            if page and sum(len(one.bars) for one in page) + len(bars) > ROWS_A_CHART:
                yield page
                page = []
            page.append(BarGroup(group.title, bars))
    if page:
        yield page


def _batches(bars: tuple[Bar, ...], most: int) -> Iterator[tuple[Bar, ...]]:
    return (bars[i : i + most] for i in range(0, len(bars), most))


def _description(groups: Sequence[BarGroup], unit: str, *, has_limits: bool) -> str:
    """Return the chart in a sentence."""
    bars = [bar for group in groups for bar in group.bars]
    low, high = (human(f(bar.value for bar in bars), unit) for f in (min, max))
    shares = [bar.efficiency for bar in bars if bar.efficiency is not None]
    text = f"{plural(len(bars), 'case')} from {low} to {high}"
    if not shares:
        return f"{text}; no limit is known." if has_limits else f"{text}."
    return f"{text}; {percent(min(shares))} to {percent(max(shares))} of the limit."


# ---- peers ----


def peer_blocks(cases: Sequence[CaseResult]) -> tuple[Block, ...]:
    """Return what outside tools measured beside these cases; empty if none ran."""
    pairs = [(case, peer) for case in cases for peer in case.peers]
    if not pairs:
        return ()
    ran = [(case, peer) for case, peer in pairs if peer.statistics is not None]
    blocks: list[Block] = []
    if ran:
        blocks += [_peer_table(ran), _tool_table([peer for _, peer in ran]), _commands(ran)]
    blocks += _not_measured([peer for _, peer in pairs if peer.verdict not in WITH_FIGURE])
    return tuple(blocks)


PEER_INTRODUCTION = Paragraph(
    "Each tool ran in turn with trials of hostbench (ours, peer, ours, peer …). Both figures "
    "come from these pairs and are of the quantity that the row names; for a whole run, our "
    "figure is all work divided by all time, not the figure of undisturbed slices at the top. "
    "The ratio is ours divided by the peer's, pair by pair. A row has a ratio only if the "
    "conditions were equal and neither run was disturbed; otherwise the row or the verdict "
    "gives the reason. A tool that measures something else is listed as context."
)


def peer_name(peer: PeerResult) -> str:
    """Return the tool and its test."""
    return f"{peer.tool} {peer.title}"


def _peer_table(pairs: Sequence[tuple[CaseResult, PeerResult]]) -> Table:
    columns = (
        Column("case"),
        Column("tool"),
        Column("its figure", figures=True),
        Column("ours", figures=True),
        Column("ours / peer", figures=True),
        Column("interval", figures=True),
        Column("quantity, or what differs"),
        Column("n", figures=True),
        Column("verdict"),
    )
    rows = tuple(_peer_row(case, peer) for case, peer in pairs)
    return Table("Ours and the peers' figures", columns, (RowGroup(None, rows),))


def _peer_row(case: CaseResult, peer: PeerResult) -> tuple[Text, ...]:
    assert peer.statistics is not None
    ours, ratio = ours_beside(case, peer), peer.ratio
    interval = ratio.interval if ratio and ratio.half_width_ratio is not None else None
    return (
        case.title,
        peer_name(peer),
        human(peer.statistics.median, peer.unit),
        human(ours.median, peer.unit) if ours else NOTHING,
        significant(ratio.median) if ratio else NOTHING,
        f"{significant(interval.low)} – {significant(interval.high)}" if interval else NOTHING,
        _what_of(peer),
        str(peer.statistics.n),
        Mark(peer.verdict),
    )


def _what_of(peer: PeerResult) -> str:
    if peer.differs:
        return f"differs: {peer.difference}"
    return compared_quantity(peer.metric) if peer.metric else "something else"


def _tool_table(peers: Sequence[PeerResult]) -> Table:
    columns = (Column("tool"), Column("version"), Column("library"), Column("what it measures"))
    kinds = dict.fromkeys((peer_name(p), p.version, p.library, p.measures) for p in peers)
    rows = tuple(
        (name, version or NOTHING, library or NOTHING, measures)
        for name, version, library, measures in kinds
    )
    return Table("The tools", columns, (RowGroup(None, rows),))


def _commands(pairs: Sequence[tuple[CaseResult, PeerResult]]) -> Fold:
    rows = tuple(
        (case.title, peer_name(peer), Code(shlex.join(peer.command))) for case, peer in pairs
    )
    columns = (Column("case"), Column("tool"), Column("command"))
    caption = "How each tool was called"
    return Fold(caption, (Table(caption, columns, (RowGroup(None, rows),)),))


def _not_measured(peers: Sequence[PeerResult]) -> list[Block]:
    reasons: dict[tuple[str, Verdict, str], int] = {}
    for peer in peers:
        why = "; ".join(reason.text for reason in peer.reasons) or "no reason was given"
        key = (peer.tool, peer.verdict, why)
        reasons[key] = reasons.get(key, 0) + 1
    items = tuple(
        f"{tool}, {verdict} beside {plural(count, 'case')}: {full_sentence(why)}"
        for (tool, verdict, why), count in reasons.items()
    )
    return [Bullets(items)] if items else []


# ---- words ----


def quantity(name: str) -> str:
    """Return the name of a metric or a factor for people, without the unit, which its figures
    show."""
    return name.removesuffix("_hertz").removesuffix("_s").replace("_", " ")


def first_names(names: Sequence[str], most: int = 3) -> str:
    """Return a text such as `a, b, c and 4 more`."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
