"""The events of a job: what a run sends to its sinks, and what GET /jobs/{id}/events streams."""

from typing import Annotated, Literal, Protocol

from pydantic import Field

from hostbench.model.body import BodyModel
from hostbench.model.events import SampleEvent
from hostbench.model.jobs import StackState
from hostbench.model.result import (
    CaseRecord,
    Estimate,
    IdleRecord,
    IdleWindow,
    PlannedCase,
    TrialRecord,
)
from hostbench.model.suite import Suite
from hostbench.model.table import Metric


class StateEvent(BodyModel):
    """The job's state changed. The stream ends after a terminal state. `result`: the path of the
    document, once only the document is kept; None: the events of the stream are complete."""

    event: Literal["state"] = "state"
    job: str
    state: StackState
    reason: str | None
    time_unix_s: float
    result: str | None = None


class PlanEvent(BodyModel):
    """The plan is complete. `kept` are the cases of an earlier session that count."""

    event: Literal["plan"] = "plan"
    cases: list[PlannedCase]
    metrics: dict[str, tuple[Metric, ...]]
    kept: list[str]
    suite: Suite


class EstimateEvent(BodyModel):
    """How long the remaining cases will take, after those of a fixed work ran for a moment each. It
    replaces the plan's estimate."""

    event: Literal["estimate"] = "estimate"
    estimate: Estimate


class WaitingEvent(BodyModel):
    """The idle gate found the host busy and will check again (live only)."""

    event: Literal["waiting"] = "waiting"
    window: IdleWindow


class GateEvent(BodyModel):
    """The decision of the idle gate."""

    event: Literal["gate"] = "gate"
    idle: IdleRecord


class TrialBeginsEvent(BodyModel):
    """A trial starts (live only)."""

    event: Literal["trial_begins"] = "trial_begins"
    case: str
    index: int
    tool: str


class SampleTakenEvent(BodyModel):
    """A sample of the running trial (live only).

    `index` and `time_unix_s` are those of the trial's record. They stay in the process that runs
    the trial: the API's event does not have them.
    """

    event: Literal["sample"] = "sample"
    case: str
    sample: SampleEvent
    index: int = Field(default=0, exclude=True)
    time_unix_s: float = Field(default=0.0, exclude=True)


class TrialEndedEvent(BodyModel):
    """A trial is over. In the API, the trial has no events of its own except a peer's start: the
    others are in the result document."""

    event: Literal["trial"] = "trial"
    trial: TrialRecord


class CaseEndedEvent(BodyModel):
    """A case is done. In the API, the record has no figures: they are in the result document."""

    event: Literal["case"] = "case"
    record: CaseRecord


JobEvent = Annotated[
    StateEvent
    | PlanEvent
    | EstimateEvent
    | WaitingEvent
    | GateEvent
    | TrialBeginsEvent
    | SampleTakenEvent
    | TrialEndedEvent
    | CaseEndedEvent,
    Field(discriminator="event"),
]


class Sink(Protocol):
    """Takes the events of a run, in order."""

    def take(self, event: JobEvent) -> None:
        """Take an event. Called between trials, and at most once a sample during a trial, so it
        must be quick."""
        ...
