"""Requests to the orchestrator and its answers: docs/api.md."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from hostbench.base.units import human, plural
from hostbench.model.body import BodyModel
from hostbench.model.events import Name
from hostbench.model.host import HostInventory
from hostbench.model.registry import AnsweredSubsystem
from hostbench.model.result import ProgramVersion, Verdict
from hostbench.model.service import HostName
from hostbench.model.suite import TRIALS_MOST, IdlePolicy, PeerChoice, ScaleName, Suite, SuiteParam
from hostbench.model.table import Table

PRIORITY_MOST = 10
HOSTS_MOST = 2


class StackState(StrEnum):
    """The state of a job. waiting: it has its hosts and waits until they are idle."""

    QUEUED = "queued"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


# How a job ended, as part of a sentence about it.
ENDED = {
    StackState.SUCCEEDED: "succeeded",
    StackState.FAILED: "failed",
    StackState.CANCELLED: "was cancelled",
    StackState.LOST: "was lost",
}
TERMINAL = frozenset(ENDED)


def _suite_form(value: object) -> str:
    return "name" if isinstance(value, str) else "content"


SuiteName = Annotated[str, StringConstraints(min_length=1, max_length=80)]
SuiteByNameOrContent = Annotated[
    Annotated[SuiteName, Tag("name")] | Annotated[Suite, Tag("content")],
    Discriminator(_suite_form),
]


class JobSpec(BodyModel):
    """The body of POST /jobs: a suite by name or in full, or one workload.

    - `scale`: one of the suite's scales; None: the first, if there are any.
    - `hosts`: where to measure; None: the only host. With two hosts, the job measures on the first,
      and its network cases have their far ends on the second, which is otherwise kept idle.
    - `priority`: each step is worth ten minutes of waiting.
    - The other fields change the suite like the options of `hostbench run`.
    """

    suite: SuiteByNameOrContent | None = None
    scale: ScaleName | None = None
    workload: Annotated[str, StringConstraints(min_length=1, max_length=80)] | None = None
    params: dict[Name, SuiteParam] = Field(default_factory=dict)
    hosts: Annotated[list[HostName], Field(min_length=1, max_length=HOSTS_MOST)] | None = None
    priority: Annotated[int, Field(ge=-PRIORITY_MOST, le=PRIORITY_MOST)] = 0
    trials: Annotated[int, Field(ge=1, le=TRIALS_MOST)] | None = None
    idle_policy: IdlePolicy | None = None
    peers: PeerChoice | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if (self.suite is None) == (self.workload is None):
            raise ValueError("give either suite or workload")
        if self.scale is not None and self.suite is None:
            raise ValueError("scale needs suite; a workload has no scales")
        if self.params and self.workload is None:
            raise ValueError("params needs workload; the parameters of a suite stand in the suite")
        if self.hosts is not None and len(set(self.hosts)) != len(self.hosts):
            raise ValueError("hosts names one host twice; name each once")
        return self


class JobProgress(BodyModel):
    """How far a job is. `current` is the title of the running case."""

    cases: int
    done: int
    current: str | None = None
    estimate_low_s: float | None = None
    estimate_high_s: float | None = None


class JobView(BodyModel):
    """A job as GET /jobs/{id} shows it. Times are seconds since 1970.

    - `position`: counts from 1 among the queued jobs that want one of its hosts.
    - `exit_code`: the exit code that `hostbench run` would have had.
    - `sessions`: how often the job began to measure.
    - `spec` None: only the result is left.
    - `since_unix_s`: when the job entered this state; None: an older version stored it.
    """

    id: str
    state: StackState
    since_unix_s: float | None = None
    reason: str | None
    suite: str
    hosts: list[str]
    priority: int
    spec: JobSpec | None
    submitted_unix_s: float
    started_unix_s: float | None = None
    ended_unix_s: float | None = None
    position: int | None = None
    progress: JobProgress | None = None
    verdicts: dict[Verdict, int] = Field(default_factory=dict)
    exit_code: int | None = None
    sessions: int = 0

    @property
    def place(self) -> str:
        """Whether a queued job is the first that waits for its hosts, or after how many others."""
        if self.position is None:
            return "in the queue"
        before = self.position - 1
        return f"after {plural(before, 'other job')}" if before else "first in the queue"

    @property
    def why(self) -> str | None:
        """The reason of its state, for a text that has named the state: `by request` behind
        `cancelled`."""
        return self.reason and self.reason.removeprefix(f"{self.state} ")

    @property
    def what(self) -> str:
        """What it measures: `suite quick`, or a workload with its parameters."""
        spec = self.spec
        if spec is None or spec.workload is None:
            return f"suite {self.suite}"
        params = " ".join(f"{name}={value}" for name, value in spec.params.items())
        return f"{spec.workload} {params}".strip()


class QueueMemory(BodyModel):
    """What Redis keeps: `ended_jobs` jobs that have ended, the oldest at `oldest_ended_unix_s`.
    Earlier jobs are read from their results.

    `limit_bytes`: Redis' maxmemory; None: none is set. `full`: no new job is accepted.
    """

    used_bytes: int
    limit_bytes: int | None
    full: bool
    ended_jobs: int
    oldest_ended_unix_s: float | None

    @property
    def text(self) -> str:
        """How much of its memory Redis uses, in words."""
        limit = "" if self.limit_bytes is None else f" of {human(self.limit_bytes, 'byte')}"
        return f"{human(self.used_bytes, 'byte')}{limit} used"

    @property
    def refusal(self) -> str:
        """Why no new job is accepted, and the remedy."""
        return (
            f"Redis is full ({self.text}): nothing new is accepted, accepted jobs go on; wait "
            "until jobs end and points are written, cancel queued jobs, or give Redis more memory "
            "(maxmemory and mem_limit in compose.yaml)"
        )


class JobList(BodyModel):
    """The answer of GET /jobs, newest first.

    `next`: the value of `before` in the call for older jobs. `memory`: what Redis keeps. Jobs that
    Redis no longer has are listed from their results.
    """

    jobs: list[JobView]
    next: str | None = None
    memory: QueueMemory | None = None


class PostedDocument(BodyModel):
    """The answer of POST /documents. `is_new` False: the same document was stored before."""

    id: str
    host: str
    digest: str
    is_new: bool


class ServiceView(BodyModel):
    """One service of a host."""

    subsystem: AnsweredSubsystem
    url: str
    program: ProgramVersion
    renewed_unix_s: float


class HostView(BodyModel):
    """A host as GET /hosts shows it. State `gone`: its registration was not renewed."""

    name: HostName
    state: Literal["idle", "busy", "gone"]
    job: str | None
    services: list[ServiceView]
    inventory: HostInventory | None


class HostList(BodyModel):
    """The answer of GET /hosts."""

    hosts: list[HostView]


class SuiteView(BodyModel):
    """A suite that jobs may name. `scales`: its scales; a job measures the first unless it names
    another. `problem`: why it cannot be used; None: it can."""

    name: str
    description: str | None
    scales: list[str] = Field(default_factory=list)
    problem: str | None = None


class SuiteList(BodyModel):
    """The answer of GET /suites."""

    suites: list[SuiteView]


class WorkloadList(BodyModel):
    """The answer of GET /workloads: the tables of every registered host, by host."""

    hosts: dict[HostName, list[Table]]


class ConsoleLink(BodyModel):
    """The answer of POST /console/links: the path of a page that logs a browser in, once, within
    `valid_s` seconds."""

    path: str
    valid_s: int


class RejectedPoint(BodyModel):
    """A point that InfluxDB refused: its line, its retention policy (None: the default one), and
    the reason."""

    line: str
    retention: str | None
    reason: str
    time_unix_s: float


class RejectedPoints(BodyModel):
    """The answer of GET /points/rejected: the last thousand."""

    points: list[RejectedPoint]


class PartHealth(BodyModel):
    """One part of the stack. `detail`: what is wrong, or worth knowing."""

    status: Literal["ok", "degraded", "down", "off"]
    detail: str | None = None


class Health(BodyModel):
    """The answer of GET /healthz. degraded: jobs run, but something needs attention. down: no job
    can run."""

    status: Literal["ok", "degraded", "down"]
    parts: dict[str, PartHealth]
