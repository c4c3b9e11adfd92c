"""What a report published about another host, and which cases measure the same here.

A suite that reruns a report says so in its `published` section: the report's own tables, with the
figures as they were printed, and for each of their rows the case that measures it soundly and the
one that measures it the way the report did.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hostbench.base.errors import shown
from hostbench.model.body import WHILE_ERRORS_ARE_FEW
from hostbench.model.events import ParamValue
from hostbench.model.registry import AnsweredSubsystem

# What a cell of a row may hold. repeats: every run's figure; mean and deviation: as printed, or of
# a single run; peer, limit: the outside tool's figure and the theoretical one; the efficiencies: in
# percent, as printed.
CellColumn = Literal[
    "repeats", "mean", "deviation", "peer", "limit", "efficiency", "peer_efficiency"
]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
RUNS_MOST, COLUMNS_MOST, ROWS_MOST, TABLES_MOST = 1000, 100, 10_000, 100
# WHILE_ERRORS_ARE_FEW is Python: behind it JSON is decoded, and a list stands for a tuple.
LIST_TOO = Field(strict=False)
Runs = Annotated[list[float | int], Field(max_length=RUNS_MOST)]
Cell = Annotated[float | int | str | Runs | None, WHILE_ERRORS_ARE_FEW]
Row = Annotated[tuple[Cell, ...], Field(max_length=COLUMNS_MOST), LIST_TOO, WHILE_ERRORS_ARE_FEW]
LISTED = "repeats"
# What the report's programs did that a sound method does not; the page has a sentence for each
# (hostbench/course/shortcuts.py).
Shortcut = Literal[
    "loop_counted",
    "loop_subtracted",
    "operands_in_memory",
    "compare_counter",
    "vectors_through_memory",
    "scalar_only",
    "rand_per_access",
    "clock_per_operation",
    "lock_per_operation",
    "copied_once",
    "blocks_in_cache",
    "time_per_block",
    "page_cache",
    "stdio_buffer",
    "sync_each",
    "sent_not_received",
    "there_and_back",
    "no_wait_for_answer",
    "one_run",
    "few_runs",
    "short_run",
    "more_threads_than_cpus",
    "host_not_idle",
]


class PublishedModel(BaseModel):
    """Base of everything published: exact types, nothing unknown, finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class PublishedHost(PublishedModel):
    """What the figures were measured on; None: the report does not say.

    `cpus` are those its operating system saw; sizes in bytes.
    """

    name: Text
    cpu: Text
    cpus: Annotated[int, Field(ge=1)] | None = None
    memory_bytes: Annotated[int, Field(ge=1)] | None = None
    disk: Text | None = None
    disk_bytes: Annotated[int, Field(ge=1)] | None = None
    network: Text | None = None
    second_host: Text | None = None
    year: int | None = None


class Match(PublishedModel):
    """Which cases measure a series, and how their figure becomes one of the table's.

    A case matches when its workload is this one, its parameters have these values, and those that
    the table's key names have the row's. `metric` None: the primary one. The figure is the metric
    times `factor`, in the table's unit; with reading `time` it is block_bytes over the metric, a
    rate in bytes per second, times `factor`: elapsed time for each block, all threads together.
    """

    workload: Annotated[str, StringConstraints(min_length=1)]
    params: dict[str, ParamValue] = {}
    metric: Word | None = None
    reading: Literal["value", "time"] = "value"
    factor: Annotated[float, Field(gt=0)] = 1.0


class Series(PublishedModel):
    """The rows of one operation: how it is measured here. `naive` None: no shortcut was taken."""

    ours: Match
    naive: Match | None = None


class TrustedTool(PublishedModel):
    """An outside tool's figure that the report sets beside its own, and what stands for it here.

    `ours` None: nothing here measures that. The peers of its case are the tools run today.
    """

    title: Text
    published: float | int | None
    unit: Text
    ours: Match | None = None


class PublishedTable(PublishedModel):
    """One table of the report.

    `kind` samples: a figure a second over time, of which the report shows a plot and no numbers.
    `source`: where it stands in the report. `key`: parameters that tell the rows of a series apart,
    each a parameter of its cases. `columns` follow operation and key in every row of `rows`.
    `chart_x`: the name of the key that is the chart's x. `theory`: the report's theoretical figure
    and how it came by it. `remarks`: where its own arithmetic or units do not hold. `shortcuts`:
    what its programs did.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: Text
    subsystem: AnsweredSubsystem
    kind: Literal["figures", "samples"] = "figures"
    source: Text
    unit: Text
    better: Literal["higher", "lower"] = "higher"
    key: Annotated[tuple[Word, ...], LIST_TOO] = ()
    chart_x: Word = "threads"
    series: Annotated[dict[Text, Annotated[Series, WHILE_ERRORS_ARE_FEW]], Field(min_length=1)]
    columns: Annotated[tuple[CellColumn, ...], LIST_TOO] = ()
    rows: Annotated[tuple[Row, ...], Field(min_length=1, max_length=ROWS_MOST), LIST_TOO]
    peer_title: Text | None = None
    theory: Text | None = None
    trusted: Annotated[tuple[TrustedTool, ...], LIST_TOO] = ()
    remarks: Annotated[tuple[Text, ...], LIST_TOO] = ()
    shortcuts: Annotated[tuple[Shortcut, ...], LIST_TOO] = ()

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        width = 1 + len(self.key) + len(self.columns)
        for position, row in enumerate(self.rows):
            if len(row) != width:
                raise ValueError(
                    f"rows[{position}] of table {self.name} has {len(row)} cells, {width} are "
                    f"needed: operation, {', '.join((*self.key, *self.columns))}"
                )
            if row[0] not in self.series:
                raise ValueError(
                    f"rows[{position}] of table {self.name} is of operation {row[0]!r}; its series "
                    f"are {', '.join(self.series)}"
                )
            for name, cell in zip(self.columns, row[1 + len(self.key) :], strict=True):
                listed = isinstance(cell, list)
                if isinstance(cell, str) or (listed != (name == LISTED) and cell is not None):
                    raise ValueError(
                        f"rows[{position}] of table {self.name}: {name} is {shown(cell)}; repeats "
                        "is a list, every other column one number such as 1.5e+9, or null"
                    )
        return self


class Published(PublishedModel):
    """A report: what it is, its host, its tables."""

    title: Text
    host: PublishedHost
    tables: Annotated[
        tuple[Annotated[PublishedTable, WHILE_ERRORS_ARE_FEW], ...],
        Field(min_length=1, max_length=TABLES_MOST),
    ]
