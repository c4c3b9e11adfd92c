"""Rates of this host's hardware that its user knows, each in an environment variable.

They are read by hand, not by a class of hostbench.base.config. A subsystem declares its ratings
itself, their names and units appear in limits and messages, and the inventory is read where the 50
ms of pydantic-settings would matter.
"""

import math
import os
from dataclasses import dataclass

from hostbench.base.errors import UsageError, shown


@dataclass(frozen=True)
class Rating:
    """A variable that holds `what` in `unit`, up to `most`; its error shows `example`."""

    variable: str
    what: str
    unit: str
    most: float
    example: str

    def value(self) -> float | None:
        """Return the value in `unit`, or None if it is not set. Raise UsageError for one out of
        range."""
        text = os.environ.get(self.variable)
        if not text:
            return None
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not 0 < rate <= self.most:
            raise UsageError(
                f"{self.variable} {shown(text)} is not {self.what}; give {self.unit} above 0, "
                f"up to {self.most:g}, such as {self.example}, or unset it"
            )
        return rate
