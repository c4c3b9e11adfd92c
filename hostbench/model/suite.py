"""A suite: which cases to measure, how often, and how idle the host must be."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.body import WHILE_ERRORS_ARE_FEW
from hostbench.model.events import ParamValue
from hostbench.model.published import Published

IdlePolicy = Literal["fail", "flag", "force"]
# auto: every light peer that fits; otherwise the tools by name.
PEERS_MOST = 100
PeerChoice = (
    Literal["auto", "none"] | Annotated[list[str], Field(min_length=1, max_length=PEERS_MOST)]
)
ALL = "all"
DURATION = "duration_s"
# The parameters that fix the work of a trial: without duration_s, no time ends it.
FIXED_WORK = ("work", "total_bytes")
TARGET_HALF_WIDTH = 0.02
SCALES_MOST = 8
TRIALS_MOST = 1000
CASES_MOST = 10_000
SuiteParam = Annotated[ParamValue, WHILE_ERRORS_ARE_FEW]
GridAxis = Annotated[
    Literal["all"] | Annotated[list[SuiteParam], Field(min_length=1)], WHILE_ERRORS_ARE_FEW
]
ScaleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]


class SuiteModel(BaseModel):
    """Base of everything in a suite file: exact types, no unknown fields, finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class IdleRules(SuiteModel):
    """When the idle gate runs, and what happens if the host is still busy after `timeout_s`
    seconds.

    fail: the run ends. flag: it measures, and every result records it. force: the host is not
    checked. A block is what one entry of `cases` expands to.
    """

    policy: IdlePolicy = "flag"
    timeout_s: Annotated[float, Field(ge=0, le=86400)] = 60.0
    per: Literal["suite", "block", "case"] = "block"


class Repeats(SuiteModel):
    """How often a case is measured.

    At least `min_trials` run, whatever time they take. Then trials follow until the half-width of
    the confidence interval is `target_half_width` of the median, or until `max_trials` have run. No
    further trial begins if the case would then take longer than `max_time_s`. `target_half_width`
    None: the value of its subsystem; a planned case has a number.
    """

    min_trials: Annotated[int, Field(ge=1, le=TRIALS_MOST)] = 5
    max_trials: Annotated[int, Field(ge=1, le=TRIALS_MOST)] = 15
    max_time_s: Annotated[float, Field(gt=0, le=30 * 86400)] = 600.0
    target_half_width: Annotated[float, Field(gt=0, lt=1)] | None = None

    @property
    def target(self) -> float:
        """`target_half_width`; for a case that was not planned, the value of most subsystems."""
        return self.target_half_width or TARGET_HALF_WIDTH

    @model_validator(mode="after")
    def _trials_are_a_range(self) -> Self:
        if self.min_trials > self.max_trials:
            raise ValueError(
                f"min_trials {self.min_trials} is above max_trials {self.max_trials}; "
                "raise max_trials or lower min_trials"
            )
        return self


class RepeatsChange(SuiteModel):
    """What one entry of `cases` changes; None: as in the suite."""

    min_trials: int | None = None
    max_trials: int | None = None
    max_time_s: float | None = None
    target_half_width: float | None = None

    def applied_to(self, repeats: Repeats) -> Repeats:
        """Return the suite's repeats with these changes. Raise ValidationError when they do not fit
        together."""
        return Repeats(**{**repeats.model_dump(), **self.model_dump(exclude_none=True)})

    def changed_by(self, other: "RepeatsChange") -> "RepeatsChange":
        """Return both changes as one; `other` takes precedence."""
        return self.model_copy(update=other.model_dump(exclude_none=True))


class Scale(SuiteModel):
    """How much to measure: what a scale changes in the whole suite. `params` apply to every entry
    that does not set them itself."""

    description: str = ""
    params: dict[str, SuiteParam] = {}
    repeats: RepeatsChange = RepeatsChange()
    peers: PeerChoice | None = None


class ScaleChange(SuiteModel):
    """What a scale changes in one entry."""

    params: dict[str, SuiteParam] = {}
    repeats: RepeatsChange = RepeatsChange()
    timeout_s: Annotated[float, Field(gt=0, le=30 * 86400)] | None = None
    peers: PeerChoice | None = None


