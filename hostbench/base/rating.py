"""Rates of this host's hardware that its user knows: one variable of the environment each.

By hand, not in a class of hostbench.base.config: a subsystem declares its ratings itself, their
names and units stand in limits and messages, and the inventory is read where pydantic-settings'
50 ms would count."""

import math
import os
from dataclasses import dataclass

from hostbench.base.errors import UsageError, shown


@dataclass(frozen=True)
class Rating:
    """A variable that holds `what` in `unit`, up to `most`; `example` stands in its error."""

    variable: str
    what: str
    unit: str
    most: float
    example: str

    def value(self) -> float | None:
        """The value in `unit`; None: not set. Raise UsageError for one out of range."""
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
