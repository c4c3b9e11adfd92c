"""Bandwidth: the kernels in plain passes, by threads, pages and stores."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hostbench.base.units import full_sentence, human, percent, plural
from hostbench.host.microarchitecture import Unknown
from hostbench.judge.case import BEST
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    Block,
    Column,
    CurveAxis,
    Paragraph,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.curves import Roof
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    figures_table,
    folded,
    label,
    primary,
)
from hostbench.report.grouping import Layout, Params, charts, resolved
from hostbench.report.sweeps import swept
from services.mem.params import PAGES, SIZE, STORE, THREADS
from services.mem.ports import PortBound, port_bound
from services.mem.report.sizes import over_size
from services.mem.report.values import (
    KERNEL,
    cache_marks,
    first_cache_bytes,
    median_of,
    name_of,
    number_of,
    requested,
    shown,
    size_word,
    working_set,
)

BANDWIDTH_BARS = Layout(
    axes=(KERNEL, THREADS, PAGES),
    first=(THREADS, PAGES),
)
STORE_BARS = Layout(
    axes=(STORE, KERNEL, THREADS, PAGES),
    first=(KERNEL, THREADS, PAGES),
)
LADDER_CURVES = Layout(axes=(KERNEL, THREADS, PAGES), first=(KERNEL,))
LADDER = Paragraph(
    "Bandwidth over the size of all arrays together: at each step down they no longer fit into a "
    "level of the hierarchy. Bytes per cycle show how many loads and stores a core starts in a "
    "cycle, and how wide they are."
)
PER_CYCLE = "bytes_per_cycle"
# By case.
Bounds = Mapping[str, PortBound | Unknown]


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield curves over swept working sets, bars by kernel, threads, pages and store for the
    others, and what `best` was."""
    ladder = swept(cases, SIZE, requested)
    yield from _ladder(ladder, document)
    drawn = {case.case for case in ladder}
    best, chosen = _by_store([case for case in cases if case.case not in drawn])
    title = "Bandwidth"
    yield from charts(best, BANDWIDTH_BARS, title=title)
    yield from charts(chosen, STORE_BARS, title=title)
    yield from _without_limit(cases)
    yield from _stores_and_pages(cases, of=len(document.cases))
    yield figures_table(cases, "Figures of bandwidth", of=len(document.cases))


