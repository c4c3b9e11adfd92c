"""What a run tells its sinks: the journal's records, and what is only of interest while it runs."""

from dataclasses import dataclass
from typing import Protocol

from hostbench.models.events import SampleEvent
from hostbench.models.result import (
    OWN_TOOL,
    CaseRecord,
    IdleRecord,
    IdleWindow,
    PlannedCase,
    TrialRecord,
)


@dataclass(frozen=True)
class GateWaits:
    """The idle gate found the host busy and asks again."""

    window: IdleWindow


@dataclass(frozen=True)
class TrialBegins:
    """Trial `index` (from 0) of a case is about to start; `tool`: ours, or the peer's."""

    case: PlannedCase
    index: int
    tool: str = OWN_TOOL


@dataclass(frozen=True)
class SampleTaken:
    """One interval of the running trial was measured."""

    case: PlannedCase
    sample: SampleEvent


Notice = GateWaits | TrialBegins | SampleTaken | IdleRecord | TrialRecord | CaseRecord


class Sink(Protocol):
    """Takes what a run has to say, in order."""

    def take(self, notice: Notice) -> None:
        """Called between trials, and at most once a sample during one: be quick."""
        ...
