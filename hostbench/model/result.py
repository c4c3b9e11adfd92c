"""The result document, and the journal it is assembled from.

Each job has a directory. `journal.ndjson` grows by one record a line while the job runs;
`result.json` is derived from it at the end, and only then. Units: seconds, hertz, and the metric's
own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, model_validator

from hostbench.model.campaign import EngineName, LockName
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
from hostbench.model.summary import FAILURES as FAILURES
from hostbench.model.summary import JobState as JobState
from hostbench.model.summary import JobSummary as JobSummary
from hostbench.model.summary import Verdict as Verdict
from hostbench.model.table import Direction, Metric, ParamMeaning

# Documents of schema 1 have no digest.
UNSEALED_SCHEMA, RESULT_SCHEMA = 1, 2
OWN_TOOL = "hostbench"

WITH_FIGURE = frozenset({Verdict.CLEAN, Verdict.NOISY, Verdict.DISTURBED, Verdict.INVALID})
# The figure may be used within its interval.
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
    """The second host of a job, with the far ends of its network tests.

    `program` runs there. Data goes to `address`; `near_address` is the address that the measuring
    host sends from.
    """

    inventory: HostInventory
    program: ProgramVersion
    address: str
    near_address: str

    @property
    def identity(self) -> tuple[object, ...]:
        """What must be equal for figures of two sessions to be comparable."""
        return (*self.inventory.identity, self.program.sha256, self.address, self.near_address)


class CampaignMember(StoredModel):
    """Which part of a campaign over many hosts a job is: hostbench.fleet.

    `cluster` names the cluster for good. `lock` is what kept other runs away: the host's lock file
    (`host`), or a Lease object of the cluster, which keeps out other campaigns alone (`lease`).
    `far_node` and `round`: of a pair of nodes, the one that did not measure, and the round of the
    campaign; None: the node was measured alone. `rack`, `far_rack`: the racks of both, as the
    campaign knows them; None: it knows none, or the node was measured alone.
    """

    campaign: str
    engine: EngineName
    cluster: str
    node: str
    lock: LockName
    far_node: str | None = None
    round: int | None = None
    rack: str | None = None
    far_rack: str | None = None

    @property
    def unit(self) -> str:
        """Return what the campaign calls it: the node, or the name of the pair."""
        if self.far_node is None or self.round is None:
            return self.node
        return pair_name(self.round, self.node, self.far_node)


def pair_name(round_: int, near: str, far: str) -> str:
    """Return the name of a pair of nodes in a campaign."""
    return f"{round_}-{near}+{far}"


class PlannedCase(StoredModel):
    """A case: a workload with one full set of parameters.

    - `case`: the hash of workload and `params`.
    - `given`: the parameters that the suite named, in the table's order; the program is called with
      these.
    - `trial_time_s`: the expected time of one trial; None when it cannot be known.
    - `timeout_s`: when a trial is given up.
    - `peers`: the tools measured in turn with it; `peers_time_s`: the expected time of one trial of
      each.
    - `skip`: why this job does not measure the case; None: it does.
    - `naive`: the workload measures in a way that is known to mislead.
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
        """The parameters that the program is called with."""
        return {name: self.params[name] for name in self.given}

    @property
    def title(self) -> str:
        """The name of the case for people."""
        return f"{self.workload} {self.label}".strip()


@dataclass(frozen=True)
class Estimate:
    """Seconds from the first gate to the last trial. `complete` is False when the time of some
    trial cannot be known, such as one of a fixed work."""

    low_s: float
    high_s: float
    trials_low: int
    trials_high: int
    peer_trials_low: int
    peer_trials_high: int
    complete: bool


class Busy(StoredModel):
    """A busy process. `cpu_ratio` is its share of one CPU."""

    pid: int
    command: str
    cpu_ratio: float


