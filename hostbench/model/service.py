"""Requests to a service and its answers: docs/service.md."""

import ipaddress
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter

from hostbench.model.body import BodyModel, RequestParam
from hostbench.model.events import (
    ControlPlaneEvent,
    Count,
    Name,
    ProtocolModel,
    Seconds,
)
from hostbench.model.peer import AnyTrialEvent
from hostbench.model.registry import AnsweredSubsystem, KnownSubsystem
from hostbench.model.result import OWN_TOOL, Busy, IdleWindow, ProgramVersion
from hostbench.model.table import Table

# A trial ends when its lease was not renewed for this long.
LEASE_S = 5.0
RENEW_S = 2.0
TRIAL_S_MOST = 30 * 86400.0
# The most that one session may carry.
SESSION_S_MOST = 86400.0
SESSION_STREAMS_MOST = 2048
SESSION_BYTES_MOST = 10**18

HostName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$")
]
ServiceUrl = Annotated[
    str, StringConstraints(pattern=r"^(https?://[^\s/]+|unix:/\S+)$", max_length=200)
]
LibraryName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
TrialId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class BesideRequest(BodyModel):
    """Our trial that a peer is compared with.

    - `cpus`: where its threads ran, one for each thread.
    - `rate`: its whole-run figure, in the unit of its primary metric.
    - `elapsed_s`: how long it measured.
    - `far_cpus`: where its far end ran. Only those count that are CPUs of the host on which the
      peer's server runs.
    - `libraries`: name and version of the libraries that did its work.
    """

    cpus: Annotated[tuple[Count, ...], Field(min_length=1, max_length=4096)]
    rate: Annotated[float, Field(ge=0)]
    elapsed_s: Annotated[Seconds, Field(le=TRIAL_S_MOST)]
    far_cpus: Annotated[tuple[Count, ...], Field(max_length=4096)] = ()
    libraries: Annotated[tuple[LibraryName, ...], Field(max_length=16)] = ()


def _one_host(text: str) -> str:
    """Return the address of one host in its normal form. Raise ValueError for anything else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address; give one such as 192.0.2.7") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(
            f"{text!r} is an IPv4 address written as one of IPv6; give {address.ipv4_mapped}"
        )
    broadcast = text == "255.255.255.255"
    if address.is_multicast or address.is_unspecified or broadcast or "%" in text:
        raise ValueError(f"{text!r} is not the address of one host; give one such as 192.0.2.7")
    return str(address)


IpAddress = Annotated[str, StringConstraints(max_length=64), AfterValidator(_one_host)]
Port = Annotated[int, Field(ge=1, le=65535)]
SessionToken = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{32}|[0-9a-f]{64})$")]
# Fences start at the milliseconds since 1970, which stay below this until 2286, and then grow with
# each job. A larger number in a lock file is invalid: anybody may write there.
FENCE_MOST = 10**13
# JSON readers and Lua keep integers up to this exactly.
Fence = Annotated[int, Field(ge=0, le=2**53 - 1)]
ToolName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class SessionPlace(BodyModel):
    """Where an open session is. `token` is its secret, valid for one near end; None: a tool's
    server has none."""

    address: IpAddress
    port: Port
    token: SessionToken | None = Field(default=None, repr=False)


class TrialRequest(BodyModel):
    """The body of POST /trials: one trial of a workload, or of a peer beside one of ours.

    - `id`: unique, chosen by the caller.
    - `fence`: see docs/service.md; None: a trial by hand, which pre-empts no other trial.
    - `sha256`: the program that the caller planned with; None: any.
    - `timeout_s`: when the trial is given up.
    - `session`: the far end that another host's service opened for this trial.
    """

    id: TrialId
    workload: Name
    params: dict[Name, RequestParam] = Field(default_factory=dict)
    tool: ToolName = OWN_TOOL
    beside: BesideRequest | None = None
    timeout_s: Annotated[float, Field(gt=0, le=TRIAL_S_MOST)] = 3600.0
    fence: Fence | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    session: SessionPlace | None = None


class SessionRequest(BodyModel):
    """The body of POST /sessions: the far end of one trial, or the server of a peer's.

    - `id`, `fence`: as in TrialRequest; the lease of `id` is renewed by the same call.
    - `allowed_address`: the near end's address, the only one that may connect.
    - `duration_s`, `streams`, `bytes`, `rate`: the session ends above one of these: seconds from
      its first proof on, streams at a time, bytes in total, and byte/s of all streams together.
      None: no cap of its own.
    - `expiry_s`: how long it waits for the near end.
    - `workload`, `params`: those of a peer's trial; they determine which server of `tool` is
      needed. `cpus` is where the server runs; empty: anywhere.
    - `sha256`: the far end's program that the caller knows; None: any.
    """

    id: TrialId
    allowed_address: IpAddress
    duration_s: Annotated[float, Field(ge=0.1, le=SESSION_S_MOST)]
    streams: Annotated[int, Field(ge=1, le=SESSION_STREAMS_MOST)] = 1
    bytes: Annotated[int, Field(ge=1, le=SESSION_BYTES_MOST)] | None = None
    rate: Annotated[float, Field(gt=0, le=1e12)] | None = None
    expiry_s: Annotated[float, Field(ge=0.1, le=60)] = 10.0
    tool: ToolName = OWN_TOOL
    workload: Name | None = None
    params: dict[Name, RequestParam] = Field(default_factory=dict)
    cpus: Annotated[tuple[Count, ...], Field(max_length=4096)] = ()
    fence: Fence | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


class Ending(StrEnum):
    """Why a trial was ended from outside, as the code of its failure; its job is over, too.

    lease_lost: the lease was not renewed. caller_gone: the connection closed. preempted: a higher
    fence came. service_ends: the service received a signal to stop.
    """

    LEASE_LOST = "lease_lost"
    CALLER_GONE = "caller_gone"
    PREEMPTED = "preempted"
    SERVICE_ENDS = "service_ends"


class Refusal(StrEnum):
    """The codes of a refused POST /trials, in addition to those of every call."""

    BUSY = "busy"
    STALE_FENCE = "stale_fence"
    PROGRAM_CHANGED = "program_changed"
    LACKING = "lacking"
    TOOL_MISSING = "tool_missing"


class SessionOutcome(StrEnum):
    """How a session ended, as its far end reports it.

    done: the near end closed the session. expired: no near end proved the token in time. refused:
    wrong proofs, or an impossible test. lost: the near end was there and disappeared. capped: it
    exceeded a cap. ended: its owner ended it. failed: it could not continue.
    """

    DONE = "done"
    EXPIRED = "expired"
    REFUSED = "refused"
    LOST = "lost"
    CAPPED = "capped"
    ENDED = "ended"
    FAILED = "failed"


class ListeningEvent(ProtocolModel):
    """The first line of `net-bench far-end`."""

    event: Literal["listening"] = "listening"
    address: IpAddress
    port: Port


class SessionEvent(ProtocolModel):
    """The first line of a session: the address for the near end. See SessionPlace."""

    event: Literal["session"] = "session"
    address: IpAddress
    port: Port
    token: SessionToken | None = Field(repr=False)

    @property
    def place(self) -> SessionPlace:
        """The place that the near end's trial gets."""
        return SessionPlace(address=self.address, port=self.port, token=self.token)


