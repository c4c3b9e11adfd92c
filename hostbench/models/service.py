"""What a service and its callers say to one another: docs/service.md."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from hostbench.models.body import BodyModel, RequestParam
from hostbench.models.control_plane import ControlPlaneEvent
from hostbench.models.events import (
    Count,
    EndEvent,
    ErrorEvent,
    Name,
    ProtocolModel,
    SampleEvent,
    Seconds,
    SkipEvent,
    StartEvent,
    WarningEvent,
)
from hostbench.models.peer import PeerEndEvent, PeerStartEvent
from hostbench.models.result import OWN_TOOL, Busy, IdleWindow, ProgramVersion
from hostbench.models.table import Table
from hostbench.services import Subsystem

# A trial ends when its lease was not renewed for so long.
LEASE_S = 5.0
RENEW_S = 2.0
TRIAL_S_MOST = 30 * 86400.0

HostName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$")
]
TrialId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class BesideRequest(BodyModel):
    """The trial of ours that a peer is to be compared with: see hostbench.trial.Beside."""

    cpus: Annotated[tuple[Count, ...], Field(min_length=1, max_length=4096)]
    rate: Annotated[float, Field(ge=0)]
    elapsed_s: Seconds


class TrialRequest(BodyModel):
    """The body of POST /trials: one trial of a workload, or of a peer beside one of ours.

    `id` is the caller's own, unique. `fence`: see docs/service.md; None: a trial by hand, which
    pre-empts nobody. `sha256`: the program the caller planned with; None: whichever is there.
    `timeout_s`: when the trial is given up.
    """

    id: TrialId
    workload: Name
    params: dict[Name, RequestParam] = Field(default_factory=dict)
    tool: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")] = OWN_TOOL
    beside: BesideRequest | None = None
    timeout_s: Annotated[float, Field(gt=0, le=TRIAL_S_MOST)] = 3600.0
    fence: Annotated[int, Field(ge=0, le=2**62)] | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


class Ending(StrEnum):
    """Why a trial was ended from outside, as the code of its failure: its job is over, too.

    lease_lost: it was not renewed. caller_gone: the connection closed. preempted: a higher fence
    came. service_ends: the service was told to end.
    """

    LEASE_LOST = "lease_lost"
    CALLER_GONE = "caller_gone"
    PREEMPTED = "preempted"
    SERVICE_ENDS = "service_ends"


class Refusal(StrEnum):
    """The codes that a refused POST /trials has beside those of every call."""

    BUSY = "busy"
    STALE_FENCE = "stale_fence"
    PROGRAM_CHANGED = "program_changed"
    LACKING = "lacking"


class FailureEvent(ProtocolModel):
    """In place of a figure: see hostbench.trial.TrialFailed. `exit_code` is the job's."""

    event: Literal["failure"] = "failure"
    code: Name
    message: Annotated[str, StringConstraints(min_length=1)]
    exit_code: int


class ServiceTable(BodyModel):
    """The answer of GET /workloads: the program's table as it is on this host, `unsupported` and
    its reasons included, and the peers a suite may name."""

    subsystem: Subsystem
    program: ProgramVersion
    table: Table
    peers: tuple[str, ...]


class IdleAnswer(BodyModel):
    """The answer of GET /idle: how busy the host was over the last `window.seconds`, and which
    processes were busiest, as far as the service sees them."""

    window: IdleWindow
    busiest: tuple[Busy, ...] = ()


class Registration(BodyModel):
    """The body of POST /hosts: a service of a host says where it is, and renews that.

    `instance` is new at every start of the service, so that the orchestrator reads its table and
    its inventory anew. `url`: http://name:port, or unix:/path of a socket.
    """

    host: HostName
    subsystem: Subsystem
    url: Annotated[
        str, StringConstraints(pattern=r"^(https?://[^\s/]+|unix:/\S+)$", max_length=200)
    ]
    instance: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]


class Registered(BodyModel):
    """The answer to it: renew within `renew_s`; without that the host is gone after `expires_s`."""

    renew_s: float
    expires_s: float


ServiceEvent = Annotated[
    StartEvent
    | SampleEvent
    | WarningEvent
    | EndEvent
    | SkipEvent
    | ErrorEvent
    | PeerStartEvent
    | PeerEndEvent
    | FailureEvent
    | ControlPlaneEvent,
    Field(discriminator="event"),
]
SERVICE_EVENT: TypeAdapter[ServiceEvent] = TypeAdapter(ServiceEvent)
