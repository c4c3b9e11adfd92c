"""The events of a trial beside those of our own programs: a peer's, and the stack's own.

A peer speaks no protocol of ours: what it printed is kept as it is, and judged from there.
"""

from typing import Annotated, Literal

from pydantic import Field

from hostbench.model.events import (
    ControlPlaneEvent,
    EndEvent,
    ErrorEvent,
    Name,
    OthersEvent,
    ProtocolModel,
    Ratio,
    SampleEvent,
    Seconds,
    SkipEvent,
    StartEvent,
    WarningEvent,
)


class PeerStartEvent(ProtocolModel):
    """What is run beside a trial of ours. `measures` says in one sentence what its figure is.

    `metric` is the metric of ours that it is held against, None: it is context only. `differs`: the
    conditions that matter and are not those of our trial, each with both sides; with one of them it
    is context. `library`: whose code does the work. `command` is empty when the tool is not
    installed.
    """

    event: Literal["peer_start"] = "peer_start"
    tool: str
    title: str
    measures: str
    metric: Name | None
    unit: str
    version: str | None
    library: str | None
    differs: tuple[str, ...] = ()
    command: tuple[str, ...]
    time_unix_s: Annotated[float, Field(gt=0)]


class PeerEndEvent(ProtocolModel):
    """How it ended and what it printed: standard output, standard error, and its report file.

    `exit_code` is negative when a signal ended it, None when it never started. `output` is the
    beginning and the end of the `output_bytes` that it printed. `cpu_s` is the CPU time of all
    its processes; `others_ratio` is what other processes took, `steal_ratio` what the hypervisor
    gave away, both as shares of the time of the CPUs it ran on. `left_behind` counts processes
    of it that were still there when it had ended; they were ended too.
    """

    event: Literal["peer_end"] = "peer_end"
    exit_code: int | None
    timed_out: bool
    output: str
    output_bytes: Annotated[int, Field(ge=0)]
    elapsed_s: Seconds
    cpu_s: Seconds
    others_ratio: Ratio | None
    steal_ratio: Ratio | None
    left_behind: Annotated[int, Field(ge=0)]


AnyTrialEvent = (
    StartEvent
    | SampleEvent
    | WarningEvent
    | EndEvent
    | SkipEvent
    | ErrorEvent
    | PeerStartEvent
    | PeerEndEvent
    | OthersEvent
    | ControlPlaneEvent
)
TrialEvent = Annotated[AnyTrialEvent, Field(discriminator="event")]
