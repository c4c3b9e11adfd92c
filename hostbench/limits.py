"""Finds what the subsystems know about their theoretical limits.

A subsystem that knows any has a module `services.<subsystem>.limits`.
"""

import importlib
from collections.abc import Iterable
from typing import Any

from hostbench.models.events import EndEvent, StartEvent
from hostbench.models.host import Cpu, HostInventory
from hostbench.models.limit import Limit


class HostLimits:
    """The limits of this host, trial by trial: their factors are partly measured by the trial."""

    def __init__(self, host: HostInventory, subsystems: Iterable[str]) -> None:
        self._host = host
        self._modules = {subsystem: _limits_module(subsystem) for subsystem in subsystems}

    def of(self, subsystem: str, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
        """The limits of one trial by metric; empty where the subsystem knows none."""
        module = self._modules[subsystem]
        if module is None:
            return {}
        identity = module.CpuIdentity.from_inventory(
            self._host.cpu,
            core_type=core_type(self._host, start.placement.cpus),
        )
        limits: dict[str, Limit] = module.limits(
            identity, start.workload, start.params, end.metrics, start.placement.model_dump()
        )
        return limits


def _limits_module(subsystem: str) -> Any:
    name = f"services.{subsystem}.limits"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A module that exists and cannot import something else is a programming error.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        return None


def core_type(host: HostInventory, cpus: Iterable[int]) -> str | None:
    """Which kind of cores `cpus` are: performance, efficiency or mixed; None when nothing tells.

    Linux lists the two kinds on hybrid processors; where it lists none on bare metal, all cores
    are of one kind. A virtual machine may hide either.
    """
    performance, efficiency = _kinds(host.cpu)
    used = set(cpus)
    if not performance and not efficiency:
        return None if host.virtualisation.hypervisor else "performance"
    if used <= performance:
        return "performance"
    return "efficiency" if used <= efficiency else "mixed"


def _kinds(cpu: Cpu) -> tuple[set[int], set[int]]:
    return set(cpu.performance_cpus or ()), set(cpu.efficiency_cpus or ())
