"""What a report published about another host, and which cases measure the same here.

A suite that reruns a report has a `published` section with the report's own tables and the figures
as printed. For each row, it names the case that measures it soundly, and the case that measures it
the report's way.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hostbench.base.errors import shown
from hostbench.model.body import WHILE_ERRORS_ARE_FEW
from hostbench.model.events import ParamValue
from hostbench.model.registry import AnsweredSubsystem

# What a cell of a row may hold. repeats: the figure of every run; mean and deviation: as printed,
# or those of a single run; peer: the outside tool's figure; limit: the theoretical one; the
# efficiencies: in percent, as printed.
CellColumn = Literal[
    "repeats", "mean", "deviation", "peer", "limit", "efficiency", "peer_efficiency"
]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
RUNS_MOST, COLUMNS_MOST, ROWS_MOST, TABLES_MOST = 1000, 100, 10_000, 100
# WHILE_ERRORS_ARE_FEW runs in Python, on decoded JSON, so a list must be accepted for a tuple.
LIST_TOO = Field(strict=False)
Runs = Annotated[list[float | int], Field(max_length=RUNS_MOST)]
Cell = Annotated[float | int | str | Runs | None, WHILE_ERRORS_ARE_FEW]
Row = Annotated[tuple[Cell, ...], Field(max_length=COLUMNS_MOST), LIST_TOO, WHILE_ERRORS_ARE_FEW]
LISTED = "repeats"
# What the report's programs did and a sound method does not do. The page has a sentence for each
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
    """Base of everything published: exact types, no unknown fields, finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class PublishedHost(PublishedModel):
    """The host of the figures; None: the report does not state it.

    `cpus` are those that its operating system saw; sizes are in bytes.
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

    A case matches when it has this workload and these parameter values, and when the parameters in
    the table's key have the row's values. `metric` None: the primary metric. The figure is the
    metric times `factor`, in the table's unit. With reading `time`, it is `factor` times
    block_bytes over the metric, which is a rate in bytes per second: the elapsed time of each
    block, all threads together.
    """

    workload: Annotated[str, StringConstraints(min_length=1)]
    params: dict[str, ParamValue] = {}
    metric: Word | None = None
    reading: Literal["value", "time"] = "value"
    factor: Annotated[float, Field(gt=0)] = 1.0


class Series(PublishedModel):
    """The rows of one operation: how it is measured here. `naive` None: the report took no
    shortcut."""

    ours: Match
    naive: Match | None = None


class TrustedTool(PublishedModel):
    """An outside tool's figure that the report prints beside its own, and its counterpart here.

    `ours` None: nothing here measures it. The peers of its case are the tools that run today.
    """

    title: Text
    published: float | int | None
    unit: Text
    ours: Match | None = None


class PublishedTable(PublishedModel):
    """One table of the report.

    - `kind` samples: one figure a second over time; the report shows a plot of it and no numbers.
    - `source`: where it is in the report.
    - `key`: the parameters that distinguish the rows of a series, each a parameter of its cases.
    - `columns`: what follows operation and key in every row of `rows`.
    - `chart_x`: the name of the key on the chart's x axis.
    - `theory`: the report's theoretical figure and how it was derived.
    - `remarks`: errors in the report's own arithmetic or units.
    - `shortcuts`: what its programs did.
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
