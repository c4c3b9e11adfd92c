"""Each subsystem's section: its own (subsystem.py), or the plain one."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hostbench.base.units import full_sentence
from hostbench.model.registry import subsystems
from hostbench.model.result import CaseResult, ResultDocument, Verdict
from hostbench.report.content import BarGroup, Block, Code, Paragraph, Part, Section
from hostbench.report.figures import (
    PEER_INTRODUCTION,
    bar,
    bar_charts,
    by_workload,
    label,
    peer_blocks,
    primary,
    workload_table,
)
from hostbench.report.grouping import THREADS, Layout, charts, resolved
from hostbench.report.subsystem import HasReport, SubsystemReport

HEADLINES_MOST = 16

NAIVE_INTRODUCTION = Paragraph(
    "These workloads measure in a way that is known to mislead, to show by how much. Their "
    "figures describe the method, not the hardware: they have no limit and no peer, and are "
    "never among the best figures."
)


def subsystem_reports(document: ResultDocument) -> dict[str, SubsystemReport]:
    """Return the report of each subsystem in the document, by name."""
    cases: dict[str, list[CaseResult]] = {}
    for case in document.cases:
        cases.setdefault(case.workload.partition(".")[0], []).append(case)
    return {name: _report_of(name, found, document) for name, found in cases.items()}


def _report_of(name: str, cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    sound = [case for case in cases if not case.naive]
    report = _sound_report_of(name, sound, document)
    naive = [case for case in cases if case.naive]
    return replace(report, blocks=(*report.blocks, *naive_part(name, naive, document)))


def _sound_report_of(
    name: str, cases: Sequence[CaseResult], document: ResultDocument
) -> SubsystemReport:
    # A document may contain a subsystem that is not installed here.
    known = subsystems().get(name)
    if known and isinstance(known, HasReport):
        return known.report(cases, document)
    return plain_report(known.title if known else name, cases)


def section_of(name: str, report: SubsystemReport) -> Section:
    """Return the section that shows a report."""
    return Section(anchor=name, title=report.title, blocks=report.blocks)


def plain_report(title: str, cases: Sequence[CaseResult]) -> SubsystemReport:
    """Return the section of a subsystem without one of its own: bars and a table for each
    workload."""
    parts: list[Block] = [
        Part(workload, (*_bars(workload, found), workload_table(workload, found, of=len(cases))))
        for workload, found in by_workload(cases).items()
    ]
    parts += peer_part(cases)
    return SubsystemReport(title=title, headline=best_of_each(cases), blocks=tuple(parts))


def _bars(workload: str, cases: Sequence[CaseResult]) -> tuple[Block, ...]:
    bars = tuple(one for case in cases if (one := bar(case, label(case))))
    unit = next((metric.unit for case in cases if (metric := primary(case))), "1")
    return tuple(bar_charts(workload, unit, [BarGroup("", bars)]))


_NAIVE_LAYOUT = Layout(axes=(THREADS, "streams", "block_bytes"))


def naive_part(name: str, cases: Sequence[CaseResult], document: ResultDocument) -> list[Block]:
    """Return the part about workloads that mislead on purpose; empty if none was measured."""
    blocks: list[Block] = []
    for workload, found in by_workload(cases).items():
        metric = next(metric for metric in document.workloads[workload] if metric.primary)
        blocks.append(Paragraph((Code(workload), f": {full_sentence(metric.description)}")))
        with_params = [(case, resolved(case)) for case in found]
        blocks += charts(with_params, _NAIVE_LAYOUT, title=workload, has_limits=False)
        blocks.append(workload_table(workload, found, of=len(document.cases)))
    subsystem = subsystems().get(name)
    if blocks and subsystem and isinstance(subsystem, HasReport):
        blocks += subsystem.naive_blocks(cases, document)
    return [Part("Naive", (NAIVE_INTRODUCTION, *blocks))] if blocks else []


def peer_part(cases: Sequence[CaseResult]) -> list[Block]:
    """Return the part about outside tools; empty if none ran."""
    blocks = peer_blocks(cases)
    return [Part("Against trusted tools", (PEER_INTRODUCTION, *blocks))] if blocks else []


def best_of_each(cases: Sequence[CaseResult], *params: str) -> tuple[CaseResult, ...]:
    """Return the best case of each workload and value of `params`; if that is too much for a
    summary, of each workload."""
    found = _best(cases, params)
    return found if len(found) <= HEADLINES_MOST else _best(cases, ())


def preferred(
    cases: Sequence[CaseResult], is_meant: Callable[[CaseResult], bool]
) -> list[CaseResult]:
    """Return, for each workload, the cases for which `is_meant` is true; all cases if none of these
    has a figure."""
    kept: list[CaseResult] = []
    for found in by_workload(cases).values():
        meant = [case for case in found if is_meant(case)]
        kept += meant if any(primary(case) for case in meant) else found
    return kept


def _best(cases: Sequence[CaseResult], params: Sequence[str]) -> tuple[CaseResult, ...]:
    best: dict[tuple[object, ...], CaseResult] = {}
    for case in cases:
        key = (case.workload, *(case.params.get(name) for name in params))
        if key not in best or _merit(case) > _merit(best[key]):
            best[key] = case
    return tuple(best.values())


def _merit(case: CaseResult) -> tuple[bool, float]:
    """Return the rank of a case: a figure above its limit is no headline if there is another
    one."""
    metric = primary(case)
    if metric is None:
        return False, float("-inf")
    median = metric.statistics.median
    return case.verdict is not Verdict.INVALID, median if metric.direction == "higher" else -median