class IdleWindow(StoredModel):
    """How busy the host was over `seconds`. A share that could not be read is None.

    `busy_ratio` and `steal_ratio` are shares of the time of all CPUs, `busiest_cpu_ratio` of one.
    The rates of disks and network add up reads and writes, received and sent bytes.
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
    """Why a trial has no figure. `exit_code` is the exit code that it causes for the job."""

    code: Name
    message: str
    exit_code: int


class SessionRecord(StoredModel):
    """The first record of a journal, and of every resumption: what is about to be measured.

    - `kept`: the cases that an earlier session finished; `continued`: other cases whose trials
      count and that need more.
    - `far_host` None: the job measures on one host only. `member` None: it is part of no campaign.
    - `workloads`, `params`: the metrics of each workload in the plan, and the meaning of its
      parameters. An old journal has no `params` (old_params.py).
    - `boot`: the same moment as `time_unix_s`; None: unknown.
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
    member: CampaignMember | None = None

    def meaning(self, workload: str, param: str) -> ParamMeaning:
        """Return the meaning of a workload's parameter. For a name in no table, return its old
        meaning."""
        known = self.params.get(workload, ())
        return next((one for one in known if one.name == param), None) or old_meaning(param)


class IdleRecord(StoredModel):
    """The idle gate's answer before a suite, a block or a case, for `cases`.

    `idle` None: not measured, or not readable.
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
    """One trial: its raw events, and the judgement of them.

    `efficiency` is the primary metric over its limit; None when there is no limit. A peer's trial
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
        """The start event, if the trial got that far."""
        return next((event for event in self.events if isinstance(event, StartEvent)), None)

    @property
    def end(self) -> EndEvent | None:
        """The end event, if the trial measured."""
        return next((event for event in self.events if isinstance(event, EndEvent)), None)

    @property
    def skip(self) -> SkipEvent | None:
        """The skip event, if the workload cannot run here."""
        return next((event for event in self.events if isinstance(event, SkipEvent)), None)

    @property
    def peer_start(self) -> PeerStartEvent | None:
        """The start event of a peer's trial."""
        return next((event for event in self.events if isinstance(event, PeerStartEvent)), None)

    @property
    def peer_end(self) -> PeerEndEvent | None:
        """The end event of a peer's trial, if the peer ran."""
        return next((event for event in self.events if isinstance(event, PeerEndEvent)), None)

    @property
    def others(self) -> OthersEvent | None:
        """Who else used the host during the trial."""
        return next((event for event in self.events if isinstance(event, OthersEvent)), None)

    @property
    def control_plane(self) -> ControlPlaneEvent | None:
        """What hostbench itself used during the trial, if it ran through a service."""
        return next((event for event in self.events if isinstance(event, ControlPlaneEvent)), None)

    @property
    def samples(self) -> tuple[SampleEvent, ...]:
        """The figures of the intervals."""
        return tuple(event for event in self.events if isinstance(event, SampleEvent))

    @property
    def warnings(self) -> tuple[WarningEvent, ...]:
        """The program's warnings."""
        return tuple(event for event in self.events if isinstance(event, WarningEvent))


class StopReason(StrEnum):
    """Why no further trial of a case was run."""

    TARGET_REACHED = "target_reached"
    MAX_TRIALS = "max_trials"
    MAX_TIME = "max_time"
    SKIPPED = "skipped"
    FAILED = "failed"


class ConfidenceInterval(StoredModel):
    """An interval that holds the true median with probability `confidence`. A confidence of 0
    belongs to a single trial, which shows no spread.

    Documents older than Student's interval have the interval of order statistics, with its real
    coverage (n = 3: 75 %).
    """

    low: float
    high: float
    confidence: float


class ClassSpread(StoredModel):
    """How much the trials of a case differ in the other cases of its class.

    `deviation_ratio` is the standard deviation of the logarithms, over `cases` cases with `degrees`
    degrees of freedom together.
    """

    deviation_ratio: float
    degrees: Annotated[int, Field(gt=0)]
    cases: Annotated[int, Field(gt=0)]


