"""The outside tools that a report printed beside its figures, and the counterpart of each here."""

from collections.abc import Iterator

from hostbench.base.units import human
from hostbench.course.figures import Figure, figure_of, fixed
from hostbench.course.rows import matching
from hostbench.model.published import PublishedTable, TrustedTool
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import Block, Column, RowGroup, Share, Table, Text
from hostbench.report.figures import NOTHING, by_workload

_COLUMNS = (
    Column("tool of the report"),
    Column("published", figures=True),
    Column("ours", figures=True),
    Column("ours of limit", figures=True),
    Column("case"),
    Column("tools today"),
)


def trusted_blocks(table: PublishedTable, document: ResultDocument) -> Iterator[Block]:
    """Yield a table with a row for each tool; nothing if the report used none."""
    rows = tuple(_row(tool, document) for tool in table.trusted)
    if rows:
        caption = f"{table.title}: what the report compared with"
        yield Table(caption, _COLUMNS, (RowGroup(None, rows),))


def _row(tool: TrustedTool, document: ResultDocument) -> tuple[Text, ...]:
    published = NOTHING if tool.published is None else _with_unit(float(tool.published), tool.unit)
    figure = _figure(tool, document)
    if figure is None:
        why = "nothing here measures that" if tool.ours is None else "no case has a figure"
        return (tool.title, published, NOTHING, NOTHING, why, NOTHING)
    return (
        tool.title,
        published,
        _with_unit(figure.median, tool.unit),
        Share(figure.efficiency),
        figure.case.title,
        "; ".join(_today(figure, tool.unit, figure.case)) or NOTHING,
    )


def _with_unit(value: float, unit: str) -> str:
    return f"{fixed(value)} {unit}"


def _figure(tool: TrustedTool, document: ResultDocument) -> Figure | None:
    """Return the best of the cases that match, because a tool's figure is its best, too."""
    if tool.ours is None:
        return None
    match = tool.ours
    cases = matching(match, {}, by_workload(document.cases))
    found = [figure for case in cases if (figure := figure_of(case, match))]
    if not found:
        return None
    metric = found[0].case.metrics[match.metric or found[0].case.primary]
    higher = (metric.direction == "higher") == (match.reading == "value")
    return (max if higher else min)(found, key=lambda figure: figure.median)


def _today(figure: Figure, unit: str, case: CaseResult) -> Iterator[str]:
    """Yield the figures of the tools that ran beside the case, in their own unit if it differs."""
    same = {id(one.peer): one.value for one in figure.peers}
    for peer in case.peers:
        if peer.statistics is not None:
            value = same.get(id(peer))
            text = (
                human(peer.statistics.median, peer.unit)
                if value is None
                else _with_unit(value, unit)
            )
            yield f"{peer.tool} {peer.title} {text}"
