"""Tables for people, on standard output. Colour never says anything that a word does not."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions, JustifyMethod
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hostbench.base.units import human, percent
from hostbench.judge.case import full_sentence, reason_paragraphs
from hostbench.judge.peer import shown_text, skipped_sentences
from hostbench.model.result import (
    UNSEALED_SCHEMA,
    CaseResult,
    JobState,
    JobSummary,
    PeerResult,
    ResultDocument,
    Statistics,
    Verdict,
)
from hostbench.results.sealed import UNSEALED

VERDICT_STYLES = {
    Verdict.CLEAN: "green",
    Verdict.NOISY: "yellow",
    Verdict.DISTURBED: "yellow",
    Verdict.INVALID: "bold red",
    Verdict.FAILED: "bold red",
    Verdict.SKIPPED: "dim",
}
LEAST_COLUMNS = 80
LEAST_CASE_COLUMNS = 16
HEADER = ("case", "value", "spread", "limit", "of limit", "verdict", "n")


def console_for(stream: TextIO) -> Console:
    """A console as wide as the terminal; 80 columns or COLUMNS for a file or a pipe."""
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if not stream.isatty():
        console.width = max(LEAST_COLUMNS, console.width)
    return console


def show_result(document: ResultDocument, stream: TextIO) -> None:
    """The table of a job, and every reason below it as a sentence."""
    console = console_for(stream)
    console.print(_headline(document))
    for part in _case_table(document, console.width):
        console.print(part)
    notes = _interval_notes(document)
    if notes:
        console.print(notes)
    for paragraph in reason_paragraphs(document.cases):
        console.print(paragraph)
    for sentence in skipped_sentences(peer for case in document.cases for peer in case.peers):
        console.print(full_sentence(sentence))
    if document.schema_version == UNSEALED_SCHEMA:
        console.print(UNSEALED)
    if document.reason:
        console.print(f"The job {document.job.state}: {full_sentence(document.reason)}")


def _headline(document: ResultDocument) -> str:
    host = document.host
    programs = ", ".join(f"{program.name} {program.version}" for program in document.programs)
    cpu = host.cpu.model_name or host.cpu.architecture
    far = document.far_host
    return (
        f"{document.job.id}: {document.job.state} on {host.hostname}, {cpu}, "
        f"{len(host.allowed_cpus)} CPUs, {programs}"
        + ("" if far is None else f"; far host {far.inventory.hostname} at {far.address}")
    )


def _case_table(document: ResultDocument, columns: int) -> Iterator[Table | Padding]:
    """The table in parts: what peers measured stands in whole lines below its case."""
    widths = _column_widths(document, columns)
    table = _empty_table(widths, header=True)
    workload = None
    for case in document.cases:
        if case.workload != workload:
            workload = case.workload
            table.add_row(Text(workload, style="bold"))
        table.add_row(*_case_row(case))
        lines = [_peer_line(peer) for peer in case.peers if peer.verdict is not Verdict.SKIPPED]
        if lines:
            yield table
            yield from (Padding(Text(line), (0, 0, 0, 4), expand=False) for line in lines)
            table = _empty_table(widths, header=False)
    if table.row_count:
        yield table


def _column_widths(document: ResultDocument, columns: int) -> list[int]:
    """The same for all parts: the figures as wide as they are, the case as wide as it needs."""
    rows = [[Text(name) for name in HEADER], *(_case_cells(case) for case in document.cases)]
    figures = [max(row[i].cell_len for row in rows) for i in range(1, len(HEADER))]
    names = [case.workload for case in document.cases]
    names += [f"  {_name(case)}" for case in document.cases]
    longest = max(Text(name).cell_len for name in names)
    left = columns - sum(figures) - len(figures)
    return [min(longest, max(LEAST_CASE_COLUMNS, left)), *figures]


def _empty_table(widths: Sequence[int], *, header: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=header)
    for name, width in zip(HEADER, widths, strict=True):
        if name == "case":
            table.add_column(name, overflow="fold", min_width=width, max_width=width)
        else:
            justify: JustifyMethod = "left" if name == "verdict" else "right"
            table.add_column(name, justify=justify, no_wrap=True, min_width=width)
    return table


def _peer_line(peer: PeerResult) -> str:
    """`likwid-bench 5.2.2 peakflops_avx512_fma: 206.1 Gop/s, ours/peer 1.004 (0.998–1.010), n 5`"""
    line = " ".join(part for part in (peer.tool, peer.version, peer.title) if part)
    if peer.statistics is None:
        return shown_text(f"{line}: {peer.verdict}")
    line += f": {human(peer.statistics.median, peer.unit)}"
    if peer.ratio is not None:
        low, high = peer.ratio.interval.low, peer.ratio.interval.high
        line += f", ours/peer {peer.ratio.median:.3f} ({low:.3f}–{high:.3f})"
    line += f", n {peer.statistics.n}"
    if peer.verdict is not Verdict.CLEAN:
        line += f", {peer.verdict}"
    return shown_text(line)


def _name(case: CaseResult) -> str:
    return case.label or "(defaults)"


def _case_row(case: CaseResult) -> list[Text | Padding]:
    name, *figures = _case_cells(case)
    return [Padding(name, (0, 0, 0, 2)), *figures]


def _case_cells(case: CaseResult) -> list[Text]:
    name = Text(_name(case))
    verdict = Text(
        case.verdict or "unfinished", style=VERDICT_STYLES[case.verdict] if case.verdict else "dim"
    )
    metric = case.metrics.get(case.primary)
    if metric is None:
        return [name, *(Text("–") for _ in range(4)), verdict, Text("0")]
    limit = metric.limit.value if metric.limit else None
    return [
        name,
        Text(human(metric.statistics.median, metric.unit)),
        Text(_spread(metric.statistics)),
        Text(human(limit, metric.unit)),
        Text(percent(metric.efficiency)),
        verdict,
        Text(str(metric.statistics.n)),
    ]


def _spread(statistics: Statistics) -> str:
    if statistics.half_width_ratio is None:
        return "–"
    return f"± {percent(statistics.half_width_ratio)}"


def _interval_notes(document: ResultDocument) -> str:
    """What the spread means, for the numbers of trials that occur."""
    coverages = {
        metric.statistics.n: metric.statistics.interval.confidence
        for case in document.cases
        if (metric := case.metrics.get(case.primary)) is not None and metric.statistics.n > 1
    }
    if not coverages:
        return ""
    spelt = ", ".join(f"{percent(coverages[n])} for n={n}" for n in sorted(coverages))
    return (
        "value: median of n trials; spread: half the interval that holds the true median with "
        f"{spelt}; of limit: median of the trials' figures, each over its own limit, since the "
        "clock moves. The sources of every limit: --json."
    )


class VerdictCounts:
    """`12 clean, 1 skipped` in a table: where a line ends, a count stays beside its verdict."""

    def __init__(self, counts: Mapping[Verdict, int]) -> None:
        pairs = [f"{count} {verdict}" for verdict, count in counts.items()]
        self._pairs = [f"{pair}," for pair in pairs[:-1]] + pairs[-1:]

    def __str__(self) -> str:
        return " ".join(self._pairs)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        most = options.max_width
        longest = max(map(len, self._pairs), default=0)
        return Measurement(min(longest, most), min(len(str(self)), most))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines: list[str] = []
        for pair in self._pairs:
            if lines and len(f"{lines[-1]} {pair}") <= options.max_width:
                lines[-1] += f" {pair}"
            else:
                lines.append(pair)
        yield Text("\n".join(lines))


def show_jobs(summaries: Sequence[JobSummary], older: int, stream: TextIO) -> None:
    """The jobs, newest first; `older` says how many were left out."""
    console = console_for(stream)
    if not summaries:
        console.print("There are no jobs yet; measure with: hostbench run")
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    # An id is there to be copied: it is never broken.
    table.add_column("job", no_wrap=True)
    table.add_column("host", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("verdicts")
    for summary in summaries:
        table.add_row(*_job_row(summary))
    console.print(table)
    if older:
        console.print(f"{older} older jobs are not shown; --limit 0 shows all.")


def _job_row(summary: JobSummary) -> list[Text | VerdictCounts]:
    return [
        Text(summary.id),
        Text(summary.hostname),
        Text(summary.state, style="" if summary.state is JobState.SUCCEEDED else "yellow"),
        Text(str(summary.cases)),
        VerdictCounts(summary.verdicts),
    ]