class Statistics(StoredModel):
    """Statistics of the trials that count. n counts trials, never samples.

    `half_width_ratio` is half the interval over the median; None without an interval or with a
    median of 0. `outliers` are positions among the counted trials. `unstable` says why pyperf's
    rules call the trials unstable; None when they do not.
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
    """What was known about the class of a case when it ended, without the case's own trials.

    - `figure`, `delivered`: how much the trials of the other cases differ, in the figures that
      count and in the delivered figures; None: unknown.
    - `drift_ratio`: how much figures of this class drift between jobs on such a host.
    - `usual_half_width`: the usual half-width of their interval there, as a share of the figure; 0:
      unknown.
    """

    figure: ClassSpread | None = None
    delivered: ClassSpread | None = None
    drift_ratio: float = 0.0
    usual_half_width: float = 0.0


class Interval(StoredModel):
    """From `low` to `high`, in the unit of the figure it belongs to."""

    low: float
    high: float


class Figure(StoredModel):
    """One of the two figures of a case, a median of `n` trials.

    - `interval`: holds the true figure with probability `coverage`; both are None where the spread
      is unknown.
    - `least_difference_ratio`: the least relative change that a second job like this one would show
      in 4 of 5 attempts; None: unknown.
    - `drift_ratio`: the standard deviation between jobs on such a host. It is part of both,
      although trials do not show it; 0: unknown.
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
    """The condition of the host while the trials of a case ran, whether or not it affected the
    figure.

    - `state`: what took the largest `share` of the CPUs' time (for `throttled`: of the trials'
      time).
    - `also`: what took smaller shares.
    - `culprit`: who took it; None: unknown. `is_sure`: the culprit took at least half of what was
      taken.
    """

    state: ConditionState
    share: float | None = None
    culprit: str | None = None
    is_sure: bool = False
    also: dict[ConditionState, float] = Field(default={})

    def share_of(self, state: ConditionState) -> float | None:
        """Return the share of one state; None: it is not reported."""
        return self.share if state is self.state else self.also.get(state)

    @property
    def shared_ratio(self) -> float:
        """The share that others on the host took; 0: none is known."""
        return self.share_of(ConditionState.SHARED) or 0.0

    @property
    def of_cpu_time(self) -> "Condition | None":
        """The same without a clock that was held down, which takes no CPU time; None: nothing else
        is known. The document names no culprit of a smaller share."""
        if self.state is not ConditionState.THROTTLED:
            return self
        state = max(self.also, key=self.also.__getitem__, default=None)
        return None if state is None else Condition(state=state, share=self.also[state])


class MetricResult(StoredModel):
    """One metric of a case. `limit` is the limit of one trial, the one in the middle."""

    unit: str
    direction: Direction
    statistics: Statistics
    limit: Limit | None = None
    efficiency: float | None = None


