"""What the report says of memory: bandwidth, latency, latency under load, accesses, blocks."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from hostbench.models.host import HostInventory
from hostbench.models.result import CaseResult, ResultDocument, Verdict
from hostbench.report.content import (
    Block,
    Column,
    CurveAxis,
    CurveMark,
    Paragraph,
    Part,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.curves import Along, curve_charts
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    figures_table,
    folded,
    label,
    primary,
    sentence,
    workload_table,
)
from hostbench.report.grouping import (
    THREADS,
    Layout,
    Params,
    charts,
    resolved,
    word,
)
from hostbench.report.subsystems import SubsystemReport, best_of_each, peer_part
from hostbench.units import binary_bytes, human, percent, plural

KERNELS = ("read", "write", "copy", "scale", "add", "triad")
BLOCK_KERNELS = ("read_write", "memset_write")
KERNEL, STORE, PAGES, PATTERN = "kernel", "store", "pages", "pattern"
SIZE, SHARE, BLOCK, INTENSITY, LOAD = "size_bytes", "size_share", "block_bytes", "intensity", "load"
OPERATION = "operation"
CACHE_INFLUENCED = "cache_influenced"
# Above it the loop and not the memory is a good part of the figure.
EMPTY_LOOP_MOST = 0.2
WORD_BYTES = 8

INTRODUCTION = Paragraph(
    "Bandwidth is based on a variant of the STREAM benchmark. It counts bytes as STREAM does: for "
    "each element of 8 bytes, read and write count 8, copy and scale 16, add and triad 24; what a "
    "cache reads because it is going to be written is not counted. 1 GB/s is 10⁹ bytes a second; "
    "1 MiB of a working set is 2²⁰ bytes. A working set is all arrays of all threads together. "
    "The page mode is a part of every figure: a peer is only compared at its own."
)
LATENCY = Paragraph(
    "The time of one access that must wait for the one before it, over the size of what is "
    "accessed: one pointer leads to the next, in an order that no prefetcher can foresee. Each "
    "step of a curve is a level of the hierarchy that the working set no longer fits into, caches "
    "first, then what the TLB covers."
)
LOADED = Paragraph(
    "The time of one such access of the first thread while the other threads load the memory, "
    "over the bandwidth that these get. The curve bends where requests begin to queue."
)
SMALL = Paragraph(
    "Independent accesses to random places: the time of one, amortised over a batch of many in "
    "flight, and so far below the latency. Raw is what was timed, empty the same loop without the "
    "access, net the difference. Where the empty loop is more than a fifth of raw, the figure "
    "tells of the loop as well as of the memory."
)
BLOCKS = Paragraph(
    "The same bytes in blocks, one after another or in random order. Blocks of 8 KiB and more are "
    "timed one by one too; the clock would be most of a smaller one's time."
)


def _word(name: str, value: object) -> str:
    """How a value is called; what some workloads leave to their default is not."""
    if value is None or value == "best":
        return ""
    if name in (SIZE, BLOCK):
        return binary_bytes(value) if isinstance(value, int | float) else f"{value} size"
    if name == PAGES:
        return "4 KiB pages" if value == "4k" else f"{value} pages"
    if name == STORE:
        return f"{value} stores"
    if name == LOAD:
        return f"loaded by {value}"
    return word(name, value)


BANDWIDTH_BARS = Layout(
    axes={KERNEL: "kernel", THREADS: "number of threads", PAGES: "page mode"},
    first=(THREADS, PAGES),
    word=_word,
)
STORE_BARS = Layout(
    axes={STORE: "store", KERNEL: "kernel", THREADS: "number of threads", PAGES: "page mode"},
    first=(KERNEL, THREADS, PAGES),
    word=_word,
)
ACCESS_BARS = Layout(
    axes={BLOCK: "block size", OPERATION: "operation", THREADS: "number of threads"},
    first=(OPERATION, THREADS),
    word=_word,
)
LATENCY_CURVES = Layout(axes={PAGES: "", THREADS: ""}, word=_word)
LOADED_CURVES = Layout(axes={LOAD: "", PAGES: ""}, first=(LOAD, PAGES), word=_word)
BLOCK_CURVES = Layout(
    axes={KERNEL: "", PATTERN: "", THREADS: ""}, first=(KERNEL, PATTERN), word=_word
)


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystems."""
    kinds: dict[Callable[..., Iterator[Block]], list[CaseResult]] = {}
    for case in cases:
        kinds.setdefault(_kind(case), []).append(case)
    parts = [
        Part(title, tuple(blocks(kinds[blocks], document)))
        for title, blocks in _PARTS
        if blocks in kinds
    ]
    return SubsystemReport(
        title="Memory",
        headline=_headline(cases),
        blocks=(INTRODUCTION, *parts, *peer_part(cases)),
    )


