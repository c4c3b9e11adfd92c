"""The result document and the journal it is assembled from.

One job is one directory: `journal.ndjson` grows by one record a line while it runs, and
`result.json` is derived from it at the end, and only then. Units: seconds, hertz, the metric's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, model_validator

from hostbench.model.events import (
    ControlPlaneEvent,
    EndEvent,
    Name,
    OthersEvent,
    ParamValue,
    SampleEvent,
    SkipEvent,
    StartEvent,
    WarningEvent,
)
from hostbench.model.host import Boot, HostInventory
from hostbench.model.limit import Limit
from hostbench.model.old_params import old_meaning
from hostbench.model.peer import PeerEndEvent, PeerStartEvent, TrialEvent
from hostbench.model.suite import IdlePolicy, Repeats, Suite
from hostbench.model.summary import JobState as JobState
from hostbench.model.summary import JobSummary as JobSummary
from hostbench.model.summary import Verdict as Verdict
from hostbench.model.table import Direction, Metric, ParamMeaning

# Documents of schema 1 have no digest.
UNSEALED_SCHEMA, RESULT_SCHEMA = 1, 2
OWN_TOOL = "hostbench"

WITH_FIGURE = frozenset({Verdict.CLEAN, Verdict.NOISY, Verdict.DISTURBED, Verdict.INVALID})
# The figure may be used at its interval.
USABLE = frozenset({Verdict.CLEAN, Verdict.NOISY})


class StoredModel(BaseModel):
    """Base of everything stored."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


class Reason(StoredModel):
    """Why a verdict is what it is: a code for programs, a full sentence for people."""

    code: Name
    text: str


class ProgramVersion(StoredModel):
    """Which binary measured: `sha256` of its file."""

    name: str
    subsystem: str
    version: str
    sha256: str


class FarHostRecord(StoredModel):
    """The second host of a job, where the far ends of its network tests are.

    `program` is what runs there. `address` is the one data goes to, `near_address` the one that
    the measuring host reaches it from.
    """

    inventory: HostInventory
    program: ProgramVersion
    address: str
    near_address: str

    @property
    def identity(self) -> tuple[object, ...]:
        """What must be equal for figures of two sessions to stand side by side."""
        return (*self.inventory.identity, self.program.sha256, self.address, self.near_address)


class PlannedCase(StoredModel):
    """A case: a workload with one full set of parameters.

    `case` is the hash of workload and `params`; `given` are those the suite named, in the table's
    order, and what the program is called with. `trial_time_s` is the expected time of one trial,
    None when it cannot be known; `timeout_s` is when a trial is given up. `peers` are the tools
    measured in turn with it, `peers_time_s` the expected time of one trial of each of them. `skip`:
    why it is not measured in this job; None: it is. `naive`: the workload measures the way that is
    known to mislead.
    """

    case: str
    workload: str
    params: dict[Name, ParamValue]
    given: tuple[Name, ...]
    label: str
    block: int
    repeats: Repeats
    trial_time_s: float | None
    timeout_s: float
    peers: tuple[str, ...] = ()
    peers_time_s: float = 0.0
    naive: bool = False
    skip: str | None = None

    @property
    def subsystem(self) -> str:
        """The part of the workload's full name before the dot."""
        return self.workload.partition(".")[0]

    @property
    def call(self) -> dict[str, ParamValue]:
        """The parameters the program is called with."""
        return {name: self.params[name] for name in self.given}

    @property
    def title(self) -> str:
        """How the case is called in front of people."""
        return f"{self.workload} {self.label}".strip()


@dataclass(frozen=True)
class Estimate:
    """Seconds from the first gate to the last trial. `complete` is False when some trial's time
    cannot be known, such as that of a fixed work."""

    low_s: float
    high_s: float
    trials_low: int
    trials_high: int
    peer_trials_low: int
    peer_trials_high: int
    complete: bool


class Busy(StoredModel):
    """One busy process as evidence: `cpu_ratio` is its share of one CPU."""

    pid: int
    command: str
    cpu_ratio: float


class IdleWindow(StoredModel):
    """How busy the host was over `seconds`; a share that could not be read is None.

    `busy_ratio` and `steal_ratio` are shares of the time of all CPUs, `busiest_cpu_ratio` of one.
    The rates of disks and network are read and written, received and sent together.
    """

    seconds: float
    busy_ratio: float | None
    steal_ratio: float | None
    busiest_cpu_ratio: float | None
    psi_cpu_ratio: float | None
    reasons: tuple[Reason, ...]
    disk_bytes_per_second: float | None = None
    network_bytes_per_second: float | None = None


class TrialFailure(StoredModel):
    """Why a trial has no figure. `exit_code` is what it makes of the job's exit code."""

    code: Name
    message: str
    exit_code: int