class PeerFigures(StoredModel):
    """What a trusted outside tool measured in turn with a case, under the same placement.

    - `metric`: our metric that the tool's figure is compared with, of the same quantity and unit; a
      whole-run mean where the tool reports one. None: the tool measures something else, or under
      other conditions (`differs`, see PeerStartEvent); its figure is then context, and there is no
      ratio.
    - `ours`: the statistics of that metric in the same pairs of neighbouring trials; None in
      documents without them.
    - `ratio`: ours over the peer's, pair by pair; None unless the verdict is clean or noisy.
    - `library`: whose code does the work, such as the BLAS behind HPL.
    - `verdict`: skipped, with the package to install, when the tool is missing.
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
        """`differs` as one phrase; empty without a difference."""
        return "; and ".join(self.differs)


class BetweenJobs(StoredModel):
    """The figure of a case in several jobs of its host, from `low` to `high`, in its unit.

    - `jobs`: their number; the case's own job is one of them.
    - `off`: in how many of them it is further from the median of all than `bound_ratio`, the larger
      of the case's target and what is usual for its class.
    """

    jobs: int
    low: float
    high: float
    off: int
    bound_ratio: float


class TwoFigures(StoredModel):
    """What the hardware did while nothing disturbed it (`undisturbed`), and what all trials
    delivered as a whole (`delivered`).

    - `figure`: the figure that tables show and the verdict judges, from the trials that count. It
      is `undisturbed` where that exists; for a disturbed case, what its slices did nevertheless;
      for workloads without slices, the whole of those trials.
    - `delivered_ratio`: `delivered` over `figure` (for times: the inverse), at most 1; None for
      workloads without slices.
    - `best`: the best figure of a trial behind `figure`: what was reached, even where no limit is
      known. It is not a limit.
    - `between_jobs`: how the figure varies from job to job; None: the results directory had too few
      jobs like this one when the job began, or the figure may not be used.

    All are None in documents that are older than these fields.
    """

    figure: Figure | None = None
    undisturbed: Figure | None = None
    delivered: Figure | None = None
    delivered_ratio: float | None = None
    best: float | None = None
    condition: Condition | None = None
    between_jobs: BetweenJobs | None = Field(default=None, exclude_if=lambda jobs: jobs is None)


class CaseFigures(TwoFigures):
    """The result of a case's trials.

    `counted` are the indices of the trials that count. `reasons` explain the verdict, and are empty
    without one. `others`: what the intervals took from other cases.
    """

    reasons: tuple[Reason, ...]
    metrics: dict[Name, MetricResult]
    counted: tuple[int, ...]
    peers: tuple[PeerFigures, ...]
    others: ClassSpreads = ClassSpreads()


class CaseRecord(StoredModel):
    """A case is done. Without this record its trials do not count as complete.

    `figures` None: in the events of the API, and in journals that are older than this field.
    """

    record: Literal["case"] = "case"
    case: str
    stopped: StopReason
    verdict: Verdict
    figures: CaseFigures | None = Field(default=None, exclude_if=lambda figures: figures is None)


class StateRecord(StoredModel):
    """How a session ended. `reason` is one sentence; None when the job succeeded."""

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
    """The clock behind a case's limit (`hertz`), and the clock that the host is expected to reach
    (`expected_hertz`, by `source`).

    `ratio` is the first over the second. `limit` is the limit at the expected clock, in the
    metric's unit. `efficiency` is the figure's share of that limit: `ratio` times the share of the
    limit at its own clock, which is the work per cycle relative to the maximum.
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
    """Everything known about one case.

    - `counted`: the indices of the trials that count.
    - `equivalent_command`: measures the same with a trusted tool, in a file of the user's own.
    - `naive`: the workload measures in a way that is known to mislead; its figure is never a
      headline.
    - `clock`: for a case whose limit rests on a measured clock, in the document of its job.
    """

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
    # Stored once in the document or the session, for all cases of a workload.
    _meanings: Mapping[str, ParamMeaning] = PrivateAttr(default_factory=dict)

    @property
    def title(self) -> str:
        """The name of the case for people."""
        return f"{self.workload} {self.label}".strip()

    def meaning(self, param: str) -> ParamMeaning:
        """Return the meaning of one of its parameters. For a name in no table, return its old
        meaning."""
        return self._meanings.get(param) or old_meaning(param)

    def with_meanings(self, meanings: Iterable[ParamMeaning]) -> Self:
        """Set the meaning of its parameters; return the case."""
        self._meanings = {one.name: one for one in meanings}
        return self


class ResultDocument(StoredModel):
    """The record of one job. InfluxDB and every report can be rebuilt from it.

    `workloads`, `params`, `boot` and `member`: see SessionRecord. `digest`: see
    hostbench.results.sealed; None in documents of schema 1, and while a document is being made.
    """

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
    member: CampaignMember | None = None
    digest: str | None = None

    @model_validator(mode="after")
    def _cases_know_what_their_parameters_mean(self) -> Self:
        for case in self.cases:
            case.with_meanings(self.params.get(case.workload, ()))
        return self
