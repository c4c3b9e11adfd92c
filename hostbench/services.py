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


def load_service_modules() -> None:
    """Imports what there is now, so that it need not be in the middle of a job."""
    for subsystem in Subsystem:
        for name in ("limits", "peers"):
            service_module(subsystem, name)


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
