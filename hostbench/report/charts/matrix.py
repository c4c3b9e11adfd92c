"""How good pairs of hosts or CPUs are beside others: a heat map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostbench.report.charts.canvas import NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import MatrixChart, MatrixScale

CELLS = (Ink.CELL_0, Ink.CELL_1, Ink.CELL_2, Ink.CELL_3, Ink.CELL_4)
LAYERS = (Ink.GRID, *CELLS, Ink.WARN)
EDGE_PX = 6
TITLE_LEAST_PX = 13
CELL_MOST_PX = 24
# The space between two groups of rows.
GROUP_GAP_PX = 3


@dataclass(frozen=True)
class _Layout:
    """Pixels: titles of groups stand left of the matrix, the rows to see first right of it."""

    width: int
    titles: int
    names: int
    characters: int


WIDE = _Layout(width=WIDE_PX, titles=110, names=130, characters=16)
NARROW = _Layout(width=NARROW_PX, titles=52, names=0, characters=7)


def matrix_chart(chart: MatrixChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    return _drawn(chart, title, WIDE, "wide"), _drawn(chart, title, NARROW, "narrow")


def step_of(ratio: float, scale: MatrixScale) -> int:
    """Return which of CELLS shows a ratio: 0 for as good as the middle, then the worse the
    higher."""
    return sum(ratio < step for step in scale.steps)


def _drawn(chart: MatrixChart, title: str, layout: _Layout, css_class: str) -> str:
    count = len(chart.labels)
    groups = len(chart.groups)
    room = layout.width - layout.titles - layout.names - 2 * EDGE_PX - GROUP_GAP_PX * (groups - 1)
    cell = min(CELL_MOST_PX, room / max(1, count))
    starts = list(_starts(chart, cell))
    size = starts[-1] + cell + EDGE_PX if starts else EDGE_PX
    canvas = Canvas(layout.width, size + EDGE_PX)
    left = layout.titles + EDGE_PX
    for row, y in enumerate(starts):
        for first, last, step in _runs(chart, row):
            x, end = starts[first], starts[last] + cell
            canvas.box(left + x, y + EDGE_PX, end - x, cell, CELLS[step])
    extent = starts[-1] + cell if starts else 0
    for at in (0.0, extent):
        canvas.line((left, at + EDGE_PX), (left + extent, at + EDGE_PX), Ink.GRID)
        canvas.line((left + at, EDGE_PX), (left + at, extent + EDGE_PX), Ink.GRID)
    _titles(canvas, chart, starts, cell, layout)
    if layout.names:
        _names(canvas, chart, starts, cell, left + extent)
    return canvas.svg(title, css_class, LAYERS)


def _starts(chart: MatrixChart, cell: float) -> Iterator[float]:
    """Yield where each row, and each column, begins."""
    at = 0.0
    for _, size in chart.groups:
        for _ in range(size):
            yield at
            at += cell
        at += GROUP_GAP_PX


def _runs(chart: MatrixChart, row: int) -> Iterator[tuple[int, int, int]]:
    """Yield the cells of a row, neighbours of one look as one: first and last column, and look."""
    ends = {sum(size for _, size in chart.groups[: n + 1]) for n in range(len(chart.groups))}
    run: tuple[int, int, int] | None = None
    for column in range(len(chart.labels)):
        ratio = chart.cells.get((row, column))
        step = None if ratio is None else step_of(ratio, chart.scale)
        if run is not None and (step != run[2] or column in ends):
            yield run
            run = None
        if step is not None:
            run = (column, column, step) if run is None else (run[0], column, step)
    if run is not None:
        yield run


def _titles(
    canvas: Canvas, chart: MatrixChart, starts: Sequence[float], cell: float, layout: _Layout
) -> None:
    """Write the title of each group at its middle; of one group, the label of each row if there is
    room."""
    x = layout.titles
    if len(chart.groups) > 1:
        first = 0
        for text, size in chart.groups:
            middle = (starts[first] + starts[first + size - 1] + cell) / 2
            first += size
            canvas.text((x, middle + EDGE_PX), _cut(text, layout), ink=Ink.QUIET, anchor="end")
    elif cell >= TITLE_LEAST_PX:
        for y, label in zip(starts, chart.labels, strict=True):
            at = (x, y + cell / 2 + EDGE_PX)
            canvas.text(at, _cut(label, layout), ink=Ink.QUIET, anchor="end")


def _cut(text: str, layout: _Layout) -> str:
    most = layout.characters
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _names(
    canvas: Canvas, chart: MatrixChart, starts: Sequence[float], cell: float, right: float
) -> None:
    """Write the rows to see first, each beside its row, or below the name above it."""
    lowest = 0.0
    for row in sorted(chart.stands_out):
        own = starts[row] + cell / 2 + EDGE_PX
        y = max(own, lowest)
        lowest = y + TITLE_LEAST_PX
        canvas.line((right + 2, own), (right + 10, y), Ink.WARN)
        canvas.text((right + 13, y), _cut(chart.labels[row], WIDE), ink=Ink.WARN)
