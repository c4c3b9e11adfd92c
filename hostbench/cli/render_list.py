"""The jobs of a results directory as a table for people, and what other tables share with it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hostbench.model.summary import JobState, JobSummary, Verdict

LEAST_COLUMNS = 80


def console_for(stream: TextIO) -> Console:
    """Return a console as wide as the terminal; for a file or a pipe, 80 columns or COLUMNS."""
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if not stream.isatty():
        console.width = max(LEAST_COLUMNS, console.width)
    return console


class VerdictCounts:
    """`12 clean, 1 skipped` in a table: when lines wrap, a count stays beside its verdict."""

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
    """Print the jobs, newest first; `older` is the number of jobs left out."""
    console = console_for(stream)
    if not summaries:
        console.print("There are no jobs yet; measure with: hostbench run")
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    # People copy an id, so it is never wrapped.
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