class SessionEndEvent(ProtocolModel):
    """How a session ended.

    `strangers`: closed connections from other addresses. `cpu_s`: CPU time of the far end's
    process; None for a tool's server that does not report it.
    """

    event: Literal["session_end"] = "session_end"
    outcome: SessionOutcome
    reason: str | None = None
    strangers: Count = 0
    cpu_s: Seconds | None = None


class RouteAnswer(BodyModel):
    """The answer of GET /route: the address and the interface by which this host reaches another
    (None: none was requested), and the address where others reach this one for data, if the
    operator set one (HOSTBENCH_NET_ADDRESS)."""

    source: str | None
    interface: str | None
    address: str | None


class FailureEvent(ProtocolModel):
    """Sent in place of a figure: see hostbench.model.trial.TrialFailed. `exit_code` is the
    job's."""

    event: Literal["failure"] = "failure"
    code: Name
    message: Annotated[str, StringConstraints(min_length=1)]
    exit_code: int


class ServiceTable(BodyModel):
    """The answer of GET /workloads: the program's table as it is on this host, with `unsupported`
    and its reasons, and the peers that a suite may name."""

    subsystem: AnsweredSubsystem
    program: ProgramVersion
    table: Table
    peers: tuple[str, ...]


class IdleAnswer(BodyModel):
    """The answer of GET /idle: how busy the host was over the last `window.seconds`, and the
    busiest processes that the service can see."""

    window: IdleWindow
    busiest: tuple[Busy, ...] = ()


class Registration(BodyModel):
    """The body of POST /hosts: a service of a host registers its address, and renews that.

    - `instance`: new at every start of the service, so that the orchestrator reads its table and
      its inventory again.
    - `url`: http://name:port, or unix:/path of a socket.
    - `fence`: the highest in the host's lock file; the next job gets a higher one.
    - `held_by`: see LockAnswer.
    """

    host: HostName
    subsystem: KnownSubsystem
    url: ServiceUrl
    instance: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]
    fence: Annotated[int, Field(ge=0, le=FENCE_MOST)] = 0
    held_by: Annotated[str, StringConstraints(max_length=1000)] | None = None


class LockAnswer(BodyModel):
    """The answer to GET /lock. `held_by`: in words, who holds the host other than a trial of a job,
    such as a `hostbench run`; null: no holder."""

    held_by: str | None


class Registered(BodyModel):
    """The answer to a registration: renew it within `renew_s`, otherwise the host is gone after
    `expires_s`."""

    renew_s: float
    expires_s: float


ServiceEvent = Annotated[AnyTrialEvent | FailureEvent, Field(discriminator="event")]
SERVICE_EVENT: TypeAdapter[ServiceEvent] = TypeAdapter(ServiceEvent)

FarEndEvent = Annotated[ListeningEvent | SessionEndEvent, Field(discriminator="event")]
FAR_END_EVENT: TypeAdapter[FarEndEvent] = TypeAdapter(FarEndEvent)

SessionStreamEvent = Annotated[
    SessionEvent | SessionEndEvent | FailureEvent | ControlPlaneEvent,
    Field(discriminator="event"),
]
SESSION_STREAM_EVENT: TypeAdapter[SessionStreamEvent] = TypeAdapter(SessionStreamEvent)
