"""The event stream of a benchmark program: one JSON object a line, as docs/kernel-protocol.md says.

docs/kernel-protocol.schema.json is generated from here. Seconds, hertz, bytes and operations are
base units; a figure that could not be had is null and `reasons` says why; NaN and Infinity are
refused.
"""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    TypeAdapter,
)

PROTOCOL_SCHEMA = 1
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
ParamValue = StrictInt | StrictFloat | StrictStr
Metrics = dict[Name, float | None]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Ratio = Annotated[float, Field(ge=0)]


class ProtocolModel(BaseModel):
    """Base of everything a program says: exact types, nothing unknown, finite numbers only."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


class Placement(ProtocolModel):
    """Where the threads ran. `quota_cpus` is the cgroup CPU bandwidth in CPUs, None: no limit.

    `cpuset` is the effective cpuset as the kernel writes it, None: unknown.
    """

    cpus: tuple[Count, ...]
    affinity: tuple[Count, ...]
    cores: Annotated[int, Field(ge=1)]
    sockets: Annotated[int, Field(ge=1)]
    smt_shared: bool
    oversubscribed: bool
    policy: Literal["cores_first", "given"]
    quota_cpus: Annotated[float, Field(gt=0)] | None
    cpuset: str | None
    cgroup: Literal["v1", "v2"] | None


class Clock(ProtocolModel):
    """The clock the trial was timed with: smallest step seen and the cost of one reading."""

    source: str
    resolution_s: Annotated[float, Field(gt=0)]
    read_s: Annotated[float, Field(gt=0)]


class Library(ProtocolModel):
    """A library that did part of the measured work. `path` is the file that was loaded; `detail` is
    what else decides about its speed, such as the kernels it chose for this CPU.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    version: str
    path: str
    detail: str | None


class StartEvent(ProtocolModel):
    """Everything is set up; `params` holds each parameter as resolved, None: not set.

    `facts`: what a workload found about its surroundings, such as the interface it sends through.
    """

    event: Literal["start"]
    protocol: Literal[1] = Field(alias="schema")
    program: str
    version: str
    workload: Name
    params: dict[Name, ParamValue | tuple[Count, ...] | None]
    placement: Placement
    clock: Clock
    libraries: tuple[Library, ...] = ()
    facts: dict[Name, str] = Field(default_factory=dict)
    time_unix_s: Annotated[float, Field(gt=0)]


class SampleEvent(ProtocolModel):
    """The figures of one interval of the timed region; `t_s` is its end since the barrier."""

    event: Literal["sample"]
    t_s: Seconds
    dt_s: Annotated[float, Field(gt=0)]
    metrics: Metrics


class WarningEvent(ProtocolModel):
    """Something the reader of the figures should know."""

    event: Literal["warning"]
    code: Name
    message: Annotated[str, StringConstraints(min_length=1)]