def _kind(case: CaseResult) -> Callable[..., Iterator[Block]]:
    """The part of the section that a case belongs to."""
    name, params = _name(case), case.params
    if name in KERNELS and params.get(BLOCK) is None and params.get(PATTERN) != "random":
        return _bandwidth
    if name in KERNELS or name in BLOCK_KERNELS:
        return _blocks
    kinds = {
        "pointer_chase": _latency,
        "loaded_latency": _loaded_latency,
        "random_access": _small_accesses,
    }
    return kinds.get(name, _others)


def _name(case: CaseResult) -> str:
    return case.workload.partition(".")[2]


def _asked(case: CaseResult) -> dict[str, object]:
    """What the suite asked for, and the kernel."""
    return {KERNEL: _name(case), **case.params}


def _number(case: CaseResult, param: str) -> float | None:
    """A parameter as the program resolved it; None where it is no number above zero."""
    value = resolved(case).get(param)
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _median(case: CaseResult, metric: str) -> float | None:
    found = case.metrics.get(metric)
    return found.statistics.median if found else None


def _shown(case: CaseResult, metric: str) -> str:
    found = case.metrics.get(metric)
    return human(found.statistics.median, found.unit) if found else NOTHING


def _size(value: float | None) -> str:
    return binary_bytes(value) if value else NOTHING


def _working_set(case: CaseResult) -> str:
    said = _size(_number(case, SIZE))
    return f"{said}, cache-influenced" if _is_cache_influenced(case) else said


def _is_cache_influenced(case: CaseResult) -> bool:
    return any(one.code == CACHE_INFLUENCED for trial in case.trials for one in trial.warnings)


# ---- bandwidth ----


def _bandwidth(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    best, chosen = _by_store(cases)
    title = "Bandwidth"
    yield from charts(best, BANDWIDTH_BARS, title=title)
    yield from charts(chosen, STORE_BARS, title=title)
    yield from _without_limit(cases)
    yield from _stores_and_pages(cases, of=len(document.cases))
    yield figures_table(cases, "Figures of bandwidth", of=len(document.cases))


def _without_limit(cases: Sequence[CaseResult]) -> Iterator[Paragraph]:
    """Why figures have no limit, in one sentence; every reason stands in the part on method."""
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
        yield Paragraph(sentence(f"{without}{often}: {reason}"))


def _by_store(
    cases: Sequence[CaseResult],
) -> tuple[list[tuple[CaseResult, Params]], list[tuple[CaseResult, Params]]]:
    """The cases that took the best store, or have none; and those that were told which to take."""
    best: list[tuple[CaseResult, Params]] = []
    told: list[tuple[CaseResult, Params]] = []
    for case in cases:
        params = _asked(case)
        if params.get(STORE, "best") == "best":
            best.append((case, {name: one for name, one in params.items() if name != STORE}))
        else:
            told.append((case, params))
    return best, told


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
    """What `best` was and what it was chosen from, and what the pages really were."""
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
        percent(_median(case, "huge_page_ratio")),
        _working_set(case),
        str(store) if store is not None else NOTHING,
        *(_shown(case, f"bytes_per_second_{tried}") for tried in ("plain", "nt", "libc")),
    )


# ---- latency ----


