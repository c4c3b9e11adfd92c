"""What the memory of each NUMA node is to the CPUs of each node: matrices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hostbench.base.units import human
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    MatrixChart,
    MatrixScale,
    Paragraph,
    RowGroup,
    Table,
)
from hostbench.report.figures import NOTHING, figures_table, label
from hostbench.report.matrices import scale_of_rates, scale_of_times

MEANING = Paragraph(
    "Each row is the NUMA node of the CPUs that access, each column the node of the memory; on "
    "the diagonal they are the same. A node with an empty row has memory but no thread of the "
    "trial, such as a CXL expander; one with an empty column has no memory that was free and "
    "allowed. hostbench looked up every page before and after the accesses: each was on its node."
)
# By CPU node and memory node.
Matrix = Mapping[tuple[int, int], float]
DISTANCE = "distance"


@dataclass(frozen=True)
class _Quantity:
    """A figure of each pair of nodes."""

    metric: str
    unit: str
    title: str
    meaning: str
    is_time: bool = True


QUANTITIES = (
    _Quantity(
        "access_time_s",
        "s",
        "Time of an access, idle",
        "One CPU of the row's node follows pointers through the column's memory, all others rest.",
    ),
    _Quantity(
        "loaded_access_time_s",
        "s",
        "Time of an access, loaded",
        "The same while all other CPUs of the row's node read from that memory.",
    ),
    _Quantity(
        "bytes_per_second",
        "byte/s",
        "Bandwidth of reading",
        "All CPUs of the row's node read from the column's memory together.",
        is_time=False,
    ),
)


def part(cases: Sequence[CaseResult], document: ResultDocument) -> Iterator[Block]:
    """Yield the matrices of each case, with the kernel's distances beside them."""
    if any(_matrix(case, quantity.metric) for case in cases for quantity in QUANTITIES):
        yield MEANING
    for case in cases:
        of = f" ({label(case)})" if len(cases) > 1 else ""
        for quantity in QUANTITIES:
            if matrix := _matrix(case, quantity.metric):
                yield _chart(quantity, matrix, of)
        if distances := _matrix(case, DISTANCE):
            title = f"Distances that the kernel states (from ACPI's SLIT, if there is one){of}"
            yield _table(title, distances, lambda value: f"{value:g}")
    yield figures_table(cases, "Figures of NUMA nodes", of=len(document.cases))


def _matrix(case: CaseResult, metric: str) -> Matrix:
    """Return the figure of each pair of nodes: the median over the trials."""
    found: dict[tuple[int, int], list[float]] = {}
    for trial in case.trials:
        for one in trial.end.node_figures if trial.end else ():
            if one.metric == metric:
                found.setdefault((one.cpu_node, one.memory_node), []).append(one.value)
    return {pair: median(values) for pair, values in found.items()}


def _chart(quantity: _Quantity, matrix: Matrix, of: str) -> Chart:
    nodes = sorted({node for pair in matrix for node in pair})
    place = {node: number for number, node in enumerate(nodes)}
    least, most = min(matrix.values()), max(matrix.values())
    cells = {
        (place[row], place[column]): least / value if quantity.is_time else value / most
        for (row, column), value in matrix.items()
    }
    return Chart(
        title=f"{quantity.title}{of}",
        description=(
            f"{quantity.meaning} From {human(least, quantity.unit)} to "
            f"{human(most, quantity.unit)}."
        ),
        drawing=MatrixChart(
            labels=tuple(f"node {node}" for node in nodes),
            groups=(("", len(nodes)),),
            cells=cells,
            scale=_scale(quantity, least, most),
            words={
                (place[row], place[column]): human(value, quantity.unit)
                for (row, column), value in matrix.items()
            },
            rows_are="CPUs of",
            columns_are="memory of",
        ),
        numbers=_table(
            f"{quantity.title}{of}: the figures", matrix, lambda value: human(value, quantity.unit)
        ),
    )


def _scale(quantity: _Quantity, least: float, most: float) -> MatrixScale:
    if quantity.is_time:
        return scale_of_times(least, most)
    return scale_of_rates(most, least, quantity.unit)


def _table(title: str, matrix: Matrix, word: Callable[[float], str]) -> Table:
    rows = sorted({row for row, _ in matrix})
    columns = sorted({column for _, column in matrix})
    return Table(
        title,
        (
            Column("CPUs of"),
            *(Column(f"memory of node {column}", figures=True) for column in columns),
        ),
        (
            RowGroup(
                None,
                tuple(
                    (f"node {row}", *(_cell(matrix.get((row, column)), word) for column in columns))
                    for row in rows
                ),
            ),
        ),
    )


def _cell(value: float | None, word: Callable[[float], str]) -> str:
    return NOTHING if value is None else word(value)
