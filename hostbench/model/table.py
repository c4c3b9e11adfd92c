"""The table that a program prints with `--list`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hostbench.model.events import Name, ParamValue, ProtocolModel, Seconds

Direction = Literal["higher", "lower"]
Role = Literal["axis", "tag", "how"]


class ParamMeaning(ProtocolModel):
    """What labels, points, charts and later trials need of a parameter; stored with the results.

    - `roles`: axis: charts are drawn over it; tag: it takes few values, which distinguish series;
      how: it is how a case is measured, not what, and is in no label. Without a role, it is only
      part of labels.
    - `title`: its name in words; None: made from the name.
    - `noun`: what its number counts.
    - `named`: its values mean nothing without its name.
    - `resolved`: words that the program replaces with what they mean on this host.
    - `resolved_once`: later trials of a case get the value that the first trial chose.
    """

    name: Name
    type: Literal["count", "number", "choice", "cpu_list", "text"]
    unit: str | None
    roles: tuple[Role, ...] = ()
    title: str | None = None
    noun: str | None = None
    named: bool = False
    resolved: tuple[str, ...] = ()
    resolved_once: bool = False

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, including a fixed set of numbers."""
        return self.type in ("count", "number") or self.noun is not None


class Param(ParamMeaning):
    """One parameter. `unsupported` says for a choice why it cannot run here.

    - A `text` names something outside, such as a device; `facts` are the facts of the start event
      that may name it otherwise.
    - A `cpu_list` with a `max` may name CPUs of another host, up to that number.
    - `fallbacks`: what is measured, with a warning, in place of choices that the host lacks.
    - `excludes`: the parameter that cannot be given together with it.
    - `ends_trial`: it fixes or limits the work, so the default of duration_s does not apply with
      it.
    """

    default: ParamValue | None
    min: int | float | None
    max: int | float | None
    choices: tuple[str, ...] | None
    unsupported: dict[str, str]
    scope: Literal["request", "host"]
    help: str
    fallbacks: dict[str, str] = Field(default_factory=dict)
    facts: tuple[Name, ...] = ()
    excludes: Name | None = None
    ends_trial: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words that this parameter accepts."""
        return self.choices or ()

    @property
    def meaning(self) -> ParamMeaning:
        """The parameter without what only a program and its caller need."""
        kept = ParamMeaning.model_fields.keys()
        return ParamMeaning(**{name: getattr(self, name) for name in kept})


class Metric(ProtocolModel):
    """One quantity a workload reports."""

    name: Name
    unit: str
    direction: Direction
    primary: bool
    description: str


class Workload(ProtocolModel):
    """One entry of the table. `unsupported`: why it cannot run here, or None.

    - `kind` team: the threads work on one problem, and a trial ends with the last problem it began,
      whatever the requested duration.
    - `kind` loop: the threads wait for something outside the CPU, such as a disk. There are no
      slices, and all figures are of the whole run.
    - `setup_s`: about how long a trial with the defaults takes before its warm-up, for example to
      fill memory.
    - `naive`: it measures in a way that is known to mislead, to show by how much. Its figure has no
      limit, no peer and no place among the best.
    """

    name: Name
    description: str
    kind: Literal["step", "team", "loop"]
    setup_s: Seconds = 0.0
    # The same where size_bytes is given, for each byte; 0: as with the defaults.
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

    @model_validator(mode="after")
    def _excludes_its_own_parameters(self) -> Self:
        for param in self.params:
            if param.excludes is not None and self.param(param.excludes) is None:
                raise ValueError(f"{param.name} excludes {param.excludes}, which is no parameter")
        return self

    def param(self, name: str) -> Param | None:
        """Return the parameter called `name`, or None."""
        return next((param for param in self.params if param.name == name), None)

    @property
    def primary(self) -> Metric:
        """The metric that has a limit, a verdict and a line in the table."""
        return next(metric for metric in self.metrics if metric.primary)


class Table(ProtocolModel):
    """Everything that `--list` prints."""

    protocol: Literal[1] = Field(alias="schema")
    program: str
    subsystem: Name
    version: Annotated[str, Field(min_length=1)]
    workloads: tuple[Workload, ...]

    def workload(self, name: str) -> Workload | None:
        """Return the workload called `name`, or None."""
        return next((workload for workload in self.workloads if workload.name == name), None)
