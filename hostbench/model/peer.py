"""The events of a peer's trial, and of the stack itself, beside those of our own programs.

A peer does not use our protocol: its output is kept unchanged and judged later.
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
    """What runs beside a trial of ours. `measures` describes its figure in one sentence.

    - `metric`: our metric that it is compared with; None: it is context only.
    - `differs`: the conditions that matter and differ from our trial's, each with both sides. If
      there is one, the figure is context only.
    - `library`: whose code does the work.
    - `command`: empty when the tool is not installed.
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
    """How a peer's trial ended and what it printed: standard output, standard error, and its report
    file.

    - `exit_code`: negative when a signal ended the peer; None when it never started.
    - `output`: the beginning and the end of the `output_bytes` that it printed.
    - `cpu_s`: the CPU time of all its processes.
    - `others_ratio`: what other processes took; `steal_ratio`: what the hypervisor gave to others.
      Both are shares of the time of the CPUs that the peer ran on.
    - `left_behind`: how many of its processes remained after it ended; they were ended, too.
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
