"""Tables for people, on standard output. Colour never carries information that a word does not."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from hostbench.base.units import full_sentence, human, percent, plural, plus_minus
from hostbench.cli.render_list import console_for
from hostbench.decisions.baseline_files import checked_host
from hostbench.decisions.receipt import ITEMS_SHOWN, QUESTION, receipt_of
from hostbench.judge.case import (
    REASONS_SHOWN,
    grouped_reasons,
    reason_paragraphs,
    short_reasons,
)
from hostbench.judge.clock import share_of_limit
from hostbench.judge.overview import SubsystemLine, condition_words, ending_sentence, overview
from hostbench.judge.peer import compared_quantity, shown_text, skipped_sentences
from hostbench.model.baseline import HostWord, Receipt
from hostbench.model.result import (
    FAILURES,
    UNSEALED_SCHEMA,
    CaseResult,
    ConditionState,
    PeerResult,
    ResultDocument,
    Verdict,
)
from hostbench.results.sealed import UNSEALED

VERDICT_STYLES = {
    Verdict.CLEAN: "green",
    Verdict.NOISY: "yellow",
    Verdict.DISTURBED: "yellow",
    Verdict.INVALID: "bold red",
    Verdict.FAILED: "bold red",
    Verdict.CORRUPT: "bold red",
    Verdict.SKIPPED: "dim",
}
# In fewer columns, a host that was not quiet is a single mark in the table, so that most cases need
# one line.
WIDE_COLUMNS = 110
NOT_QUIET = "*"
LEAST_CASE_COLUMNS = 16
# With more cases than this, a title, a kind of reason and a tool take one line each, so that all
# fits on one or two screens. The report and --json have the rest.
CASES_IN_FULL = 20
KINDS_SHOWN = 4
ITEMS_OF_LONG = 3
# The fifth column is the delivered share: with a shorter word, most cases need one line of 80
# columns.
HEADER = ("case", "figure", "within", "limit", "given", "verdict")
OVERVIEW_HEADER = ("best case", "figure", "within", "limit", "given ≥", "host", "verdicts")


def show_result(document: ResultDocument, stream: TextIO) -> None:
    """Print the receipt, a line for each subsystem, the table of cases, what peers measured, and
    below it every reason as a sentence, grouped if there are many."""
    console = console_for(stream)
    console.print(_headline(document))
    most = ITEMS_OF_LONG if _is_long(document) else ITEMS_SHOWN
    _show_receipt(receipt_of(document, checked_host(document, os.environ)), most, console)
    lines = overview(document.cases)
    if lines:
        console.print(_overview_table(lines, console.width))
    console.print(_case_table(document, console.width))
    notes = _figure_notes(document, console.width)
    lines_of = _short_lines if _is_long(document) else _full_lines
    for text in (notes, *lines_of(document.cases, console.width)):
        console.print(text)
    for sentence in skipped_sentences(peer for case in document.cases for peer in case.peers):
        console.print(full_sentence(sentence))
    if document.schema_version == UNSEALED_SCHEMA:
        console.print(UNSEALED)
    if document.reason:
        console.print(ending_sentence(document.job.state, document.reason))


def _is_long(document: ResultDocument) -> bool:
    return sum(case.verdict is not Verdict.SKIPPED for case in document.cases) > CASES_IN_FULL


def _full_lines(cases: Sequence[CaseResult], _columns: int) -> Iterator[str]:
    """Yield what peers measured, and the reasons."""
    yield from _peer_lines(cases)
    yield from _reasons(cases)


def _show_receipt(receipt: Receipt, most: int, console: Console) -> None:
    """Print whether the host is as it should be, and what to look at."""
    style = {HostWord.LOW: "bold red", HostWord.SUSPECT: "yellow"}.get(receipt.word, "bold")
    console.print(f"{QUESTION} {receipt.answer}", style=style)
    for number, item in enumerate(receipt.items[:most], start=1):
        console.print(f"{number}. {item.text} {item.evidence}")
    if (more := len(receipt.items) - most) > 0:
        console.print(f"{plural(more, 'more finding')}: the report.")
    for note in receipt.notes:
        console.print(note)


def _overview_table(lines: Sequence[SubsystemLine], columns: int) -> Table:
    """Return a line for each subsystem: a good figure, and the worst of everything else."""
    is_wide = columns >= WIDE_COLUMNS
    rows = [_overview_cells(line, is_wide) for line in lines]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    others = sum(max(Text(name).cell_len, *(row[i].cell_len for row in rows)) + 1
                 for i, name in enumerate(OVERVIEW_HEADER) if i)  # fmt: skip
    left = max(LEAST_CASE_COLUMNS, columns - others)
    table.add_column(OVERVIEW_HEADER[0], no_wrap=True, overflow="ellipsis", max_width=left)
    for name in OVERVIEW_HEADER[1:]:
        justify: JustifyMethod = "left" if name in ("host", "verdicts") else "right"
        table.add_column(name, justify=justify, no_wrap=not is_wide)
    for row in rows:
        table.add_row(*row)
    return table


def _overview_cells(line: SubsystemLine, is_wide: bool) -> list[Text]:
    case, worst = line.headline, line.worst
    metric = None if case is None else case.metrics[case.primary]
    counts = [f"{count} {verdict or 'unfinished'}" for verdict, count in line.worst_first]
    shortest = counts[0] if worst is None else f"{line.verdicts[worst]} {worst}"
    return [
        Text(line.subsystem if case is None else case.title),
        Text("–" if metric is None else human(metric.statistics.median, metric.unit)),
        Text("–")
        if case is None or metric is None
        else _within(case, metric.statistics.half_width_ratio),
        Text("–" if case is None else _narrow(share_of_limit(case))),
        Text(_narrow(line.delivered_ratio)),
        Text("–" if line.condition is None else _condition(line, is_wide)),
        Text(
            ", ".join(counts) if is_wide else shortest,
            style="dim" if worst is None else VERDICT_STYLES[worst],
        ),
    ]


def _condition(line: SubsystemLine, is_wide: bool) -> str:
    """Return the condition, with the culprit if there is room: the findings above name it, too."""
    words = condition_words(line.condition, culprit=is_wide)
    return words if is_wide else words.replace(",", "").replace(" %", "%")


def _reasons(cases: Sequence[CaseResult]) -> list[str]:
    paragraphs = reason_paragraphs(cases)
    return paragraphs if len(paragraphs) <= REASONS_SHOWN else grouped_reasons(cases)


def _short_lines(cases: Sequence[CaseResult], columns: int) -> Iterator[str]:
    """Yield the same, one line each, except for what is wrong."""
    for line in _peer_ranges(cases):
        yield _cut(line, columns)
    # In full, but each kind once: the table marks all cases that have it.
    wrong = (*FAILURES, Verdict.INVALID)
    yield from grouped_reasons([case for case in cases if case.verdict in wrong])
    kinds = short_reasons([case for case in cases if case.verdict not in wrong])
    for text in kinds[:KINDS_SHOWN]:
        yield _cut(text, columns)
    if left := len(kinds) - KINDS_SHOWN:
        more = f"{plural(left, 'more kind')} of reasons" if left > 0 else "The reasons case by case"
        yield f"{more}: the report or --json."


def _cut(text: str, columns: int) -> str:
    """Return as much of the text as fits on one line."""
    return text if len(text) <= columns else f"{text[: columns - 1].rstrip()}…"


def _short_titles(titles: Sequence[str], columns: int) -> list[str]:
    """Return the titles cut to one line each, if they still differ."""
    cut = [_cut(title, columns) for title in titles]
    return [
        short if cut.count(short) == 1 else title for short, title in zip(cut, titles, strict=True)
    ]


def _headline(document: ResultDocument) -> str:
    host = document.host
    versions = {program.version for program in document.programs}
    named = [f"{program.name} {program.version}" for program in document.programs]
    programs = f"programs {versions.pop()}" if len(versions) == 1 < len(named) else ", ".join(named)
    cpu = host.cpu.model_name or host.cpu.architecture
    far = document.far_host
    return (
        f"{document.job.id}: {document.job.state} on {host.hostname}, {cpu}, "
        f"{len(host.allowed_cpus)} CPUs, {programs}"
        + ("" if far is None else f"; far host {far.inventory.hostname} at {far.address}")
    )


def _case_table(document: ResultDocument, columns: int) -> Table:
    """Return the table without skipped cases: the reasons name these."""
    rows = [
        _case_cells(case, columns) for case in document.cases if case.verdict is not Verdict.SKIPPED
    ]
    figures = sum(
        max([Text(name).cell_len, *(row[i].cell_len for row in rows)]) + 1
        for i, name in enumerate(HEADER)
        if i
    )
    left = max(LEAST_CASE_COLUMNS, columns - figures)
    if _is_long(document):
        titles = _short_titles([str(row[0]) for row in rows], left)
        rows = [[Text(title), *row[1:]] for title, row in zip(titles, rows, strict=True)]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    # The figures take the width they need; the case takes the rest.
    table.add_column(HEADER[0], overflow="fold", max_width=left)
    for name in HEADER[1:]:
        justify: JustifyMethod = "left" if name == "verdict" else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _peer_lines(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Yield what each tool measured beside ours, in a paragraph for each compared quantity:
    `likwid-bench 5.2.2, ours/peer of operations per second, whole run: cpu.fma fp64 1.004
    (0.998–1.010); …`.

    The report, --csv and --json have all its figures.
    """
    by_tool: dict[str, list[str]] = {}
    for case in cases:
        for peer in case.peers:
            if peer.verdict is not Verdict.SKIPPED:
                tool = " ".join(part for part in (peer.tool, peer.version) if part)
                words = f"{case.title} {_peer_words(peer)}"
                by_tool.setdefault(f"{tool}, {_peer_column(peer)}", []).append(words)
    for tool, found in by_tool.items():
        yield shown_text(f"{tool}: {'; '.join(found)}.")


