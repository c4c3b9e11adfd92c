"""The event stream of a benchmark program: one JSON object a line (docs/kernel-protocol.md).

docs/kernel-protocol.schema.json is generated from this module. Values are in base units: seconds,
hertz, bytes, operations. A figure that is not available is null, and `reasons` says why. NaN and
Infinity are refused.
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
Joules = Annotated[float, Field(ge=0)]
Hexadecimal = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{1,16}$")]


class ProtocolModel(BaseModel):
    """Base of everything a program reports: exact types, no unknown fields, finite numbers only."""

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
    """A library that did part of the measured work.

    `path` is the file that was loaded. `detail` is what else determines its speed, such as the
    kernels it chose for this CPU.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    version: str
    path: str
    detail: str | None


class StartEvent(ProtocolModel):
    """Everything is set up. `params` holds each parameter as resolved; None: not set.

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
    """The figures of one interval of the timed region. `t_s` is the end of the interval, in seconds
    since the barrier."""

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
    """What one thread did. `start_s` and `stop_s` count from the barrier.

    A report also has the thread's rate, or the time of one operation, under the name of the
    workload's primary metric (None for a thread that only makes load). It has `clock_hertz` where a
    clock chain ran. `operations` are bytes where the workload counts bytes. `clean_slices` None:
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

    `cpu_ratio`: CPU time of the threads over their wall time. A workload with a loop of its own
    also waits for other things; there it is the share of the time in which no thread waited for a
    CPU. `stopped_s`: how long the program was stopped, for example by a hypervisor, or the machine
    suspended; None: the program is of an earlier version.
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
    warm-up and after the timed region. Two threads that share a core together do only as much as
    one."""

    alone_before: Ratio
    all_before: Ratio
    alone_after: Ratio
    all_after: Ratio


class Counted(ProtocolModel):
    """What the CPU counted for the measured threads in the timed region, in user mode; of a team,
    in its steps. `cpu_s`: their CPU time meanwhile. Source: perf_event_open(2)."""

    cycles: Count
    instructions: Count
    cpu_s: Seconds


class Energy(ProtocolModel):
    """Joules that the CPU packages and their memory took around the timed region, all processes
    together. Source: the kernel's powercap."""

    package_joules: Joules
    memory_joules: Joules | None


class PairFigure(ProtocolModel):
    """The primary metric of two CPUs alone, in its unit."""

    cpus: tuple[Count, Count]
    value: float


class RungFigure(ProtocolModel):
    """The primary metric with the threads on these CPUs alone at work, in its unit."""

    cpus: tuple[Count, ...]
    value: float


class NodeFigure(ProtocolModel):
    """A figure of the CPUs of one NUMA node with the memory of another, or of the same: a metric of
    the workload in its unit, or the `distance` that the firmware gives."""

    cpu_node: Count
    memory_node: Count
    metric: str
    value: float


class EndEvent(ProtocolModel):
    """The trial measured. `reasons` says, under a dotted name, why a value is null.

    `pairs` is empty unless the workload measures CPUs in pairs, `rungs` unless it measures one
    number of threads after another, `node_figures` unless it measures NUMA nodes in pairs.
    `sentinel` None: it means nothing for such a workload, or the program is of an earlier version.
    `counted`, `energy` None: this host counts none, or the program is of an earlier version.
    """

    event: Literal["end"]
    metrics: Metrics
    basis: Literal["clean_slices", "whole_run"]
    threads: tuple[ThreadReport, ...]
    pairs: tuple[PairFigure, ...] = ()
    rungs: tuple[RungFigure, ...] = ()
    node_figures: tuple[NodeFigure, ...] = ()
    disturbance: Disturbance
    sentinel: Sentinel | None = None
    counted: Counted | None = None
    energy: Energy | None = None
    verified: Literal[True]
    elapsed_s: Seconds
    reasons: dict[str, str]


class SkipEvent(ProtocolModel):
    """The workload cannot run here with these parameters."""

    event: Literal["skip"]
    reason: Annotated[str, StringConstraints(min_length=1)]


class WrongValue(ProtocolModel):
    """The first wrong value behind an error `wrong_result`: what `cpu` read at `place`, such as a
    lane or an address, and what belongs there, as hexadecimal numbers."""

    cpu: Count
    place: str
    expected: Hexadecimal
    value: Hexadecimal

    @property
    def bits(self) -> tuple[int, ...]:
        """The bits that differ; 0 is the lowest."""
        different = int(self.expected, 16) ^ int(self.value, 16)
        return tuple(bit for bit in range(different.bit_length()) if different >> bit & 1)


class ErrorEvent(ProtocolModel):
    """The trial failed: no figure. `wrong` None: it was no wrong result, or the workload cannot say
    more than the message does."""

    event: Literal["error"]
    code: Name
    message: Annotated[str, StringConstraints(min_length=1)]
    wrong: WrongValue | None = None


LastEvent = EndEvent | SkipEvent | ErrorEvent


Event = Annotated[
    StartEvent | SampleEvent | WarningEvent | EndEvent | SkipEvent | ErrorEvent,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


class ProcessUsage(ProtocolModel):
    """What one of our processes, or a server that we use, used during a trial.

    `component`: service, orchestrator or redis. `written_bytes`: the bytes it caused to be written
    to storage; None: the kernel does not report it.
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
    """Processes of one name, other than hostbench's, that used the CPU during a trial.

    `pid` is the one that used most. `group` is its control group; None: the root group, or the
    kernel does not report it. `kernel`: kernel threads, which may have worked for the trial.
    """

    command: str
    pid: Annotated[int, Field(gt=0)]
    processes: Annotated[int, Field(gt=0)]
    cpu_s: Seconds
    kernel: bool = False
    group: str | None = None


class OtherGroup(ProtocolModel):
    """A control group whose processes, other than hostbench's, used the CPU during a trial."""

    group: str
    processes: Annotated[int, Field(gt=0)]
    cpu_s: Seconds


class DiskUser(ProtocolModel):
    """Processes of one name, other than hostbench's, that read from disks or wrote to them during a
    trial. `pid` is the one that moved most, `group` its control group."""

    command: str
    pid: Annotated[int, Field(gt=0)]
    processes: Annotated[int, Field(gt=0)]
    disk_bytes: Count
    group: str | None = None


class DiskUse(ProtocolModel):
    """Bytes that were read from disks and written to them during a trial: by hostbench and its
    programs, and by other processes as far as they are visible. `busiest`: those that moved most,
    largest first."""

    own_bytes: Count
    others_bytes: Count
    busiest: tuple[DiskUser, ...]


class OthersEvent(ProtocolModel):
    """Who else used this host during a trial, from before its program started until it had ended.

    - `cpus`: the CPUs of the host.
    - `cpu_s`: CPU time of all but hostbench and its programs; None: the kernel does not report it.
    - `user_s`: the part of it in programs' own code. Kernel threads have none.
    - `busiest`: those that used most, largest first.
    - `busiest_group`: the control group that used most, if processes of several names did so in it.
    - `unseen`: processes of other containers, or of the host outside this container, are invisible.
    - `clock_held_s`: how long heat or power lowered the clock of the CPU that suffered most; None:
      the CPU has no such counter, or the kernel does not report it.
    - `disk`: use of disks, in trials that measure a disk; None: in others, and where the kernel
      does not count it.
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
    """The last line of a trial that ran through a service. A stream without it was cut."""

    event: Literal["control_plane"] = "control_plane"
    processes: tuple[ProcessUsage, ...]
