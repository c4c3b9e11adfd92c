"""What a run tells its sinks: the journal's records, and what is only of interest while it runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hostbench.models.events import SampleEvent, StartEvent
from hostbench.models.result import (
    OWN_TOOL,
    CaseRecord,
    IdleRecord,
    IdleWindow,
    PlannedCase,
    TrialRecord,
)

if TYPE_CHECKING:
    from hostbench.plan import Estimate


@dataclass(frozen=True)
class Timing:
    """So many cases are run for a moment each, since nobody knows how long their work takes."""

    cases: int


@dataclass(frozen=True)
class Timed:
    """How long what is left will take, as far as these moments tell."""

    estimate: "Estimate"


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
    """One interval of trial `index` was measured. `time_unix_s` and `start` are the trial's, as its
    record will have them; `start` None: the trial has not said what it runs."""

    case: PlannedCase
    sample: SampleEvent
    index: int
    time_unix_s: float
    start: StartEvent | None


Notice = (
    Timing | Timed | GateWaits | TrialBegins | SampleTaken | IdleRecord | TrialRecord | CaseRecord
)


class Sink(Protocol):
    """Takes what a run has to say, in order."""

    def take(self, notice: Notice) -> None:
        """Called between trials, and at most once a sample during one: be quick."""
        ...
