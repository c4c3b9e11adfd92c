"""The theoretical limit of a metric, with the source of every factor."""

from pydantic import BaseModel, ConfigDict

# Why a workload that the table calls naive has no limit.
NAIVE_REASON = "a naive figure is held against no limit: it is not what the hardware does"


class Factor(BaseModel):
    """One factor of a limit: the limit's value is the product of its factors' values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    value: float
    unit: str
    source: str


class Limit(BaseModel):
    """The most that the hardware can do.

    `value` is in the metric's own unit. It is None if unknown; `reason` then says why. A measured
    figure above `value * (1 + tolerance)` is invalid.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: float | None
    unit: str
    factors: tuple[Factor, ...] = ()
    tolerance: float = 0.02
    reason: str | None = None
