"""Bandwidth: the kernels in plain passes, by threads, pages and stores."""

from collections import Counter
from collections.abc import Iterator, Sequence

from hostbench.base.units import percent, plural
from hostbench.judge.case import BEST
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Column, Paragraph, RowGroup, Table, Text
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    figures_table,
    folded,
    label,
    primary,
    sentence,
)
from hostbench.report.grouping import Layout, Params, charts, resolved
from services.mem.params import PAGES, STORE, THREADS
from services.mem.report.values import KERNEL, median_of, requested, shown, working_set

BANDWIDTH_BARS = Layout(
    axes=(KERNEL, THREADS, PAGES),
    first=(THREADS, PAGES),
)
STORE_BARS = Layout(
    axes=(STORE, KERNEL, THREADS, PAGES),
    first=(KERNEL, THREADS, PAGES),
)


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield bars by kernel, threads, pages and store, and what `best` was."""
    best, chosen = _by_store(cases)
    title = "Bandwidth"
    yield from charts(best, BANDWIDTH_BARS, title=title)
    yield from charts(chosen, STORE_BARS, title=title)
    yield from _without_limit(cases)
    yield from _stores_and_pages(cases, of=len(document.cases))
    yield figures_table(cases, "Figures of bandwidth", of=len(document.cases))


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
        yield Paragraph(sentence(f"{without}{often}: {reason}"))


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
