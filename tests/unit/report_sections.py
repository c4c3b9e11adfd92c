"""What stands in a subsystem's section of the report, and documents that say less than a whole
one."""

from collections.abc import Sequence

from hostbench.model.events import EndEvent
from hostbench.model.limit import Limit
from hostbench.model.registry import find_subsystem
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    BarChart,
    Block,
    Chart,
    Code,
    CurveChart,
    Drawing,
    Fold,
    Part,
    Table,
)
from hostbench.report.subsystem import HasReport


def flat(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with those inside them."""
    found: list[Block] = []
    for block in blocks:
        found.append(block)
        if isinstance(block, Part | Fold):
            found += flat(block.blocks)
    return found


def blocks_of(document: ResultDocument) -> list[Block]:
    """The blocks of the section of its subsystem, which is one."""
    (name,) = {case.workload.partition(".")[0] for case in document.cases}
    subsystem = find_subsystem(name)
    assert isinstance(subsystem, HasReport)
    return flat(subsystem.report(document.cases, document).blocks)


def charts(document: ResultDocument) -> dict[str, Chart]:
    return {block.title: block for block in blocks_of(document) if isinstance(block, Chart)}


def tables(document: ResultDocument) -> dict[str, Table]:
    return {block.caption: block for block in blocks_of(document) if isinstance(block, Table)}


def parts(document: ResultDocument) -> list[str]:
    return [block.title for block in blocks_of(document) if isinstance(block, Part)]


def rows(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """The cells by their columns, by group and case."""
    return {
        (str(group.title), str(row[0])): {
            column.title: cell.text if isinstance(cell, Code) else str(cell)
            for column, cell in zip(table.columns, row, strict=True)
        }
        for group in table.groups
        for row in group.rows
    }


def bars(drawing: Drawing) -> list[tuple[str, list[str]]]:
    assert isinstance(drawing, BarChart)
    return [(group.title, [bar.label for bar in group.bars]) for group in drawing.groups]


def curves(drawing: Drawing) -> dict[str, list[tuple[float, float]]]:
    assert isinstance(drawing, CurveChart)
    return {one.label: [(point.x, point.y) for point in one.points] for one in drawing.curves}


def without_figures(case: CaseResult) -> CaseResult:
    return case.model_copy(update={"metrics": {}, "trials": (), "counted": ()})


def primary_only(case: CaseResult) -> CaseResult:
    kept = {name: one for name, one in case.metrics.items() if name == case.primary}
    return case.model_copy(update={"metrics": kept})


def without_params(case: CaseResult) -> CaseResult:
    return case.model_copy(update={"params": {}, "given": (), "trials": ()})


def without_end(case: CaseResult) -> CaseResult:
    trials = tuple(
        trial.model_copy(
            update={"events": tuple(e for e in trial.events if not isinstance(e, EndEvent))}
        )
        for trial in case.trials
    )
    return case.model_copy(update={"trials": trials})


def with_unknown_limit(case: CaseResult) -> CaseResult:
    unknown = Limit(value=None, unit="byte/s", reason="the host does not say what it can do")
    metrics = {
        name: one.model_copy(update={"limit": unknown, "efficiency": None})
        for name, one in case.metrics.items()
    }
    return case.model_copy(update={"metrics": metrics})


# What a document's cases may lack.
LESS = (without_figures, primary_only, without_params, without_end, with_unknown_limit)
