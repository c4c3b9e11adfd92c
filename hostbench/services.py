"""The subsystems, and what their services add to hostbench: modules found by name."""

import importlib
from enum import StrEnum
from typing import Any


class Subsystem(StrEnum):
    """What is measured."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NET = "net"
    GPU = "gpu"


def service_module(subsystem: str, name: str) -> Any:
    """The module `services.<subsystem>.<name>`, or None where there is none."""
    module = f"services.{subsystem}.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that exists and cannot import something else is a programming error.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        return None
