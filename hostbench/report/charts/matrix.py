"""How good pairs of hosts, CPUs or NUMA nodes are beside others: a heat map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostbench.report.charts.canvas import CHARACTER_PX, NARROW_PX, WIDE_PX, Canvas, Ink
from hostbench.report.content import MatrixChart, MatrixScale

CELLS = (Ink.CELL_0, Ink.CELL_1, Ink.CELL_2, Ink.CELL_3, Ink.CELL_4)
# The ink of a word on each of them.
WORDS = (Ink.TEXT, Ink.TEXT, Ink.ON_CELL, Ink.ON_CELL, Ink.PAPER)
LAYERS = (Ink.GRID, *CELLS, Ink.WARN)
EDGE_PX = 6
TITLE_LEAST_PX = 13
CELL_MOST_PX = 24
# The space on both sides of a word in its cell, and the height of a line above the columns.
BESIDE_WORD_PX, HEAD_PX = 14, 16
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


@dataclass(frozen=True)
class _Grid:
    """Pixels: the corner of the matrix, where columns and rows begin, and the size of a cell.
    `worded`: cells have their words, and columns their labels."""

    left: float
    top: float
    columns: Sequence[float]
    rows: Sequence[float]
    width: float
    height: float
    worded: bool

    @property
    def right(self) -> float:
        return self.columns[-1] + self.width if self.columns else self.left

    @property
    def bottom(self) -> float:
        return self.rows[-1] + self.height if self.rows else self.top


def matrix_chart(chart: MatrixChart, title: str) -> tuple[str, str]:
    """Return the wide and the narrow drawing of the chart."""
    return _drawn(chart, title, WIDE, "wide"), _drawn(chart, title, NARROW, "narrow")


def step_of(ratio: float, scale: MatrixScale) -> int:
    """Return which of CELLS shows a ratio: 0 for as good as the middle, then the worse the
    higher."""
    return sum(ratio < step for step in scale.steps)


def _drawn(chart: MatrixChart, title: str, layout: _Layout, css_class: str) -> str:
    grid = _grid(chart, layout)
    canvas = Canvas(layout.width, grid.bottom + 2 * EDGE_PX)
    for row, y in enumerate(grid.rows):
        for first, last, step in _runs(chart, row):
            x, end = grid.columns[first], grid.columns[last] + grid.width
            canvas.box(x, y, end - x, grid.height, CELLS[step])
    for y in (grid.top, grid.bottom):
        canvas.line((grid.left, y), (grid.right, y), Ink.GRID)
    for x in (grid.left, grid.right):
        canvas.line((x, grid.top), (x, grid.bottom), Ink.GRID)
    _titles(canvas, chart, grid, layout)
    if grid.worded:
        _words(canvas, chart, grid, layout)
    if layout.names:
        _names(canvas, chart, grid)
    return canvas.svg(title, css_class, LAYERS)


def _grid(chart: MatrixChart, layout: _Layout) -> _Grid:
    names = layout.names if chart.stands_out else 0
    gaps = GROUP_GAP_PX * (len(chart.groups) - 1)
    room = layout.width - layout.titles - names - 2 * EDGE_PX - gaps
    most = room / max(1, len(chart.labels))
    height = min(CELL_MOST_PX, most)
    longest = max(map(len, (*chart.words.values(), *chart.labels)), default=0)
    needed = BESIDE_WORD_PX + longest * CHARACTER_PX
    worded = bool(chart.words) and needed <= most
    width = needed if worded else height
    left, top = layout.titles + EDGE_PX, EDGE_PX + (2 * HEAD_PX if worded else 0)
    columns, rows = list(_starts(chart, left, width)), list(_starts(chart, top, height))
    return _Grid(left, top, columns, rows, width, height, worded)


def _starts(chart: MatrixChart, at: float, cell: float) -> Iterator[float]:
    """Yield where each row, or each column, begins."""
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


def _titles(canvas: Canvas, chart: MatrixChart, grid: _Grid, layout: _Layout) -> None:
    """Write the title of each group at its middle; of one group, the label of each row if there is
    room."""
    x, rows = layout.titles, grid.rows
    if len(chart.groups) > 1:
        first = 0
        for text, size in chart.groups:
            middle = (rows[first] + rows[first + size - 1] + grid.height) / 2
            first += size
            canvas.text((x, middle), _cut(text, layout), ink=Ink.QUIET, anchor="end")
    elif grid.height >= TITLE_LEAST_PX:
        for y, label in zip(rows, chart.labels, strict=True):
            at = (x, y + grid.height / 2)
            canvas.text(at, _cut(label, layout), ink=Ink.QUIET, anchor="end")


def _words(canvas: Canvas, chart: MatrixChart, grid: _Grid, layout: _Layout) -> None:
    """Write what rows and columns are, the labels of the columns, and the words of the cells."""
    head, labels = grid.top - 1.5 * HEAD_PX, grid.top - 0.5 * HEAD_PX
    canvas.text((layout.titles, labels), chart.rows_are, anchor="end", bold=True)
    canvas.text((grid.left, head), chart.columns_are, bold=True)
    for x, label in zip(grid.columns, chart.labels, strict=True):
        canvas.text((x + grid.width / 2, labels), label, ink=Ink.QUIET, anchor="middle")
    for (row, column), word in chart.words.items():
        at = (grid.columns[column] + grid.width / 2, grid.rows[row] + grid.height / 2)
        ink = WORDS[step_of(chart.cells[row, column], chart.scale)]
        canvas.text(at, word, ink=ink, anchor="middle")


def _cut(text: str, layout: _Layout) -> str:
    most = layout.characters
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _names(canvas: Canvas, chart: MatrixChart, grid: _Grid) -> None:
    """Write the rows to see first, each beside its row, or below the name above it."""
    lowest = 0.0
    for row in sorted(chart.stands_out):
        own = grid.rows[row] + grid.height / 2
        y = max(own, lowest)
        lowest = y + TITLE_LEAST_PX
        canvas.line((grid.right + 2, own), (grid.right + 10, y), Ink.WARN)
        canvas.text((grid.right + 13, y), _cut(chart.labels[row], WIDE), ink=Ink.WARN)
