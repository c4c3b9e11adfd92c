"""A suite: which cases to measure, how often, and how idle the host must be."""

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from hostbench.models.events import ParamValue
from hostbench.models.published import Published

IdlePolicy = Literal["fail", "flag", "force"]
# auto: every light one that fits; otherwise the tools by name.
PeerChoice = Literal["auto", "none"] | Annotated[list[str], Field(min_length=1)]
ALL = "all"


class SuiteModel(BaseModel):
    """Base of everything a suite file says: exact types, nothing unknown, finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class IdleRules(SuiteModel):
    """When the idle gate runs and what happens when it stays shut for `timeout_s` seconds.

    fail: the run ends. flag: it measures and every result says so. force: nothing is asked.
    A block is what one entry of `cases` expands to.
    """

    policy: IdlePolicy = "flag"
    timeout_s: Annotated[float, Field(ge=0, le=86400)] = 60.0
    per: Literal["suite", "block", "case"] = "block"


class Repeats(SuiteModel):
    """How often a case is measured: at least `min_trials`, then until the half-width of the
    confidence interval is `target_half_width` of the median, at most `max_trials`, and no further
    trial begins once the case would take longer than `max_time_s` (min_trials always run)."""

    min_trials: Annotated[int, Field(ge=1, le=1000)] = 5
    max_trials: Annotated[int, Field(ge=1, le=1000)] = 15
    max_time_s: Annotated[float, Field(gt=0, le=30 * 86400)] = 600.0
    target_half_width: Annotated[float, Field(gt=0, lt=1)] = 0.02

    @model_validator(mode="after")
    def _trials_are_a_range(self) -> Self:
        if self.min_trials > self.max_trials:
            raise ValueError(
                f"min_trials {self.min_trials} is above max_trials {self.max_trials}; "
                "raise max_trials or lower min_trials"
            )
        return self


class RepeatsChange(SuiteModel):
    """What one entry of `cases` wants otherwise; None: as the suite says."""

    min_trials: int | None = None
    max_trials: int | None = None
    max_time_s: float | None = None
    target_half_width: float | None = None

    def applied_to(self, repeats: Repeats) -> Repeats:
        """The suite's repeats with these changes. Raises ValidationError when they do not fit."""
        return Repeats(**{**repeats.model_dump(), **self.model_dump(exclude_none=True)})


class Scale(SuiteModel):
    """How much of everything: what a scale changes in the whole suite. `params` stand in every
    entry that does not say otherwise itself."""

    description: str = ""
    params: dict[str, ParamValue] = {}
    repeats: RepeatsChange = RepeatsChange()
    peers: PeerChoice | None = None


class ScaleChange(SuiteModel):
    """What a scale changes in one entry."""

    params: dict[str, ParamValue] = {}
    repeats: RepeatsChange = RepeatsChange()
    timeout_s: Annotated[float, Field(gt=0, le=30 * 86400)] | None = None
    peers: PeerChoice | None = None


class SuiteCase(SuiteModel):
    """One entry of `cases`: a workload, fixed parameters, and a grid that is multiplied out.

    `timeout_s` bounds one trial; None: derived from the trial's duration. `peers` None: as the
    suite says. `far_host` optional: where there is no second host, cases that need one are skipped
    instead of refused.
    """

    workload: Annotated[str, StringConstraints(min_length=1)]
    params: dict[str, ParamValue] = {}
    grid: dict[str, Literal["all"] | Annotated[list[ParamValue], Field(min_length=1)]] = {}
    repeats: RepeatsChange = RepeatsChange()
    label: Annotated[str, StringConstraints(min_length=1, max_length=120)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=30 * 86400)] | None = None
    peers: PeerChoice | None = None
    far_host: Literal["required", "optional"] = "required"
    scales: dict[str, ScaleChange] = {}


class Suite(SuiteModel):
    """A suite file. With `scales` it is measured at one of them, the first unless told; `scale` is
    the one that it was reduced to, and no file says it."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    description: str = ""
    idle: IdleRules = IdleRules()
    repeats: Repeats = Repeats()
    peers: PeerChoice = "none"
    cases: Annotated[tuple[SuiteCase, ...], Field(min_length=1)]
    scales: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")], Scale] = {}
    scale: str | None = None
    published: Published | None = None

    @model_validator(mode="after")
    def _every_case_has_possible_repeats(self) -> Self:
        for position, case in enumerate(self.cases):
            try:
                case.repeats.applied_to(self.repeats)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                name = f".{first['loc'][0]}" if first["loc"] else ""
                message = first["msg"].removeprefix("Value error, ")
                raise ValueError(f"cases[{position}].repeats{name}: {message}") from None
        return self