class SessionRecord(StoredModel):
    """The first record of a journal, and of every resumption: what is about to be measured.

    `kept` names the cases that an earlier session has finished, `continued` others whose trials
    count and that need more. `far_host` None: all of
    it is measured on one host. `workloads` and `params`: the metrics of each workload that occurs,
    and what its parameters mean. An old journal has no `params` (old_params.py). `boot` is the same
    moment as `time_unix_s`; None: unknown.
    """

    record: Literal["session"] = "session"
    schema_version: Literal[1] = Field(alias="schema", default=1)
    job: str
    time_unix_s: float
    boot: Boot | None = None
    hostbench: str
    programs: tuple[ProgramVersion, ...]
    host: HostInventory
    suite: Suite
    workloads: dict[str, tuple[Metric, ...]]
    cases: tuple[PlannedCase, ...]
    kept: tuple[str, ...] = ()
    continued: tuple[str, ...] = ()
    far_host: FarHostRecord | None = None
    params: dict[str, tuple[ParamMeaning, ...]] = Field(default={})

    def meaning(self, workload: str, param: str) -> ParamMeaning:
        """What a parameter of a workload means; of a name in no table, what it once meant."""
        known = self.params.get(workload, ())
        return next((one for one in known if one.name == param), None) or old_meaning(param)


class IdleRecord(StoredModel):
    """What the idle gate said before a suite, a block or a case.

    `idle` None: not measured, or not readable. `cases` are those it speaks for.
    """

    record: Literal["idle"] = "idle"
    time_unix_s: float
    cases: tuple[str, ...]
    policy: IdlePolicy
    idle: bool | None
    waited_s: float
    window: IdleWindow | None
    busiest: tuple[Busy, ...] = ()


class TrialRecord(StoredModel):
    """One trial: its raw events, and what was made of them.

    `efficiency` is the primary metric over its limit, None when there is no limit. A peer's trial
    has the tool's name, the index of our trial that it followed, and its figure in the peer's unit.
    """

    record: Literal["trial"] = "trial"
    case: str
    index: int
    tool: str = OWN_TOOL
    time_unix_s: float
    wall_s: float
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    failure: TrialFailure | None = None
    value: float | None = None
    efficiency: float | None = None
    limits: dict[Name, Limit] = Field(default={})
    events: tuple[TrialEvent, ...] = ()

    @property
    def start(self) -> StartEvent | None:
        """What was run, when the trial got that far."""
        return next((event for event in self.events if isinstance(event, StartEvent)), None)

    @property
    def end(self) -> EndEvent | None:
        """What was measured, when it was."""
        return next((event for event in self.events if isinstance(event, EndEvent)), None)

    @property
    def skip(self) -> SkipEvent | None:
        """Why it cannot run here, when it cannot."""
        return next((event for event in self.events if isinstance(event, SkipEvent)), None)

    @property
    def peer_start(self) -> PeerStartEvent | None:
        """What was run, when it is a peer's trial."""
        return next((event for event in self.events if isinstance(event, PeerStartEvent)), None)

    @property
    def peer_end(self) -> PeerEndEvent | None:
        """How the peer ended, when it ran."""
        return next((event for event in self.events if isinstance(event, PeerEndEvent)), None)

    @property
    def others(self) -> OthersEvent | None:
        """Who else used the host meanwhile."""
        return next((event for event in self.events if isinstance(event, OthersEvent)), None)

    @property
    def control_plane(self) -> ControlPlaneEvent | None:
        """What hostbench itself used meanwhile, when the trial ran through a service."""
        return next((event for event in self.events if isinstance(event, ControlPlaneEvent)), None)

    @property
    def samples(self) -> tuple[SampleEvent, ...]:
        """The figures of the intervals."""
        return tuple(event for event in self.events if isinstance(event, SampleEvent))

    @property
    def warnings(self) -> tuple[WarningEvent, ...]:
        """What the program warned of."""
        return tuple(event for event in self.events if isinstance(event, WarningEvent))


class StopReason(StrEnum):
    """Why no further trial of a case was run."""

    TARGET_REACHED = "target_reached"
    MAX_TRIALS = "max_trials"
    MAX_TIME = "max_time"
    SKIPPED = "skipped"
    FAILED = "failed"


class ConfidenceInterval(StoredModel):
    """An interval of the median that holds the true one with the probability `confidence`; 0: of
    one trial, which says nothing of its spread. Documents before Student's interval have the order
    statistics' one, with the coverage that it really has (n = 3: 75 %)."""

    low: float
    high: float
    confidence: float


class ClassSpread(StoredModel):
    """How much the trials of a case differ in the other cases of the same class of resource:
    `deviation_ratio` is the standard deviation of their logarithms, of `cases` cases with
    `degrees` degrees of freedom together."""

    deviation_ratio: float
    degrees: Annotated[int, Field(gt=0)]
    cases: Annotated[int, Field(gt=0)]


