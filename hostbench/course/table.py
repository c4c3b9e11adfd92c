"""A published table row by row: the printed value, the naive way here, ours, limit and peer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hostbench.base.units import full_sentence, percent, plural
from hostbench.course.arithmetic import agrees, efficiency_percent
from hostbench.course.figures import Figure, fixed
from hostbench.course.rows import PERCENT, CourseRow, Measured, listed, smaller_here
from hostbench.model.published import Published, PublishedTable
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    Block,
    Bullets,
    Column,
    Inline,
    Mark,
    RowGroup,
    Share,
    Table,
    Text,
)
from hostbench.report.figures import NOTHING

TWO_DIGITS = 10.0
NOT_PLANNED = "no case of this suite measures it"


@dataclass(frozen=True)
class _Cells:
    """A column and its content. `has_content`: whether a row has a value there."""

    column: Column
    cell: Callable[[CourseRow], Text]
    has_content: Callable[[CourseRow], bool]


def row_table(
    table: PublishedTable,
    rows: Sequence[CourseRow],
    published: Published,
    document: ResultDocument,
) -> Table:
    """Return the table, without empty columns."""
    letters = _letters(rows)

    def marks(row: CourseRow) -> Text:
        return _marks(row, smaller_here(row, table, document, published.host), letters)

    cells = [one for one in _cells(table, rows) if any(one.has_content(row) for row in rows)]
    groups: dict[str | None, list[tuple[Text, ...]]] = {}
    for row in rows:
        name = _unbroken(row.name) if table.key else row.operation
        entry = (name, *(one.cell(row) for one in cells), marks(row))
        groups.setdefault(row.operation if table.key else None, []).append(entry)
    return Table(
        f"{table.title}: {table.unit}",
        (Column(_first_column(table)), *(one.column for one in cells), Column("here")),
        tuple(RowGroup(title, tuple(entries)) for title, entries in groups.items()),
    )


def reasons_block(rows: Sequence[CourseRow]) -> Iterator[Block]:
    """Yield why rows have no figure here, each reason once with the letter that is in its rows."""
    items = []
    for reason, letter in _letters(rows).items():
        missing = [row.title for row in rows if reason in _reasons(row)]
        items.append(f"({letter}) {plural(len(missing), 'row')} ({listed(missing)}): {reason}")
    if items:
        yield Bullets(tuple(items))


def _cells(table: PublishedTable, rows: Sequence[CourseRow]) -> list[_Cells]:
    peer = f"{table.peer_title}, published" if table.peer_title else "outside tool, published"
    tools = {one.tool for row in rows if row.ours.figure for one in row.ours.figure.peers}
    alone = len(tools) == 1
    # If it is the same in all rows, the sentence above the table has it.
    limits = {row.number("limit") for row in rows} - {None}
    one_theory = table.theory is not None and len(limits) == 1
    tool = f"{next(iter(tools))} here" if alone else "peer here"
    return [
        _figures("published", _published, lambda row: row.mean is not None),
        _figures(
            "their limit",
            _number("limit"),
            lambda row: row.number("limit") is not None and not one_theory,
        ),
        _figures(
            "published of limit",
            lambda row: _published_efficiency(row, table),
            lambda row: _published_efficiency(row, table) != NOTHING,
        ),
        _figures(peer, _published_peer, lambda row: row.number("peer") is not None),
        _figures("naive: mean ± sd", _of_naive(_mean_and_deviation), _has_naive),
        _figures("naive / ours", _naive_over_ours, _has_naive),
        _figures("ours: median", _of_ours(lambda one: fixed(one.median)), _has_ours),
        _figures("interval", _of_ours(_interval), _has_ours),
        _figures("ours: mean ± sd", _of_ours(_mean_and_deviation), _has_ours),
        _figures("our limit", _of_ours(_limit), _has_limit),
        _figures("ours of limit", _share, _has_limit),
        _figures(tool, _of_ours(lambda one: _peer(one, alone=alone)), _has_peer),
    ]


def _figures(
    title: str, cell: Callable[[CourseRow], Text], has_content: Callable[[CourseRow], bool]
) -> _Cells:
    return _Cells(Column(title, figures=True), cell, has_content)


def _first_column(table: PublishedTable) -> str:
    return ", ".join(name.removesuffix("_bytes") for name in table.key) or "operation"


# ---- the columns of a row ----


def _has_ours(row: CourseRow) -> bool:
    return row.ours.figure is not None


def _has_naive(row: CourseRow) -> bool:
    return row.naive is not None and row.naive.figure is not None


def _has_limit(row: CourseRow) -> bool:
    return row.ours.figure is not None and row.ours.figure.limit is not None


def _has_peer(row: CourseRow) -> bool:
    return row.ours.figure is not None and bool(row.ours.figure.peers)


def _of_ours(shown: Callable[[Figure], str]) -> Callable[[CourseRow], Text]:
    return lambda row: shown(row.ours.figure) if row.ours.figure else NOTHING


def _of_naive(shown: Callable[[Figure], str]) -> Callable[[CourseRow], Text]:
    return lambda row: shown(row.naive.figure) if row.naive and row.naive.figure else NOTHING


def _number(column: str) -> Callable[[CourseRow], Text]:
    def shown(row: CourseRow) -> str:
        value = row.number(column)
        return NOTHING if value is None else as_printed(value)

    return shown


def _published_peer(row: CourseRow) -> str:
    """Return the peer's value, with its efficiency if that is printed."""
    value, efficiency = row.number("peer"), row.number("peer_efficiency")
    text = NOTHING if value is None else as_printed(value)
    return text if efficiency is None else f"{text} ({_printed_percent(efficiency)})"