class ThreadReport(ProtocolModel):
    """What one thread did; start and stop count from the barrier.

    Beside these fields it carries its rate, or the time of one operation, under the name of the
    workload's primary metric (None of a thread that only makes load) and, where a clock chain was
    run, `clock_hertz`. `operations` are bytes where the workload counts bytes. `clean_slices` None:
    the workload has a loop of its own, and no slices.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | None]

    cpu: Count
    start_s: float
    stop_s: float
    cpu_s: Seconds | None
    wait_s: Seconds | None
    involuntary_switches: Count | None
    slices: Count
    clean_slices: Count | None
    operations: Count


class Disturbance(ProtocolModel):
    """What the kernel saw between the first start and the last stop.

    `cpu_ratio`: CPU time of the threads over their wall time; of a workload with a loop of its own,
    which waits for other things too, the share of the time that no thread was kept waiting for one.
    `stopped_s`: how long the program was stopped, as by a hypervisor, or the machine suspended;
    None: the program is of an earlier version.
    """

    cpu_ratio: Ratio | None
    wait_s: Seconds | None
    involuntary_switches: Count | None
    steal_s: Seconds | None
    psi_cpu_some_s: Seconds | None
    throttled_s: Seconds | None
    stopped_s: Seconds | None = None
    clean_slice_ratio: Annotated[float, Field(ge=0, le=1)] | None
    harness_ratio: Ratio | None


class Sentinel(ProtocolModel):
    """Additions per cycle of the first thread, alone and beside the other threads, before the
    warm-up and after the timed region: two threads that share a core do what one does."""

    alone_before: Ratio
    all_before: Ratio
    alone_after: Ratio
    all_after: Ratio


class EndEvent(ProtocolModel):
    """The trial measured. `reasons` says under a dotted name why a value is null.

    `sentinel` None: it says nothing of such a workload, or the program is of an earlier version.
    """

    event: Literal["end"]
    metrics: Metrics
    basis: Literal["clean_slices", "whole_run"]
    threads: tuple[ThreadReport, ...]
    disturbance: Disturbance
    sentinel: Sentinel | None = None
    verified: Literal[True]
    elapsed_s: Seconds
    reasons: dict[str, str]


class SkipEvent(ProtocolModel):
    """The workload cannot run here with these parameters."""

    event: Literal["skip"]
    reason: Annotated[str, StringConstraints(min_length=1)]


class ErrorEvent(ProtocolModel):
    """The trial failed: no figure."""

    event: Literal["error"]
    code: Name
    message: Annotated[str, StringConstraints(min_length=1)]


LastEvent = EndEvent | SkipEvent | ErrorEvent


Event = Annotated[
    StartEvent | SampleEvent | WarningEvent | EndEvent | SkipEvent | ErrorEvent,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


class ProcessUsage(ProtocolModel):
    """One process of ours, or one server we use, over the time of a trial.

    `component`: service, orchestrator, redis. `written_bytes` is what it caused to be written to
    storage, None: the kernel does not tell.
    """

    component: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    cpu_s: Seconds
    elapsed_s: Annotated[float, Field(gt=0)]
    written_bytes: Annotated[int, Field(ge=0)] | None

    @property
    def cpu_ratio(self) -> float:
        """Its share of one CPU."""
        return self.cpu_s / self.elapsed_s


class OtherProcesses(ProtocolModel):
    """Processes of one name that are none of hostbench's and used the CPU while a trial ran.

    `pid` is the one of them that used most, `group` its control group, None: the root of all, or
    the kernel does not tell. `kernel`: threads of the kernel, which may have worked for the trial.
    """

    command: str
    pid: Annotated[int, Field(gt=0)]
    processes: Annotated[int, Field(gt=0)]
    cpu_s: Seconds
    kernel: bool = False
    group: str | None = None


class OtherGroup(ProtocolModel):
    """A control group whose processes, none of hostbench's, used the CPU while a trial ran."""

    group: str
    processes: Annotated[int, Field(gt=0)]
    cpu_s: Seconds


class DiskUser(ProtocolModel):
    """Processes of one name, none of hostbench's, that read from disks or wrote to them while a
    trial ran; `pid` is the one that did most of it, `group` its control group."""

    command: str
    pid: Annotated[int, Field(gt=0)]
    processes: Annotated[int, Field(gt=0)]
    disk_bytes: Count
    group: str | None = None


class DiskUse(ProtocolModel):
    """Bytes that were read from disks and written to them while a trial ran: by hostbench and its
    programs, and by other processes, as far as these can be seen. `busiest`: those that moved most,
    most first."""

    own_bytes: Count
    others_bytes: Count
    busiest: tuple[DiskUser, ...]


class OthersEvent(ProtocolModel):
    """Who else used this host while a trial ran, from before its program started until it had
    ended.

    `cpus`: the CPUs of the host. `cpu_s`: CPU time on them that was neither hostbench's nor its
    programs', None: the kernel does not tell. `user_s`: of that, in programs' own code; threads of
    the kernel have none. `busiest`: those that used most, most first.
    `busiest_group`: the control group that used most, if several names of processes did so in it.
    `unseen`: processes of other containers, or of the host outside this one, cannot be seen.
    `clock_held_s`: how long the CPU that suffered most was held below its clock by heat or power,
    None: the CPU has no such counter, or the kernel does not tell. `disk`: of trials that measure a
    disk; None: of others, and where the kernel does not count it.
    """

    event: Literal["others"] = "others"
    elapsed_s: Annotated[float, Field(gt=0)]
    cpus: Annotated[int, Field(gt=0)]
    cpu_s: Seconds | None
    user_s: Seconds | None = None
    busiest: tuple[OtherProcesses, ...]
    busiest_group: OtherGroup | None = None
    unseen: bool = False
    clock_held_s: Seconds | None = None
    disk: DiskUse | None = None


class ControlPlaneEvent(ProtocolModel):
    """The last line of a trial that ran through a service: without it the stream was cut."""

    event: Literal["control_plane"] = "control_plane"
    processes: tuple[ProcessUsage, ...]