class Statistics(StoredModel):
    """Of the trials that count; n counts trials, never samples.

    `half_width_ratio` is half the interval over the median, None where there is none or it is 0.
    `outliers` are positions among the counted trials. `unstable` says why pyperf's rules would
    call it so, None when they do not.
    """

    n: int
    median: float
    mean: float
    standard_deviation: float | None
    median_absolute_deviation: float
    minimum: float
    maximum: float
    interval: ConfidenceInterval
    half_width_ratio: float | None
    outliers: tuple[int, ...]
    unstable: str | None


class ClassSpreads(StoredModel):
    """What was known of the class of a case, when it ended, beside its own trials: how much those
    of the other cases differ, in the figures that count and in what was delivered (None: nothing is
    known), by how much figures of this class drift from job to job on such a host, and how wide
    half their interval usually is there, as a share of the figure (0: unknown)."""

    figure: ClassSpread | None = None
    delivered: ClassSpread | None = None
    drift_ratio: float = 0.0
    usual_half_width: float = 0.0


class Interval(StoredModel):
    """From `low` to `high`, in the unit of what it belongs to."""

    low: float
    high: float


class Figure(StoredModel):
    """One of the two figures of a case, a median of `n` trials.

    `interval` holds the true one with the probability `coverage`; both are None where the spread
    is unknown. `least_difference_ratio`: the least relative change that a second job like this one
    would show in 4 of 5 attempts, None: it cannot be told. `drift_ratio`: the part of both that is
    not seen in the trials, the standard deviation between jobs on such a host; 0: none is known.
    """

    value: float
    unit: str
    interval: Interval | None
    coverage: float | None
    least_difference_ratio: float | None
    n: int
    drift_ratio: float = 0.0


class ConditionState(StrEnum):
    """What the host took away from the trials of a case."""

    QUIET = "quiet"
    SHARED = "shared"
    THROTTLED = "throttled"
    QUOTA = "quota"
    STOLEN = "stolen"
    UNKNOWN = "unknown"


class Condition(StoredModel):
    """What the host was like while the trials of a case ran, whatever that did to its figure.

    `state` is what took the largest `share` of the time of the CPUs (of `throttled`: of the time of
    the trials), and `also` what took less. `culprit`: who that was, None where nobody is known.
    `is_sure`: it took at least half of what was taken.
    """

    state: ConditionState
    share: float | None = None
    culprit: str | None = None
    is_sure: bool = False
    also: dict[ConditionState, float] = Field(default={})

    @property
    def shared_ratio(self) -> float:
        """The share that others on the host took; 0: none is known."""
        if self.state is ConditionState.SHARED:
            return self.share or 0.0
        return self.also.get(ConditionState.SHARED, 0.0)


class MetricResult(StoredModel):
    """One metric of a case. `limit` is that of one trial, the one in the middle."""

    unit: str
    direction: Direction
    statistics: Statistics
    limit: Limit | None = None
    efficiency: float | None = None


class PeerFigures(StoredModel):
    """What a trusted outside tool measured in turn with a case, under the same placement.

    `metric` is the metric of ours that the tool's figure is held against: of the same quantity and
    unit, a whole-run mean where the tool reports one. None: the tool measures something else, or
    under other conditions (`differs`, see PeerStartEvent); its figure stands beside ours as
    context, and there is no ratio. `ours` are the statistics of that metric in the same pairs of
    neighbouring trials, None in documents that do not have them. `ratio` are those of ours over the
    peer's, pair by pair; None where the verdict is not clean or noisy. `library`: whose code does
    the work, such as the BLAS behind HPL. `verdict` is skipped, with the package to install, when
    the tool is missing.
    """

    tool: str
    title: str
    version: str | None
    measures: str
    library: str | None
    command: tuple[str, ...]
    differs: tuple[str, ...] = ()
    metric: Name | None
    unit: str
    statistics: Statistics | None
    ours: Statistics | None = None
    ratio: Statistics | None
    verdict: Verdict
    reasons: tuple[Reason, ...]

    @property
    def difference(self) -> str:
        """`differs` in one phrase, empty where nothing does."""
        return "; and ".join(self.differs)


class TwoFigures(StoredModel):
    """What the hardware did while it was left alone (`undisturbed`), and what the whole of all
    trials came to (`delivered`).

    `figure` is the one that tables show and the verdict is about, of the trials that count:
    `undisturbed` where there is one; of a disturbed case what its slices did all the same; of
    workloads without slices the whole of those trials. `delivered_ratio` is delivered over what
    slices did, of times the other way round: the share of the speed that was delivered; None of
    workloads without slices. `best` is the best figure that one of the trials behind `figure` has:
    what was reached, also where no limit is known, and no limit itself. All are None in documents
    that do not know them yet.
    """

    figure: Figure | None = None
    undisturbed: Figure | None = None
    delivered: Figure | None = None
    delivered_ratio: float | None = None
    best: float | None = None
    condition: Condition | None = None


