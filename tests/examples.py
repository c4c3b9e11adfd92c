"""What each subsystem brings for the tests that try every one of them."""

import importlib
from typing import Any


def examples(subsystem: str) -> Any:
    """Its module `tests.examples`: SHORT_CASE, WORKLOAD and OPTIONS."""
    return importlib.import_module(f"services.{subsystem}.tests.examples")