def _latency(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    yield LATENCY
    along = Along(
        CurveAxis("working set", "byte", logarithmic=True),
        lambda case: _number(case, SIZE),
        left_out=(SIZE, SHARE),
    )
    yield from curve_charts(
        "Latency over the working set",
        [(case, _asked(case)) for case in cases],
        LATENCY_CURVES,
        along,
        CurveAxis("time of an access", "s", logarithmic=True),
        marks=_cache_marks(document.host),
    )
    yield workload_table("mem.pointer_chase", cases, of=len(document.cases))


def _cache_marks(host: HostInventory) -> tuple[CurveMark, ...]:
    """What one core sees of each level; caches of instructions are none of it."""
    sizes = {
        (cache.level, cache.size_bytes)
        for cache in host.caches
        if cache.size_bytes and cache.type != "Instruction"
    }
    return tuple(
        CurveMark(f"L{level} {binary_bytes(size)}", float(size)) for level, size in sorted(sizes)
    )


def _loaded_latency(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    yield LOADED
    ordered = sorted(cases, key=lambda case: _number(case, INTENSITY) or 0.0)
    along = Along(
        CurveAxis("bandwidth of the load", "byte/s"),
        lambda case: _median(case, "load_bytes_per_second"),
        left_out=(INTENSITY,),
        as_given=True,
    )
    yield from curve_charts(
        "Latency under load",
        [(case, _asked(case)) for case in ordered],
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
        (label(case), _shown(case, "load_bytes_per_second"), _shown(case, case.primary))
        for case in cases
        if primary(case)
    )
    return Table("Latency and the load beside it", columns, (RowGroup(None, rows),))


# ---- small accesses ----


def _small_accesses(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    yield SMALL
    yield from charts(
        [(case, _asked(case)) for case in cases], ACCESS_BARS, title="Time of an access"
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
    ratio = _median(case, "empty_loop_ratio")
    flag = ", above a fifth" if ratio is not None and ratio > EMPTY_LOOP_MOST else ""
    return (
        label(case),
        _working_set(case),
        _shown(case, case.primary),
        _shown(case, "access_time_s_empty"),
        _shown(case, "access_time_s_net"),
        f"{percent(ratio)}{flag}",
        _shown(case, "accesses_per_second"),
    )


# ---- blocks ----


def _blocks(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    yield BLOCKS
    along = Along(
        CurveAxis("block", "byte", logarithmic=True),
        lambda case: _number(case, BLOCK),
        left_out=(BLOCK,),
    )
    yield from curve_charts(
        "Bandwidth over the size of a block",
        [(case, _asked(case)) for case in cases],
        BLOCK_CURVES,
        along,
        CurveAxis("bandwidth", "byte/s"),
        marks=_cache_marks(document.host),
    )
    yield from _block_times(cases)
    yield figures_table(cases, "Figures of blocks", of=len(document.cases))


_QUANTILES = {"median": "median", "p99": "99 %", "p999": "99.9 %", "max": "longest"}


def _block_times(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """The distribution of the blocks that were timed one by one."""
    columns = (
        Column("case"),
        Column("block", figures=True),
        *(Column(said, figures=True) for said in _QUANTILES.values()),
    )
    groups = []
    for workload, found in by_workload(cases).items():
        rows = tuple(_block_row(case) for case in found if "block_time_s_median" in case.metrics)
        if rows:
            groups.append(RowGroup(workload, rows))
    if groups:
        yield Table("Time of a block", columns, tuple(groups))


def _block_row(case: CaseResult) -> tuple[Text, ...]:
    return (
        label(case),
        _size(_number(case, BLOCK)),
        *(_shown(case, f"block_time_s_{quantile}") for quantile in _QUANTILES),
    )


def _others(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    for workload, found in by_workload(cases).items():
        yield workload_table(workload, found, of=len(document.cases))


_PARTS = (
    ("Bandwidth", _bandwidth),
    ("Latency", _latency),
    ("Latency under load", _loaded_latency),
    ("Small random accesses", _small_accesses),
    ("Blocks", _blocks),
    ("Other workloads", _others),
)


# ---- summary ----


def _headline(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Of bandwidth and blocks the best case that no cache helped; of latency the largest working
    set in each page mode; of latency under load the heaviest load."""
    bandwidth = [case for case in cases if _kind(case) is _bandwidth]
    latency = [case for case in cases if _kind(case) is _latency]
    loaded = [case for case in cases if _kind(case) is _loaded_latency]
    small = [case for case in cases if _kind(case) is _small_accesses]
    blocks = [case for case in cases if _kind(case) in (_blocks, _others)]
    return (
        *best_of_each(_without_caches(bandwidth)),
        *_last(latency, PAGES, lambda case: _number(case, SIZE)),
        *_last(loaded, LOAD, lambda case: _median(case, "load_bytes_per_second")),
        *best_of_each(_without_caches(_of_words(small)), OPERATION),
        *best_of_each(_without_caches(blocks)),
    )


def _of_words(cases: Sequence[CaseResult]) -> Sequence[CaseResult]:
    """The cases of the block size that most people mean, if there are any."""
    return [case for case in cases if case.params.get(BLOCK) == WORD_BYTES] or cases


def _without_caches(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Of each workload the cases whose working set was large enough; all where there is none."""
    kept: list[CaseResult] = []
    for found in by_workload(cases).values():
        large = [case for case in found if not _is_cache_influenced(case)]
        kept += large if any(primary(case) for case in large) else found
    return kept


def _last(
    cases: Sequence[CaseResult], param: str, x_of: Callable[[CaseResult], float | None]
) -> tuple[CaseResult, ...]:
    """The case farthest along the curve, of each value of `param`."""
    found: dict[object, CaseResult] = {}
    for case in cases:
        key = case.params.get(param)
        if key not in found or _reach(case, x_of) > _reach(found[key], x_of):
            found[key] = case
    return tuple(found.values())


def _reach(
    case: CaseResult, x_of: Callable[[CaseResult], float | None]
) -> tuple[bool, bool, float]:
    """A figure above its limit, or none, is no headline when there is another."""
    usable = primary(case) is not None
    return usable, usable and case.verdict is not Verdict.INVALID, x_of(case) or 0.0
