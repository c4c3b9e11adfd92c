"""The table that a program prints with `--list`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hostbench.models.events import Name, ParamValue, ProtocolModel, Seconds

Direction = Literal["higher", "lower"]


class Param(ProtocolModel):
    """One parameter. `unsupported` says of a choice why it cannot run here.

    A `text` is the name of something outside, such as a device.
    """

    name: Name
    type: Literal["count", "number", "choice", "cpu_list", "text"]
    unit: str | None
    default: ParamValue | None
    min: int | float | None
    max: int | float | None
    choices: tuple[str, ...] | None
    unsupported: dict[str, str]
    scope: Literal["request", "host"]
    help: str

    @property
    def words(self) -> tuple[str, ...]:
        """The words this parameter takes."""
        return self.choices or ()


class Metric(ProtocolModel):
    """One quantity a workload reports."""

    name: Name
    unit: str
    direction: Direction
    primary: bool
    description: str


class Workload(ProtocolModel):
    """One entry of the table. `unsupported`: None, or why it cannot run here.

    `kind` team: the threads work on one problem, and a trial takes as long as the last one it began
    needs, whatever the duration asked for. `kind` loop: the threads wait for something outside the
    CPU, such as a disk; there are no slices, and all figures are of the whole run. `setup_s`: what
    a trial with the defaults takes, about, before its warm-up, such as for filling memory. `naive`:
    it measures the way that is known to mislead, to show by how much; its figure has no limit, no
    peer and no place among the best.
    """

    name: Name
    description: str
    kind: Literal["step", "team", "loop"]
    setup_s: Seconds = 0.0
    # The same where size_bytes is given, for each of them; 0: as with the defaults.
    setup_s_per_byte: Seconds = 0.0
    naive: bool = False
    unsupported: str | None
    params: tuple[Param, ...]
    metrics: tuple[Metric, ...]

    @model_validator(mode="after")
    def _has_one_primary_metric(self) -> Self:
        if sum(metric.primary for metric in self.metrics) != 1:
            raise ValueError(f"workload {self.name} must have exactly one primary metric")
        return self

    def param(self, name: str) -> Param | None:
        """The parameter called `name`, or None."""
        return next((param for param in self.params if param.name == name), None)

    @property
    def primary(self) -> Metric:
        """The metric that has a limit, a verdict and a line in the table."""
        return next(metric for metric in self.metrics if metric.primary)


class Table(ProtocolModel):
    """Everything `--list` says."""

    protocol: Literal[1] = Field(alias="schema")
    program: str
    subsystem: Name
    version: Annotated[str, Field(min_length=1)]
    workloads: tuple[Workload, ...]

    def workload(self, name: str) -> Workload | None:
        """The workload called `name`, or None."""
        return next((workload for workload in self.workloads if workload.name == name), None)