class CaseFigures(TwoFigures):
    """What the trials of a case amount to. `counted` are the indices of the trials that count;
    `reasons` explain the verdict, and are empty while there is none. `others`: what the intervals
    took from other cases."""

    reasons: tuple[Reason, ...]
    metrics: dict[Name, MetricResult]
    counted: tuple[int, ...]
    peers: tuple[PeerFigures, ...]
    others: ClassSpreads = ClassSpreads()


class CaseRecord(StoredModel):
    """A case is done; without this record its trials are not counted as complete.

    `figures` None: in the events of the API, and in journals that were written before
    figures stood in them.
    """

    record: Literal["case"] = "case"
    case: str
    stopped: StopReason
    verdict: Verdict
    figures: CaseFigures | None = Field(default=None, exclude_if=lambda figures: figures is None)


class StateRecord(StoredModel):
    """How a session ended. `reason` is one sentence, None when the job succeeded."""

    record: Literal["state"] = "state"
    time_unix_s: float
    state: JobState
    reason: str | None = None
    summary: JobSummary


Record = Annotated[
    SessionRecord | IdleRecord | TrialRecord | CaseRecord | StateRecord,
    Field(discriminator="record"),
]
RECORD: TypeAdapter[Record] = TypeAdapter(Record)


class CaseClock(StoredModel):
    """The clock that a case's limit rests on (`hertz`), beside the one that the host is expected to
    reach (`expected_hertz`, and `source` says who expects it).

    `ratio` is the one over the other. `limit` is the limit at the expected clock, in the metric's
    unit, and `efficiency` the figure's share of it: `ratio` times its share of the limit at its own
    clock, which is the work per cycle beside the most there can be.
    """

    hertz: float
    expected_hertz: float
    source: str
    ratio: float
    limit: float
    efficiency: float


class PeerResult(PeerFigures):
    """The figures of a peer, and its trials."""

    trials: tuple[TrialRecord, ...]


class CaseResult(TwoFigures):
    """Everything known about one case. `counted` are the indices of the trials that count,
    `equivalent_command` measures the same with a trusted tool, in a file of one's own. `naive`: the
    workload measures the way that is known to mislead; the figure is no headline. `clock`: of a
    case whose limit rests on a measured clock, in the document of its job."""

    case: str
    workload: str
    label: str
    params: dict[Name, ParamValue]
    given: tuple[Name, ...]
    repeats: Repeats
    verdict: Verdict | None
    reasons: tuple[Reason, ...]
    stopped: StopReason | None
    primary: Name
    metrics: dict[Name, MetricResult]
    counted: tuple[int, ...]
    idle: IdleRecord | None
    trials: tuple[TrialRecord, ...]
    peers: tuple[PeerResult, ...] = ()
    equivalent_command: str | None = None
    naive: bool = False
    clock: CaseClock | None = None
    # What the document or the session says once for all cases of a workload.
    _meanings: Mapping[str, ParamMeaning] = PrivateAttr(default_factory=dict)

    @property
    def title(self) -> str:
        """How the case is called in front of people."""
        return f"{self.workload} {self.label}".strip()

    def meaning(self, param: str) -> ParamMeaning:
        """What one of its parameters means; of a name in no table, what it once meant."""
        return self._meanings.get(param) or old_meaning(param)

    def with_meanings(self, meanings: Iterable[ParamMeaning]) -> Self:
        """The case, once it knows what its parameters mean."""
        self._meanings = {one.name: one for one in meanings}
        return self


class ResultDocument(StoredModel):
    """The record of one job; InfluxDB and every report can be rebuilt from it. `workloads`,
    `params` and `boot`: see SessionRecord. `digest`: see hostbench.results.sealed; None in
    documents of schema 1, and while one is made."""

    schema_version: Literal[1, 2] = Field(alias="schema", default=2)
    kind: Literal["hostbench.result"] = "hostbench.result"
    job: JobSummary
    reason: str | None
    hostbench: str
    programs: tuple[ProgramVersion, ...]
    host: HostInventory
    suite: Suite
    workloads: dict[str, tuple[Metric, ...]]
    cases: tuple[CaseResult, ...]
    far_host: FarHostRecord | None = None
    params: dict[str, tuple[ParamMeaning, ...]] = Field(default={})
    boot: Boot | None = None
    digest: str | None = None

    @model_validator(mode="after")
    def _cases_know_what_their_parameters_mean(self) -> Self:
        for case in self.cases:
            case.with_meanings(self.params.get(case.workload, ()))
        return self
