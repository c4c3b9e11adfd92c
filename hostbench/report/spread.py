"""How much the trials of each case differ."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import human, percent, plural
from hostbench.judge.trial import is_disturbed
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    Chart,
    Column,
    Paragraph,
    Part,
    Point,
    PointKind,
    RowGroup,
    Section,
    SpreadChart,
    SpreadGroup,
    SpreadRow,
    Table,
    Text,
)
from hostbench.report.figures import NOTHING, ROWS_A_CHART, by_workload, label, primary

# A page must open at once; the table has all cases.
CASES_DRAWN_MOST = 400
_COLUMNS = (
    Column("case"),
    Column("median", figures=True),
    Column("MAD", figures=True),
    Column("lowest", figures=True),
    Column("highest", figures=True),
    Column("interval of the median", figures=True),
    Column("covers", figures=True),
    Column("least difference", figures=True),
    Column("n", figures=True),
    Column("left out", figures=True),
)


def spread_section(document: ResultDocument) -> Section | None:
    """Return the section, or None when no case has several trials with a figure."""
    cases = [case for case in document.cases if _spread_row(case) is not None]
    if not cases:
        return None
    parts = [
        Part(workload, tuple(_charts(workload, found)))
        for workload, found in by_workload(cases[:CASES_DRAWN_MOST]).items()
    ]
    introduction = Paragraph(
        "Every trial against the median of its case; the band is the interval that contains "
        "the true median. A disturbed trial counts only if there are too few others. Least "
        "difference: the smallest change that a second job like this one would show in 4 of 5 "
        "attempts."
    )
    return Section("spread", "Spread of the trials", (introduction, *parts), in_brief=False)


def _charts(workload: str, cases: Sequence[CaseResult]) -> Iterator[Chart]:
    pages = [cases[i : i + ROWS_A_CHART] for i in range(0, len(cases), ROWS_A_CHART)]
    for number, page in enumerate(pages, start=1):
        rows = tuple(row for case in page if (row := _spread_row(case)))
        of = f" ({number} of {len(pages)})" if len(pages) > 1 else ""
        yield Chart(
            title=f"Trials around their medians{of}",
            description=_description(rows),
            drawing=SpreadChart((SpreadGroup("", rows),)),
            numbers=_table(f"Statistics of {workload}{of}", page),
        )


def _spread_row(case: CaseResult) -> SpreadRow | None:
    metric = primary(case)
    measured = [trial for trial in case.trials if trial.value is not None]
    if metric is None or len(measured) < 2 or metric.statistics.median == 0:
        return None
    median = metric.statistics.median
    points = []
    for trial in measured:
        kind = PointKind.DISTURBED if is_disturbed(trial) else PointKind.COUNTED
        if trial.index not in case.counted:
            kind = PointKind.LEFT_OUT
        assert trial.value is not None
        points.append(Point(trial.value / median - 1, kind))
    interval = metric.statistics.interval
    return SpreadRow(
        label(case), tuple(points), interval.low / median - 1, interval.high / median - 1
    )


def _description(rows: Sequence[SpreadRow]) -> str:
    points = [point for row in rows for point in row.points]
    counted = [abs(p.deviation) for p in points if p.kind is not PointKind.LEFT_OUT]
    left_out = len(points) - len(counted)
    return (
        f"{plural(len(points), 'trial')} of {plural(len(rows), 'case')}, {left_out} left out; "
        f"the others lie within {percent(max(counted, default=None))} of their medians."
    )


def _table(caption: str, cases: Sequence[CaseResult]) -> Table:
    return Table(caption, _COLUMNS, (RowGroup(None, tuple(_row(case) for case in cases)),))


def _row(case: CaseResult) -> tuple[Text, ...]:
    metric = primary(case)
    if metric is None:
        return (label(case), *(NOTHING for _ in _COLUMNS[1:]))
    figures, unit = metric.statistics, metric.unit
    return (
        label(case),
        human(figures.median, unit),
        human(figures.median_absolute_deviation, unit),
        human(figures.minimum, unit),
        human(figures.maximum, unit),
        f"{human(figures.interval.low, unit)} – {human(figures.interval.high, unit)}",
        percent(figures.interval.confidence),
        NOTHING if case.figure is None else percent(case.figure.least_difference_ratio),
        str(figures.n),
        str(len(case.trials) - figures.n),
    )
