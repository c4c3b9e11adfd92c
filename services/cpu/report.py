"""What the report says of the CPU: rates by instruction set, threads and data type."""

from collections.abc import Iterator, Mapping, Sequence

from hostbench.models.result import CaseResult, ResultDocument
from hostbench.models.table import Metric
from hostbench.report.content import Bar, BarGroup, Block, Chart, Paragraph, Part
from hostbench.report.figures import (
    bar,
    bar_charts,
    by_workload,
    primary,
    quantity,
    sentence,
    workload_table,
)
from hostbench.report.subsystems import SubsystemReport, best_of_each, peer_part

ISA, THREADS, DTYPE = "isa", "threads", "dtype"
# What bars next to one another differ in: the first of these that has several values.
AXES = {ISA: "instruction set", THREADS: "number of threads", DTYPE: "data type"}
# How it was measured rather than what: never a label.
_UNLABELLED = frozenset({"duration_s", "warmup_s", "slice_s", "sample_interval_s"})


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystems."""
    parts = [
        Part(workload, tuple(_workload_blocks(workload, found, document)))
        for workload, found in by_workload(cases).items()
    ]
    return SubsystemReport(
        title="CPU",
        headline=best_of_each(cases, DTYPE),
        blocks=(*parts, *peer_part(cases)),
    )


def _workload_blocks(
    workload: str, cases: Sequence[CaseResult], document: ResultDocument
) -> Iterator[Block]:
    metric = next(metric for metric in document.workloads[workload] if metric.primary)
    yield Paragraph(sentence(f"{metric.description[:1].upper()}{metric.description[1:]}"))
    yield from _charts(metric, cases)
    yield workload_table(workload, cases, of=len(document.cases))


def _charts(metric: Metric, cases: Sequence[CaseResult]) -> Iterator[Chart]:
    shown = [case for case in cases if primary(case)]
    names = _telling_params(shown)
    axis = names[0] if names else None
    groups: dict[str, list[Bar]] = {}
    for case in shown:
        params = resolved(case)
        rest = [name for name in names if name != axis]
        # One kind of thing a group: first the data type, then how many threads.
        rest.sort(key=lambda name: (name != DTYPE, name != THREADS))
        title = ", ".join(_word(name, params.get(name)) for name in rest)
        one = bar(case, _word(axis, params.get(axis)) if axis else case.label or case.workload)
        if one is not None:
            groups.setdefault(title, []).append(one)
    by_title = [BarGroup(title, tuple(bars)) for title, bars in groups.items()]
    title = quantity(metric.name).capitalize()
    title = f"{title} by {AXES.get(axis, axis)}" if axis else title
    yield from bar_charts(title, metric.unit, by_title)


def resolved(case: CaseResult) -> Mapping[str, object]:
    """The parameters as the program resolved them: what `best` was."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    return {**case.params, **(start.params if start else {})}


def _telling_params(cases: Sequence[CaseResult]) -> list[str]:
    """The parameters in which the cases differ, and the usual ones that they share."""
    all_params = [resolved(case) for case in cases]
    names = dict.fromkeys(name for params in all_params for name in params)
    differing = [
        name
        for name in names
        if name not in _UNLABELLED and len({str(params.get(name)) for params in all_params}) > 1
    ]
    usual = [name for name in AXES if name in names and name not in differing]
    return (
        [name for name in AXES if name in differing]
        + [name for name in differing if name not in AXES]
        + usual
    )


def _word(name: str, value: object) -> str:
    if name == THREADS:
        return "1 thread" if value == 1 else f"{value} threads"
    if isinstance(value, str) and value[:1].isalpha():
        return value
    if isinstance(value, tuple):
        return f"{name}={','.join(str(one) for one in value)}"
    if value is None:
        return f"{name} not set"
    return f"{name}={value}"