def _peer_ranges(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Yield `fio 3.33: ours/peer 0.998 to 1.021 in 2 cases (bytes per second)`;
    `no ratio in 1 case`."""
    by_tool: dict[tuple[str, str | None], list[float]] = {}
    for case in cases:
        for peer in case.peers:
            if peer.verdict is not Verdict.SKIPPED:
                tool = " ".join(part for part in (peer.tool, peer.version) if part)
                ratio, metric = peer.ratio, peer.metric
                quantity = None if ratio is None or metric is None else compared_quantity(metric)
                found = by_tool.setdefault((tool, quantity), [])
                found.append(0.0 if ratio is None else ratio.median)
    for (tool, quantity), ratios in by_tool.items():
        where = plural(len(ratios), "case")
        if quantity is None:
            yield shown_text(f"{tool}: no ratio in {where}")
        else:
            between = " to ".join(f"{end:.3f}" for end in sorted({min(ratios), max(ratios)}))
            yield shown_text(f"{tool}: ours/peer {between} in {where} ({quantity})")


def _peer_column(peer: PeerResult) -> str:
    if peer.ratio is None or peer.metric is None:
        return "no ratio"
    return f"ours/peer of {compared_quantity(peer.metric)}"


def _peer_words(peer: PeerResult) -> str:
    if peer.statistics is None:
        return f"{peer.verdict}: {'; '.join(reason.text for reason in peer.reasons)}"
    if peer.ratio is None:
        words = human(peer.statistics.median, peer.unit)
        if peer.differs:
            words += f" ({peer.difference})"
    else:
        low, high = peer.ratio.interval.low, peer.ratio.interval.high
        words = f"{peer.ratio.median:.3f}"
        if peer.ratio.half_width_ratio is not None:
            words += f" ({low:.3f}–{high:.3f})"
    return words if peer.verdict is Verdict.CLEAN else f"{words}, {peer.verdict}"


def _case_cells(case: CaseResult, columns: int) -> list[Text]:
    name, verdict = Text(case.title), _verdict(case, columns)
    metric = case.metrics.get(case.primary)
    if metric is None:
        return [name, *(Text("–") for _ in range(4)), verdict]
    return [
        name,
        Text(human(metric.statistics.median, metric.unit)),
        _within(case, metric.statistics.half_width_ratio),
        Text(_narrow(share_of_limit(case))),
        Text(_narrow(case.delivered_ratio)),
        verdict,
    ]


def _within(case: CaseResult, half_width_ratio: float | None) -> Text:
    """Return half the interval; yellow if it is wider than the target of the trials."""
    if half_width_ratio is None:
        return Text("–")
    is_wide = half_width_ratio > case.repeats.target
    return Text(_without_spaces(plus_minus(half_width_ratio)), style="yellow" if is_wide else "")


def _narrow(ratio: float | None) -> str:
    """Return a share such as `99.8%`."""
    return _without_spaces(percent(ratio))


def _without_spaces(text: str) -> str:
    """Return a text in which most cases fit on one line of 80 columns."""
    return text.replace(" ", "")


def _verdict(case: CaseResult, columns: int) -> Text:
    """Return the verdict, with the host's condition if that was not quiet."""
    style = VERDICT_STYLES[case.verdict] if case.verdict else "dim"
    busy = ""
    if case.condition is not None and _is_busy(case):
        busy = f", {case.condition.state}" if columns >= WIDE_COLUMNS else NOT_QUIET
    return Text.assemble((str(case.verdict or "unfinished"), style), busy)


def _is_busy(case: CaseResult) -> bool:
    silent = (ConditionState.QUIET, ConditionState.UNKNOWN)
    return case.condition is not None and case.condition.state not in silent


def _figure_notes(document: ResultDocument, columns: int) -> str:
    """Return what the columns mean, for the confidences in the document."""
    found = [
        metric.statistics
        for case in document.cases
        if (metric := case.metrics.get(case.primary)) is not None
    ]
    if not found:
        return "No case has a figure."
    trials = sorted({one.n for one in found})
    n = f"{trials[0]} to {trials[-1]} trials" if len(trials) > 1 else plural(trials[0], "trial")
    known = [one for one in found if one.half_width_ratio is not None]
    confidences = sorted({one.interval.confidence for one in known})
    holds = ", ".join(percent(one) for one in confidences)
    marked = columns < WIDE_COLUMNS and any(map(_is_busy, document.cases))
    return (
        f"figure: median of {n}, of undisturbed slices (disk, network: all work). "
        + (f"within: holds the true figure with {holds}. " if holds else "")
        + "limit: share of it. given: share of the figure that was delivered. "
        + (f"{NOT_QUIET}: host not quiet. " if marked else "")
        + "More: --json."
    )
