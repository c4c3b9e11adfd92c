"""A published table as curves: our figures and the published ones over the threads."""

from collections.abc import Iterator, Sequence

from hostbench.course.figures import fixed
from hostbench.course.rows import CourseRow
from hostbench.model.published import PublishedTable
from hostbench.report.content import Chart, Curve, CurveAxis, CurveChart, CurvePoint

# Each line has its published counterpart beside it.
LINES_A_CHART = 4
# Figures that are further apart than this would compress the lower lines.
LINEAR_MOST = 12.0


def row_charts(table: PublishedTable, rows: Sequence[CourseRow]) -> Iterator[Chart]:
    """Yield a chart with a line for each operation.

    If more than the x axis distinguishes rows, as with blocks, yield a chart for each operation
    with a line for each of these. Yield none if no line has two points.
    """
    if table.chart_x not in table.key:
        return
    if len(table.key) == 1:
        yield from _pages(
            table, f"Over the {table.chart_x}", _lines(table, rows, by_operation=True)
        )
        return
    for operation in dict.fromkeys(row.operation for row in rows):
        found = [row for row in rows if row.operation == operation]
        title = f"{operation} over the {table.chart_x}"
        yield from _pages(table, title, _lines(table, found, by_operation=False))


Lines = dict[str, list[CourseRow]]


def _lines(table: PublishedTable, rows: Sequence[CourseRow], *, by_operation: bool) -> Lines:
    """Return the rows of each line, along x."""
    found: Lines = {}
    for row in rows:
        if _x(table, row) is not None:
            rest = [row.word(name) for name in table.key if name != table.chart_x]
            label = row.operation if by_operation else ", ".join(rest)
            found.setdefault(label, []).append(row)
    return {label: sorted(of, key=lambda row: _x(table, row) or 0.0) for label, of in found.items()}


def _x(table: PublishedTable, row: CourseRow) -> float | None:
    value = row.key.get(table.chart_x)
    return float(value) if isinstance(value, int | float) else None


def _pages(table: PublishedTable, title: str, lines: Lines) -> Iterator[Chart]:
    labels = list(lines)
    pages = [labels[i : i + LINES_A_CHART] for i in range(0, len(labels), LINES_A_CHART)]
    for number, page in enumerate(pages, start=1):
        of = f" ({number} of {len(pages)})" if len(pages) > 1 else ""
        yield from _chart(table, f"{title}{of}", {label: lines[label] for label in page})


def _chart(table: PublishedTable, title: str, lines: Lines) -> Iterator[Chart]:
    ours = {label: _ours(table, rows) for label, rows in lines.items()}
    theirs = {label: _published(table, rows) for label, rows in lines.items()}
    points = [point for one in (*ours.values(), *theirs.values()) for point in one]
    if not any(len(one) > 1 for one in (*ours.values(), *theirs.values())):
        return
    curves = [Curve(label, points) for label, points in ours.items()]
    # A line without a figure of ours keeps its name and its colour.
    curves += [Curve("", theirs[label], beside=number) for number, label in enumerate(ours)]
    steep = min(p.low for p in points) > 0 and _reach(points) > LINEAR_MOST
    places = tuple(sorted({point.x for point in points}))
    yield Chart(
        title=title,
        description=_description(table, ours, theirs),
        drawing=CurveChart(
            x=CurveAxis(table.chart_x, "1", logarithmic=places[0] > 0, ticks=places),
            y=CurveAxis(table.unit, "1", logarithmic=steep),
            curves=tuple(curves),
            curves_are="ours, median of a case",
            dashed_are="published" if any(theirs.values()) else "",
        ),
    )


def _reach(points: Sequence[CurvePoint]) -> float:
    return max(point.y for point in points) / min(point.y for point in points)


def _ours(table: PublishedTable, rows: Sequence[CourseRow]) -> tuple[CurvePoint, ...]:
    found = []
    for row in rows:
        x, figure = _x(table, row), row.ours.figure
        if x is not None and figure is not None:
            interval = figure.statistics.interval
            found.append(CurvePoint(x, figure.median, interval.low, interval.high))
    return tuple(found)


def _published(table: PublishedTable, rows: Sequence[CourseRow]) -> tuple[CurvePoint, ...]:
    """Return the published points. A printed zero was rounded, and is no figure."""
    found = []
    for row in rows:
        x, mean = _x(table, row), row.mean
        if x is not None and mean:
            found.append(CurvePoint(x, mean, mean, mean))
    return tuple(found)


def _description(
    table: PublishedTable,
    ours: dict[str, tuple[CurvePoint, ...]],
    theirs: dict[str, tuple[CurvePoint, ...]],
) -> str:
    """Return the ends of each line."""
    found = []
    for label in ours:
        ends = [
            f"{who} {_ends(points)}"
            for who, points in (("ours", ours[label]), ("published", theirs[label]))
            if points
        ]
        if ends:
            found.append(f"{label}: {', '.join(ends)}.")
    return f"In {table.unit}. {' '.join(found)}"


def _ends(points: Sequence[CurvePoint]) -> str:
    first, last = fixed(points[0].y), fixed(points[-1].y)
    return first if len(points) == 1 else f"{first} to {last}"
