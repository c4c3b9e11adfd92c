"""The rows of a published table, and the cases that measure them here."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostbench.base.units import plural
from hostbench.course.figures import Figure, figure_of
from hostbench.model.old_params import old_meaning
from hostbench.model.published import Match, PublishedHost, PublishedTable
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.plan.label import param_word
from hostbench.report.figures import by_workload

# The parameters that count threads; for network workloads, streams.
COUNTED = ("threads", "streams")
PERCENT = 100.0


@dataclass(frozen=True)
class Measured:
    """What measures a row here: the case, None if the suite has none, and its figure."""

    case: CaseResult | None
    figure: Figure | None


@dataclass(frozen=True)
class CourseRow:
    """A row of a published table. `printed` has the report's printed values by column. `naive`
    None: its series has no naive way."""

    operation: str
    key: Mapping[str, object]
    printed: Mapping[str, object]
    ours: Measured
    naive: Measured | None

    @property
    def name(self) -> str:
        """What distinguishes it from the other rows of its operation."""
        return ", ".join(self.word(name) for name in self.key)

    def word(self, name: str) -> str:
        """Return a part of its key in words, such as `8 threads` or `block 64 KiB`."""
        case = self.ours.case
        return param_word(case.meaning(name) if case else old_meaning(name), self.key[name])

    @property
    def title(self) -> str:
        """What distinguishes it from all other rows."""
        return f"{self.operation}, {self.name}" if self.key else self.operation

    def number(self, column: str) -> float | None:
        """Return the printed value of a column, if it is a number."""
        value = self.printed.get(column)
        return float(value) if isinstance(value, int | float) else None

    @property
    def repeats(self) -> tuple[float, ...]:
        """The figures of the single runs, if they are printed."""
        found = self.printed.get("repeats")
        return tuple(float(one) for one in found) if isinstance(found, list | tuple) else ()

    @property
    def mean(self) -> float | None:
        """The published figure: the printed mean, else the mean of the printed runs."""
        printed = self.number("mean")
        if printed is not None or not self.repeats:
            return printed
        return statistics.fmean(self.repeats)

    @property
    def deviation(self) -> float | None:
        """The printed deviation, else that of the printed runs."""
        printed = self.number("deviation")
        if printed is not None or len(self.repeats) < 2:
            return printed
        return statistics.stdev(self.repeats)

    @property
    def threads(self) -> int | None:
        """Threads or streams, from its key or its case."""
        params = {**(self.ours.case.params if self.ours.case else {}), **self.key}
        found = next((params[name] for name in COUNTED if name in params), None)
        return found if isinstance(found, int) else None


def listed(titles: Sequence[str], most: int = 3) -> str:
    """Return the first of them, separated by semicolons, as the titles contain commas."""
    more = f" and {len(titles) - most} more" if len(titles) > most + 1 else ""
    return "; ".join(titles[:most] if more else titles) + more


def rows_of(table: PublishedTable, document: ResultDocument) -> tuple[CourseRow, ...]:
    """Return every row of the table, in order."""
    cases = by_workload(document.cases)
    found = []
    for operation, *cells in table.rows:
        key = dict(zip(table.key, cells, strict=False))
        printed = dict(zip(table.columns, cells[len(table.key) :], strict=True))
        series = table.series[str(operation)]
        found.append(
            CourseRow(
                operation=str(operation),
                key=key,
                printed={name: cell for name, cell in printed.items() if cell is not None},
                ours=_measured(series.ours, key, cases),
                naive=_measured(series.naive, key, cases) if series.naive else None,
            )
        )
    return tuple(found)


def matching(
    match: Match, key: Mapping[str, object], cases: Mapping[str, Sequence[CaseResult]]
) -> list[CaseResult]:
    """Return the cases of a match in the order of the suite; `cases` by workload."""
    wanted = {**match.params, **key}
    return [
        case
        for case in cases.get(match.workload, ())
        if all(name in case.params and case.params[name] == wanted[name] for name in wanted)
    ]


def _measured(
    match: Match, key: Mapping[str, object], cases: Mapping[str, Sequence[CaseResult]]
) -> Measured:
    """Return the first case that has a figure, else the first case."""
    found = matching(match, key, cases)
    for case in found:
        figure = figure_of(case, match)
        if figure is not None:
            return Measured(case, figure)
    return Measured(found[0] if found else None, None)


# ---- where this host is the smaller one ----


def here_cpus(document: ResultDocument) -> int:
    """Return the number of usable CPUs."""
    return len(document.host.allowed_cpus)


def here_memory(document: ResultDocument) -> int | None:
    """Return the bytes of memory, or those that the control group allows."""
    sizes = (document.host.memory_bytes, document.host.cgroup.memory_bytes)
    return min((size for size in sizes if size is not None), default=None)


def here_disk(document: ResultDocument) -> int | None:
    """Return the size in bytes of the file system that disk workloads used."""
    return document.host.scratch.size_bytes if document.host.scratch else None


def _counted(row: CourseRow) -> str:
    return next((name for name in COUNTED if name in row.key), "threads")


def smaller_here(
    row: CourseRow, table: PublishedTable, document: ResultDocument, published: PublishedHost
) -> list[str]:
    """Return what this row lacks here, each in a few words."""
    cpus, threads, marks = here_cpus(document), row.threads, []
    if threads is not None and threads > cpus:
        marks.append(f"more {_counted(row)} than CPUs")
    elif published.cpus is not None and cpus < published.cpus and threads != 1:
        marks.append(f"{plural(cpus, 'CPU')} of {published.cpus}")
    lacks = {"mem": ("memory", here_memory(document), published.memory_bytes)}
    lacks["disk"] = ("disk", here_disk(document), published.disk_bytes)
    what, here, there = lacks.get(table.subsystem, ("", None, None))
    if here is not None and there is not None and here < there:
        marks.append(f"less {what}")
    return marks