def _ladder(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield the curves over the working set; their table has bytes per cycle, too."""
    if not cases:
        return
    bounds = _bounds(cases, document.host)
    yield LADDER
    yield from _ports(bounds.values())
    yield from over_size(
        "Bandwidth over the working set",
        cases,
        LADDER_CURVES,
        CurveAxis("bandwidth", "byte/s", logarithmic=True),
        marks=cache_marks(document.host),
        roof=Roof(
            "limit of the load and store ports in the L1 cache",
            lambda case: _roof(case, bounds, document.host),
        ),
    )
    yield from _bytes_per_cycle(bounds, cases, of=len(document.cases))


def _bounds(cases: Sequence[CaseResult], host: HostInventory) -> Bounds:
    """Return the bound of each case that has bytes per cycle: none in older documents."""
    starts = {
        case.case: next((trial.start for trial in case.trials if trial.start), None)
        for case in cases
        if median_of(case, PER_CYCLE) is not None
    }
    return {case: port_bound(host, start) for case, start in starts.items() if start is not None}


def _ports(bounds: Iterable[PortBound | Unknown]) -> Iterator[Paragraph]:
    """Yield what the ports of these cores do, or why that is unknown."""
    found = list(bounds)
    known = dict.fromkeys(one.because for one in found if isinstance(one, PortBound))
    unknown = dict.fromkeys(one.reason for one in found if isinstance(one, Unknown))
    if known:
        yield Paragraph(
            "In the L1 cache, what a core can load and store in a cycle is the limit: dashed in "
            "the chart, at the clock of each case. " + " ".join(map(full_sentence, known))
        )
    elif unknown:
        yield Paragraph(
            "Bytes per cycle have no limit here: " + " ".join(map(full_sentence, unknown))
        )


def _roof(case: CaseResult, bounds: Bounds, host: HostInventory) -> float | None:
    """Return what the ports allow in bytes a second, at the clock of the case. None outside the L1
    cache, where they are not what limits the case."""
    bound, per_cycle = bounds.get(case.case), median_of(case, PER_CYCLE)
    rate, size, cache = primary(case), number_of(case, SIZE), first_cache_bytes(host)
    threads = number_of(case, THREADS)
    if not isinstance(bound, PortBound) or not (per_cycle and rate and size and cache and threads):
        return None
    if size > cache * threads:
        return None
    return rate.statistics.median / per_cycle * bound.bytes_per_cycle


def _bytes_per_cycle(bounds: Bounds, cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield a row for each working set and kernel with a figure per cycle."""
    rows = tuple(
        (
            size_word(number_of(case, SIZE)),
            label(case),
            shown(case, case.primary),
            human(per_cycle, "byte/cycle"),
            *_allowed(per_cycle, bounds.get(case.case)),
        )
        for case in sorted(cases, key=lambda case: (name_of(case), number_of(case, SIZE) or 0))
        if (per_cycle := median_of(case, PER_CYCLE)) is not None
    )
    if rows:
        columns = (
            Column("working set", figures=True),
            Column("case"),
            Column("bandwidth", figures=True),
            Column("of one thread, per cycle", figures=True),
            Column("its ports", figures=True),
            Column("share", figures=True),
        )
        yield folded(Table("Bytes per cycle", columns, (RowGroup(None, rows),)), len(rows), of=of)


def _allowed(per_cycle: float, bound: PortBound | Unknown | None) -> tuple[str, str]:
    if not isinstance(bound, PortBound):
        return NOTHING, NOTHING
    most = bound.bytes_per_cycle
    return f"{most:g} byte/cycle", percent(per_cycle / most)


def _without_limit(cases: Sequence[CaseResult]) -> Iterator[Paragraph]:
    """Yield why figures have no limit, in one sentence; the part on method has every reason."""
    figures = [metric for case in cases if (metric := primary(case))]
    reasons = Counter(
        metric.limit.reason
        for metric in figures
        if metric.limit and metric.limit.value is None and metric.limit.reason
    )
    if reasons:
        ((reason, _),) = reasons.most_common(1)
        without = f"No limit for {reasons.total()} of {plural(len(figures), 'figure')}"
        often = "; most often" if len(reasons) > 1 else ""
        yield Paragraph(full_sentence(f"{without}{often}: {reason}"))


def _by_store(
    cases: Sequence[CaseResult],
) -> tuple[list[tuple[CaseResult, Params]], list[tuple[CaseResult, Params]]]:
    """Return the cases that used the best store, or have none, and the cases with a requested
    store."""
    best: list[tuple[CaseResult, Params]] = []
    known: list[tuple[CaseResult, Params]] = []
    for case in cases:
        params = requested(case)
        if params.get(STORE, BEST) == BEST:
            best.append((case, {name: one for name, one in params.items() if name != STORE}))
        else:
            known.append((case, params))
    return best, known


_STORE_COLUMNS = (
    Column("case"),
    Column("huge pages", figures=True),
    Column("working set", figures=True),
    Column("store"),
    Column("plain tried", figures=True),
    Column("nt tried", figures=True),
    Column("libc tried", figures=True),
)


def _stores_and_pages(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield what `best` was and what it was chosen from, and the real pages."""
    groups = tuple(
        RowGroup(workload, tuple(_store_row(case) for case in found if primary(case)))
        for workload, found in by_workload(cases).items()
        if any(primary(case) for case in found)
    )
    if groups:
        table = Table("Stores, pages and working sets", _STORE_COLUMNS, groups)
        yield folded(table, sum(len(group.rows) for group in groups), of=of)


def _store_row(case: CaseResult) -> tuple[Text, ...]:
    store = resolved(case).get(STORE)
    return (
        label(case),
        percent(median_of(case, "huge_page_ratio")),
        working_set(case),
        str(store) if store is not None else NOTHING,
        *(shown(case, f"bytes_per_second_{tried}") for tried in ("plain", "nt", "libc")),
    )
