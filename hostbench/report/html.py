"""A report as one HTML page that has no script and loads nothing."""

from collections.abc import Callable
from pathlib import Path

import jinja2
from markupsafe import Markup

from hostbench.base.units import percent
from hostbench.report.charts.draw import draw
from hostbench.report.charts.hosts import axis_range, shows_limit
from hostbench.report.charts.matrix import step_of
from hostbench.report.content import (
    BarChart,
    Chart,
    CurveChart,
    ForestChart,
    HistoryChart,
    HostsChart,
    MatrixChart,
    Report,
    SpreadChart,
    Table,
    TimeChart,
    inlines,
)
from hostbench.report.plaintext import one_line

_HERE = Path(__file__).parent
# The console has the same colours, and shows blocks in the same way.
THEME, BLOCKS, _LAYOUT = _HERE / "theme.css", _HERE / "blocks.css", _HERE / "page.css"

# The meaning of a chart's signs: (class of the sign, words).
_KEYS: dict[type, tuple[tuple[str, str], ...]] = {
    BarChart: (
        ("bar", "measured, from zero; right: share of the limit"),
        ("limit", "theoretical limit"),
        ("peer", "peer tool: the table of peers shows what it measures"),
    ),
    SpreadChart: (
        ("dot", "trial that counts"),
        ("disturbed", "disturbed, but it counts"),
        ("left-out", "disturbed, left out"),
        ("band", "interval of the median"),
    ),
    CurveChart: (),
    ForestChart: (
        ("dot", "ratio of B to A with its interval"),
        ("band", "margin: within it, figures count as the same"),
    ),
    HistoryChart: (
        ("dot", "a job, with the interval of its figure if known"),
        ("level", "median between changes"),
        ("place", "first job after a change"),
        ("roof", "theoretical limit"),
        ("band", "sound hosts of the model, by the baseline"),
    ),
    HostsChart: (
        ("dot", "a host"),
        ("off", "a host that is low or suspect here"),
        ("band", "tolerance band"),
        ("limit", "theoretical limit"),
        ("edge", "hosts beyond the axis, and how many"),
    ),
    MatrixChart: (("unmeasured", "not measured"),),
    TimeChart: (("line", "samples"), ("level", "theoretical limit of the trial")),
}


def html(report: Report) -> str:
    """Return the page. Every text in it is escaped: names, labels and outputs cannot be trusted."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    add_blocks(environment, mark=_mark, term=_term)
    css = "".join(path.read_text(encoding="utf-8") for path in (THEME, _LAYOUT, BLOCKS))
    return environment.get_template("page.html.j2").render(report=report, css=Markup(css))  # noqa: S704


def add_blocks(
    environment: jinja2.Environment,
    *,
    mark: Callable[[str, str], Markup],
    term: Callable[[str, str], Markup],
    job_address: str = "",
) -> None:
    """Let templates of an environment that finds this folder use blocks.html.j2.

    `mark` returns a word such as a verdict, and `term` one such as the name of a workload, with
    the text to show. `job_address`: the address of
    jobs, to which the id of one is added; empty: there are no links to jobs.
    """

    def drawings(chart: Chart) -> Markup:
        """Return both drawings. The canvas escapes its texts and writes SVG."""
        wide, narrow = draw(chart.drawing, chart.title, job_address)
        return Markup(f"{wide}\n{narrow}")  # noqa: S704

    environment.filters |= {"kind": _kind, "inlines": inlines, "percent": percent}
    environment.globals |= {
        "drawings": drawings,
        "keys": _keys,
        "columns": _column_classes,
        "mark": mark,
        "term": term,
        "job_address": job_address,
    }


def _mark(word: str, text: str) -> Markup:
    return Markup('<span class="mark {}">{}</span>').format(word, text)


def _term(_word: str, text: str) -> Markup:
    return Markup("{}").format(text)


def _kind(thing: object) -> str:
    return type(thing).__name__


def _printable(value: object) -> object:
    """Return a value for the template: plain text is cleaned here and escaped afterwards."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return one_line(value)
    return value


def _keys(chart: Chart) -> tuple[tuple[str, str], ...]:
    drawing = chart.drawing
    shown = _KEYS[type(drawing)]
    if isinstance(drawing, CurveChart):
        shown = _curve_keys(drawing)
    if isinstance(drawing, MatrixChart):
        cells = ((f"cell-{number}", word) for number, word in enumerate(drawing.scale.words))
        shown = (*cells, *shown)
    if isinstance(drawing, BarChart) and not _has_shares(drawing):
        shown = (("bar", "measured, from zero"), *shown[1:])
    absent = _absent(chart)
    return tuple(key for key in shown if key[0] not in absent)


def _curve_keys(drawing: CurveChart) -> tuple[tuple[str, str], ...]:
    dashed = [("dashed", drawing.dashed_are)] if drawing.dashed_are else []
    places = [("place", drawing.marks_are)] if drawing.marks else []
    return (("dot", drawing.curves_are), *dashed, *places)


def _has_shares(drawing: BarChart) -> bool:
    return any(bar.efficiency is not None for group in drawing.groups for bar in group.bars)


def _absent(chart: Chart) -> set[str]:
    """Return the signs that do not occur in this drawing."""
    drawing = chart.drawing
    absent: set[str] = set()
    if isinstance(drawing, BarChart):
        bars = [bar for group in drawing.groups for bar in group.bars]
        absent |= set() if any(bar.peers for bar in bars) else {"peer"}
        absent |= set() if any(bar.limit is not None for bar in bars) else {"limit"}
    elif isinstance(drawing, SpreadChart):
        kinds = {point.kind for group in drawing.groups for r in group.rows for point in r.points}
        absent |= {sign for kind, sign in _SIGNS.items() if kind not in kinds}
    elif isinstance(drawing, HistoryChart):
        absent |= set() if drawing.changes else {"place"}
        absent |= set() if drawing.limit is not None else {"roof"}
        absent |= set() if drawing.expected is not None else {"band"}
    elif isinstance(drawing, HostsChart):
        rows = drawing.rows
        low, high = axis_range(drawing)
        absent |= set() if any(row.off for row in rows) else {"off"}
        absent |= set() if any(row.expected is not None for row in rows) else {"band"}
        absent |= set() if any(shows_limit(row) for row in rows) else {"limit"}
        beyond = any(not low <= value <= high for row in rows for value in row.values)
        absent |= set() if beyond else {"edge"}
    elif isinstance(drawing, MatrixChart):
        shown = {step_of(ratio, drawing.scale) for ratio in drawing.cells.values()}
        # A word such as `10 %` follows those before it.
        absent |= {f"cell-{n}" for n in range(max(shown, default=-1) + 1, len(drawing.scale.words))}
        absent |= {"unmeasured"} if len(drawing.cells) == len(drawing.labels) ** 2 else set()
    elif isinstance(drawing, TimeChart) and not any(panel.levels for panel in drawing.panels):
        absent.add("level")
    return absent


_SIGNS = {"disturbed": "disturbed", "left out": "left-out"}


def _column_classes(table: Table) -> str:
    """Return the classes of a table: the columns aligned to the right, counted from 1, and how it
    is shown on a narrow screen."""
    figures = [f"f{n}" for n, column in enumerate(table.columns, start=1) if column.figures]
    return " ".join([*figures, table.narrow])
