"""The report on the CPU: rates by instruction set, threads and data type."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Paragraph, Part
from hostbench.report.figures import by_workload, sentence, workload_table
from hostbench.report.grouping import THREADS, Layout, charts, resolved
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import best_of_each, peer_part
from services.cpu import noise_report, roofline_report

ISA, DTYPE = "isa", "dtype"
LAYOUT = Layout(
    axes=(ISA, THREADS, DTYPE),
    # One kind of thing for each group: first the data type, then the number of threads.
    first=(DTYPE, THREADS),
)
# Workloads that bars do not explain.
MAPS = {
    noise_report.WORKLOAD: noise_report.noise_blocks,
    roofline_report.WORKLOAD: roofline_report.roofline_blocks,
}


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystem.HasReport."""
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
    if workload in MAPS:
        yield from MAPS[workload](cases)
    else:
        yield from charts([(case, resolved(case)) for case in cases], LAYOUT)
    yield workload_table(workload, cases, of=len(document.cases))
