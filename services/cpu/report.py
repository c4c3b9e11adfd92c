"""The report on the CPU: rates by instruction set, threads and data type; the way between cores."""

from collections.abc import Iterator, Sequence
from statistics import median

from hostbench.base.units import full_sentence, human, plural
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    MatrixChart,
    Paragraph,
    Part,
    RowGroup,
    Table,
)
from hostbench.report.figures import by_workload, workload_table
from hostbench.report.grouping import THREADS, Layout, charts, resolved
from hostbench.report.matrices import scale_of_times
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import best_of_each, peer_part
from services.cpu import cores_report, noise_report, roofline_report
from services.cpu.sharing import Distances, sharing_blocks

ISA, DTYPE = "isa", "dtype"
LAYOUT = Layout(
    axes=(ISA, THREADS, DTYPE),
    # One kind of thing for each group: first the data type, then the number of threads.
    first=(DTYPE, THREADS),
)

# What the suite maps draws of a CPU, as heads of an article.
TITLES = {
    "cpu.core_to_core": "From core to core",
    cores_report.LADDER: "Clock by CPUs at work",
    cores_report.YIELD: "The second thread of a core",
    "cpu.syscall": "System calls",
    "cpu.context_switch": "Context switches",
    "cpu.wakeup": "Wakeups",
    "cpu.page_fault": "Page faults",
    "cpu.process_start": "Starts of processes",
    noise_report.WORKLOAD: "Time lost to others",
    roofline_report.WORKLOAD: "Roofline",
}
# Workloads that bars do not explain.
MAPS = {
    cores_report.LADDER: cores_report.ladder_blocks,
    cores_report.YIELD: cores_report.yield_blocks,
    noise_report.WORKLOAD: noise_report.noise_blocks,
    roofline_report.WORKLOAD: roofline_report.roofline_blocks,
}

# The program measures all pairs of so many CPUs, and a sample of the pairs of more: CPUs with
# neighbouring numbers then share a row, so that few cells are empty.
EACH_CPU_MOST, ROWS_OF_SEVERAL = 64, 16


def report(cases: Sequence[CaseResult], document: ResultDocument) -> SubsystemReport:
    """See hostbench.report.subsystem.HasReport."""
    parts = [
        Part(_title(workload), tuple(_workload_blocks(workload, found, document)))
        for workload, found in by_workload(cases).items()
    ]
    return SubsystemReport(
        title="CPU",
        headline=best_of_each(cases, DTYPE),
        blocks=(*parts, *peer_part(cases)),
    )


def _title(workload: str) -> str:
    title = TITLES.get(workload)
    return f"{title} ({workload})" if title else workload


def _workload_blocks(
    workload: str, cases: Sequence[CaseResult], document: ResultDocument
) -> Iterator[Block]:
    metric = next(metric for metric in document.workloads[workload] if metric.primary)
    yield Paragraph(full_sentence(f"{metric.description[:1].upper()}{metric.description[1:]}"))
    if workload in MAPS:
        yield from MAPS[workload](cases)
    else:
        yield from charts([(case, resolved(case)) for case in cases], LAYOUT)
    for case in cases:
        yield from _distance_charts(case)
        yield from sharing_blocks(_distances(case), document.host)
    yield workload_table(workload, cases, of=len(document.cases))


def _distance_charts(case: CaseResult) -> Iterator[Chart]:
    """Yield the heat map of a case that measured pairs of more than two CPUs."""
    distances = _distances(case)
    cpus = sorted({cpu for pair in distances for cpu in pair})
    if len(cpus) < 3:
        return
    size = 1 if len(cpus) <= EACH_CPU_MOST else -(-len(cpus) // ROWS_OF_SEVERAL)
    rows = [cpus[first : first + size] for first in range(0, len(cpus), size)]
    cells = _cells(rows, distances)
    nearest = min(cells.values())
    yield Chart(
        title="How far CPUs are from each other",
        description=_distances_in_words(rows, distances),
        drawing=MatrixChart(
            labels=tuple(_name(row) for row in rows),
            groups=(("", len(rows)),),
            cells={pair: nearest / time_s for pair, time_s in cells.items()},
            scale=scale_of_times(nearest, max(cells.values())),
            words={pair: human(time_s, "s") for pair, time_s in cells.items()},
        ),
        numbers=_distance_table(cpus, distances),
    )


def _name(row: Sequence[int]) -> str:
    return f"CPU {row[0]}" if len(row) == 1 else f"{row[0]}–{row[-1]}"


def _cells(rows: Sequence[Sequence[int]], distances: Distances) -> dict[tuple[int, int], float]:
    """Return the time of each pair of rows, in both orders: the median of the pairs of their
    CPUs."""
    place = {cpu: number for number, row in enumerate(rows) for cpu in row}
    times: dict[tuple[int, int], list[float]] = {}
    for (one, other), time_s in distances.items():
        for pair in {(place[one], place[other]), (place[other], place[one])}:
            times.setdefault(pair, []).append(time_s)
    return {pair: median(found) for pair, found in times.items()}


def _distances_in_words(rows: Sequence[Sequence[int]], distances: Distances) -> str:
    nearest = f"The nearest pair: {human(min(distances.values()), 's')}."
    if all(len(row) == 1 for row in rows):
        return (
            "Each row and each column is a CPU, each cell the time of a hand-over between two. "
            f"CPUs that share a core or a cache are squares of one colour. {nearest}"
        )
    count = sum(map(len, rows))
    return (
        f"Rows and columns are {len(rows[0])} CPUs each, by number. A cell is the median time of a "
        f"hand-over between CPUs of both. Of the {plural(count * (count - 1) // 2, 'pair')}, "
        f"{len(distances):,} were measured. {nearest}"
    )


def _distances(case: CaseResult) -> Distances:
    """Return the time of each pair of CPUs: the median over its trials."""
    times: dict[tuple[int, int], list[float]] = {}
    for trial in case.trials:
        for pair in trial.end.pairs if trial.end else ():
            times.setdefault(pair.cpus, []).append(pair.value)
    return {pair: median(values) for pair, values in times.items()}


def _distance_table(cpus: Sequence[int], distances: Distances) -> Table:
    columns = (
        Column("CPU"),
        Column("nearest", figures=True),
        Column("median", figures=True),
        Column("farthest", figures=True),
    )
    rows: list[tuple[str, ...]] = []
    for cpu in cpus:
        times = [time_s for pair, time_s in distances.items() if cpu in pair]
        figures = (min(times), median(times), max(times))
        rows.append((f"CPU {cpu}", *(human(figure, "s") for figure in figures)))
    return Table("Time of a hand-over to other CPUs", columns, (RowGroup(None, tuple(rows)),))
