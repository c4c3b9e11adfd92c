"""What the user knows this host's hardware to do: one variable of the environment each."""

import math
import os
from dataclasses import dataclass

from hostbench.errors import UsageError, shown


@dataclass(frozen=True)
class Rating:
    """A variable that tells `what` in `unit`, up to `most`; `example` stands in its error."""

    variable: str
    what: str
    unit: str
    most: float
    example: str

    def told(self) -> float | None:
        """What it says, None: nothing. Raises UsageError when it makes no sense."""
        text = os.environ.get(self.variable)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value <= self.most:
            raise UsageError(
                f"{self.variable} {shown(text)} is not {self.what}; give {self.unit} above 0, "
                f"up to {self.most:g}, such as {self.example}, or unset it"
            )
        return value