class SuiteCase(SuiteModel):
    """One entry of `cases`: a workload, fixed parameters, and a grid whose combinations are the
    cases.

    `timeout_s` limits one trial; None: derived from the trial's duration. `peers` None: as in the
    suite. `far_host` optional: without a second host, cases that need one are skipped, not refused.
    """

    workload: Annotated[str, StringConstraints(min_length=1)]
    params: dict[str, SuiteParam] = {}
    grid: dict[str, GridAxis] = {}
    repeats: RepeatsChange = RepeatsChange()
    label: Annotated[str, StringConstraints(min_length=1, max_length=120)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=30 * 86400)] | None = None
    peers: PeerChoice | None = None
    far_host: Literal["required", "optional"] = "required"
    scales: dict[str, ScaleChange] = {}

    def scaled(self, name: str, scale: Scale) -> "SuiteCase":
        """Return the entry at one scale of its suite.

        `scale` gives the values that neither the entry nor its own change for that scale sets; the
        entry's change takes precedence. A value that it sets replaces a whole axis of the grid.
        """
        change = self.scales.get(name, ScaleChange())
        own = {**self.params, **change.params}
        grid = {name: values for name, values in self.grid.items() if name not in change.params}
        given = own.keys() | grid.keys()
        if not given.isdisjoint(FIXED_WORK):
            given |= {DURATION}
        shared = {name: value for name, value in scale.params.items() if name not in given}
        return self.model_copy(
            update={
                "params": {**shared, **own},
                "grid": grid,
                "repeats": self.repeats.changed_by(change.repeats),
                "timeout_s": self.timeout_s if change.timeout_s is None else change.timeout_s,
                "peers": self.peers if change.peers is None else change.peers,
                "scales": {},
            }
        )


class Suite(SuiteModel):
    """A suite file.

    A suite with `scales` is measured at one of them, by default the first. `scale` names the one
    that it was reduced to; no file sets it. `max_time_ratio`: no trial begins that would end later
    than this many times the estimate; None: no limit.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    description: str = ""
    idle: IdleRules = IdleRules()
    repeats: Repeats = Repeats()
    max_time_ratio: Annotated[float, Field(ge=1, le=100)] | None = None
    peers: PeerChoice = "none"
    cases: Annotated[
        tuple[Annotated[SuiteCase, WHILE_ERRORS_ARE_FEW], ...],
        Field(min_length=1, max_length=CASES_MOST),
    ]
    scales: Annotated[dict[ScaleName, Scale], Field(max_length=SCALES_MOST)] = {}
    scale: str | None = None
    published: Published | None = None

    @model_validator(mode="after")
    def _entries_know_the_scales(self) -> Self:
        if self.scales and self.scale is not None:
            raise ValueError(f"scale {self.scale} is set beside scales; remove one of them")
        for position, case in enumerate(self.cases):
            for name in case.scales:
                if name not in self.scales:
                    known = f"give {listing(self.scales)}" if self.scales else "add it to scales"
                    raise ValueError(
                        f"cases[{position}].scales: the suite has no scale {shown(name)}; "
                        f"{did_you_mean(name, self.scales)}{known}"
                    )
        return self

    @model_validator(mode="after")
    def _every_case_has_possible_repeats(self) -> Self:
        if not self.scales:
            _check_repeats(self.repeats, self.cases, "")
        for name, scale in self.scales.items():
            at = f" at scale {name}"
            try:
                repeats = scale.repeats.applied_to(self.repeats)
            except ValidationError as error:
                raise ValueError(f"scales.{name}.repeats{_first_problem(error)}") from None
            _check_repeats(repeats, [case.scaled(name, scale) for case in self.cases], at)
        return self

    @property
    def default_scale(self) -> str | None:
        """The first scale; None: the suite has none."""
        return next(iter(self.scales), None)

    def scaled(self, name: str | None = None) -> "Suite":
        """Return the suite at one of its scales, by default the first: a plain suite that names the
        scale in `scale`.

        A suite without scales is returned unchanged. Raise UsageError for a scale that it does not
        have.
        """
        chosen = self.default_scale if name is None else name
        if chosen is None:
            return self
        if chosen not in self.scales:
            raise UsageError(self._no_such_scale(chosen))
        scale = self.scales[chosen]
        addition = f"Scale {chosen}: {scale.description}." if scale.description else ""
        return self.model_copy(
            update={
                "description": " ".join(filter(None, (self.description, addition))),
                "repeats": scale.repeats.applied_to(self.repeats),
                "peers": self.peers if scale.peers is None else scale.peers,
                "cases": tuple(case.scaled(chosen, scale) for case in self.cases),
                "scales": {},
                "scale": chosen,
            }
        )

    def _no_such_scale(self, name: str) -> str:
        if not self.scales:
            return f"suite {self.name} has no scales, but {shown(name)} is given; leave it out"
        return (
            f"suite {self.name} has no scale {shown(name)}; "
            f"{did_you_mean(name, self.scales)}give {listing(self.scales)}"
        )


def _check_repeats(repeats: Repeats, cases: Sequence[SuiteCase], where: str) -> None:
    for position, case in enumerate(cases):
        try:
            case.repeats.applied_to(repeats)
        except ValidationError as error:
            problem = _first_problem(error)
            raise ValueError(f"cases[{position}].repeats{problem}{where}") from None


def _first_problem(error: ValidationError) -> str:
    """Return `.min_trials: …` for what is wrong with repeats, or `: …` when it is their
    combination."""
    first = error.errors(include_url=False)[0]
    name = f".{first['loc'][0]}" if first["loc"] else ""
    return f"{name}: {first['msg'].removeprefix('Value error, ')}"
