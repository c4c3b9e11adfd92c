"""Finds what the subsystems know about their theoretical limits.

A subsystem that knows any has a module `services.<subsystem>.limits` with one function:

    limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]
"""

from collections.abc import Iterable
from typing import Protocol

from hostbench.models.events import EndEvent, StartEvent
from hostbench.models.host import HostInventory
from hostbench.models.limit import Limit
from hostbench.services import service_module


class LimitsModule(Protocol):
    """What a subsystem's limits module offers."""

    @staticmethod
    def limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
        """The limits of one finished trial on `host` by metric; empty where none are known."""


class HostLimits:
    """The limits of this host, trial by trial: their factors are partly measured by the trial."""

    def __init__(self, host: HostInventory, subsystems: Iterable[str]) -> None:
        self._host = host
        self._modules: dict[str, LimitsModule | None] = {
            subsystem: service_module(subsystem, "limits") for subsystem in subsystems
        }

    def of(self, subsystem: str, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
        """The limits of one trial by metric; empty where the subsystem knows none."""
        module = self._modules[subsystem]
        return {} if module is None else module.limits(self._host, start, end)
