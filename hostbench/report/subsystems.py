"""Each subsystem's own section.

A subsystem that has more to say than the plain section below has a module
`services.<subsystem>.report` with one function:

    def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport

`cases` are the document's cases of this subsystem, in its order, without those of naive workloads:
these have a part of their own at the end, the same in all subsystems, and are never a headline. A
subsystem of which only naive ones were measured is asked with no cases. `document` is for what else
the section needs, such as the descriptions of the metrics. It returns content (content.py), never
HTML or Markdown: tables, charts and paragraphs, most of which figures.py builds from cases.
Whatever it says must hold for any document of the schema: cases without a figure, without a limit,
without a trial, with peers and without. It reads nothing but its arguments.

It may have a second function, for what stands in the part of the naive workloads below their
figures, such as what a method leaves out:

    def naive(cases: Sequence[CaseResult], document: ResultDocument) -> Iterable[Block]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hostbench.models.result import CaseResult, ResultDocument, Verdict
from hostbench.plan import param_word
from hostbench.report.content import BarGroup, Block, Code, Paragraph, Part, Section
from hostbench.report.figures import (
    PEER_INTRODUCTION,
    bar,
    bar_charts,
    by_workload,
    label,
    peer_blocks,
    primary,
    sentence,
    workload_table,
)
from hostbench.report.grouping import THREADS, Layout, charts, resolved, word
from hostbench.services import service_module

HEADLINES_MOST = 16

NAIVE_INTRODUCTION = Paragraph(
    "These workloads measure the way that is known to mislead, so that it shows by how much. What "
    "stands here is what the method tells, not what the hardware does: it is held against no limit "
    "and no other tool, and is nowhere among the best figures."
)


@dataclass(frozen=True)
class SubsystemReport:
    """A subsystem's part of the report. `headline`: the few cases that the summary shows."""

    title: str
    headline: tuple[CaseResult, ...]
    blocks: tuple[Block, ...]


def subsystem_reports(document: ResultDocument) -> dict[str, SubsystemReport]:
    """What each subsystem of the document has to say, by its name."""
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
    module = service_module(name, "report")
    if module is None:
        return plain_report(name, cases)
    report: SubsystemReport = module.report(cases, document)
    return report


def section_of(name: str, report: SubsystemReport) -> Section:
    """The section that shows it."""
    return Section(anchor=name, title=report.title, blocks=report.blocks)


def plain_report(name: str, cases: Sequence[CaseResult]) -> SubsystemReport:
    """The section of a subsystem that has none of its own: bars and a table a workload."""
    parts: list[Block] = [
        Part(workload, (*_bars(workload, found), workload_table(workload, found, of=len(cases))))
        for workload, found in by_workload(cases).items()
    ]
    parts += peer_part(cases)
    return SubsystemReport(title=name, headline=best_of_each(cases), blocks=tuple(parts))


def _bars(workload: str, cases: Sequence[CaseResult]) -> tuple[Block, ...]:
    bars = tuple(one for case in cases if (one := bar(case, label(case))))
    unit = next((metric.unit for case in cases if (metric := primary(case))), "1")
    return tuple(bar_charts(workload, unit, [BarGroup("", bars)]))


def _naive_word(name: str, value: object) -> str:
    return word(name, value) if value is None else param_word(name, value)


_NAIVE_LAYOUT = Layout(
    axes={THREADS: "number of threads", "streams": "number of streams", "block_bytes": "block"},
    word=_naive_word,
)


def naive_part(name: str, cases: Sequence[CaseResult], document: ResultDocument) -> list[Block]:
    """The part about workloads that mislead on purpose; empty where none was measured."""
    blocks: list[Block] = []
    for workload, found in by_workload(cases).items():
        metric = next(metric for metric in document.workloads[workload] if metric.primary)
        blocks.append(Paragraph((Code(workload), f": {sentence(metric.description)}")))
        told = [(case, resolved(case)) for case in found]
        blocks += charts(told, _NAIVE_LAYOUT, title=workload, has_limits=False)
        blocks.append(workload_table(workload, found, of=len(document.cases)))
    own = getattr(service_module(name, "report"), "naive", None)
    if blocks and own:
        blocks += own(cases, document)
    return [Part("Naive", (NAIVE_INTRODUCTION, *blocks))] if blocks else []


def peer_part(cases: Sequence[CaseResult]) -> list[Block]:
    """The part about outside tools; empty where none was asked."""
    blocks = peer_blocks(cases)
    return [Part("Against trusted tools", (PEER_INTRODUCTION, *blocks))] if blocks else []


def best_of_each(cases: Sequence[CaseResult], *params: str) -> tuple[CaseResult, ...]:
    """The best case of each workload and value of `params`; of each workload when that would be
    more than a summary holds."""
    found = _best(cases, params)
    return found if len(found) <= HEADLINES_MOST else _best(cases, ())


def preferred(
    cases: Sequence[CaseResult], is_meant: Callable[[CaseResult], bool]
) -> list[CaseResult]:
    """Of each workload the cases that are meant; all where none of them has a figure."""
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
    """A figure above its limit is no headline when there is another."""
    metric = primary(case)
    if metric is None:
        return False, float("-inf")
    median = metric.statistics.median
    return case.verdict is not Verdict.INVALID, median if metric.direction == "higher" else -median
