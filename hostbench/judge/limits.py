"""What the subsystems know about the theoretical limits of a host."""

from collections.abc import Iterable

from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import HostInventory
from hostbench.model.limit import Limit
from hostbench.model.registry import find_subsystem


class HostLimits:
    """The limits of this host, trial by trial: their factors are partly measured by the trial."""

    def __init__(self, host: HostInventory, subsystems: Iterable[str]) -> None:
        """Raises UsageError for a subsystem that is not installed."""
        self._host = host
        self._subsystems = {name: find_subsystem(name) for name in subsystems}
        # Before the first trial, not between two of them.
        for one in self._subsystems.values():
            one.load()

    def of(self, subsystem: str, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
        """The limits of one trial by metric; empty where the subsystem knows none."""
        return self._subsystems[subsystem].limits(self._host, start, end)