def as_printed(value: float) -> str:
    """Return all digits that a report prints."""
    return f"{value:.8g}"


def _published(row: CourseRow) -> str:
    """Return printed figures with all their digits; what follows from the printed runs is
    rounded."""
    if row.mean is None:
        return NOTHING
    mean, deviation = row.number("mean"), row.number("deviation")
    text = fixed(row.mean) if mean is None else as_printed(mean)
    if deviation is not None:
        return f"{text} ± {as_printed(deviation)}"
    return text if row.deviation is None else f"{text} ± {_plain(row.deviation)}"


def _with_deviation(mean: float, deviation: float | None) -> str:
    text = fixed(mean)
    return text if deviation is None else f"{text} ± {_plain(deviation)}"


def _plain(value: float) -> str:
    """Return two significant digits; for a large value, all digits before the point."""
    return f"{value:.0f}" if value >= TWO_DIGITS else fixed(value, 2)


def _published_efficiency(row: CourseRow, table: PublishedTable) -> str:
    """Return the printed efficiency, followed in parentheses by the one that follows from mean and
    limit if that differs."""
    printed, made = row.number("efficiency"), efficiency_percent(row, table)
    if printed is None:
        return NOTHING if made is None else f"({percent(made / PERCENT)})"
    shown = _printed_percent(printed)
    if made is None or agrees(printed, made):
        return shown
    return f"{shown} ({percent(made / PERCENT)})"


def _printed_percent(value: float) -> str:
    """Return three digits of a printed percentage, and all digits before the point."""
    return f"{value:.0f} %" if abs(value) >= PERCENT else f"{value:.3g} %"


def _mean_and_deviation(figure: Figure) -> str:
    return _with_deviation(figure.statistics.mean, figure.statistics.standard_deviation)


def _interval(figure: Figure) -> str:
    interval = figure.statistics.interval
    if figure.statistics.n < 2:
        return NOTHING
    return f"{fixed(interval.low)} – {fixed(interval.high)}"


def _limit(figure: Figure) -> str:
    return NOTHING if figure.limit is None else fixed(figure.limit)


def _share(row: CourseRow) -> Text:
    return Share(row.ours.figure.efficiency if row.ours.figure else None)


def _naive_over_ours(row: CourseRow) -> Text:
    if row.naive is None or row.naive.figure is None or row.ours.figure is None:
        return NOTHING
    return fixed(row.naive.figure.mean / row.ours.figure.median, 3)


def _peer(figure: Figure, *, alone: bool) -> str:
    values = [
        fixed(one.value) if alone else f"{one.tool} {fixed(one.value)}" for one in figure.peers
    ]
    return ", ".join(values) or NOTHING


# ---- marks and reasons ----


def _marks(row: CourseRow, smaller: Sequence[str], letters: dict[str, str]) -> Text:
    """Return the verdict of ours, the letters of reasons, why the row is not comparable with the
    published one, and the verdict of the naive case if that differs."""
    ours = row.ours.case.verdict if row.ours.case else None
    naive = row.naive.case.verdict if row.naive and row.naive.case else ours
    words = [f"({letters[reason]})" for reason in _reasons(row)]
    words += [*smaller, *([f"naive: {naive}"] if naive is not ours else [])]
    figure: Inline = Mark(ours) if row.ours.case else "not measured"
    return (figure, f" {', '.join(map(_unbroken, words))}" if words else "")


def _unbroken(text: str) -> str:
    """Return the text on one line of a narrow column; a long one on two."""
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}than", " than")


def _letters(rows: Sequence[CourseRow]) -> dict[str, str]:
    """Return a letter for each reason."""
    reasons = dict.fromkeys(reason for row in rows for reason in _reasons(row))
    return {reason: _letter(number) for number, reason in enumerate(reasons)}


def _letter(number: int) -> str:
    last = chr(ord("a") + number % 26)
    return last if number < 26 else f"{_letter(number // 26 - 1)}{last}"


def _reasons(row: CourseRow) -> list[str]:
    """Return the reason for ours, and the one for the naive way if that differs."""
    ours, naive = _missing(row.ours), _missing(row.naive) if row.naive else None
    texts = [ours] if ours else []
    return [*texts, f"the naive way: {naive}"] if naive and naive != ours else texts


def _missing(measured: Measured) -> str | None:
    """Return why there is no figure, or None if there is one."""
    return None if measured.figure is not None else full_sentence(_why(measured.case))


def _why(case: CaseResult | None) -> str:
    if case is None:
        return NOT_PLANNED
    if case.verdict is None:
        return "the case is not finished"
    reasons = "; ".join(reason.text for reason in case.reasons)
    return f"{case.verdict}: {reasons}" if reasons else f"{case.verdict}, without a reason"
