"""What hostbench itself used while a trial ran: the instrument says what it took from the host."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hostbench.models.events import ProtocolModel, Seconds


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


class ControlPlaneEvent(ProtocolModel):
    """The last line of a trial that ran through a service: without it the stream was cut."""

    event: Literal["control_plane"] = "control_plane"
    processes: tuple[ProcessUsage, ...]
