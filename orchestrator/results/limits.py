"""How much of the results is kept. The settings import this module, so it imports nothing slow."""

from dataclasses import dataclass

from hostbench.base.units import binary_bytes


@dataclass(frozen=True)
class Limits:
    """How long and how much of the results are kept, and how long points that InfluxDB refused;
    None: without limit."""

    results_days: float | None = None
    results_bytes: int | None = None
    rejected_days: float | None = None

    @property
    def text(self) -> str:
        """How long and how much of the results are kept, in words."""
        days, most = self.results_days, self.results_bytes
        parts = [f"for {days:g} days"] if days is not None else []
        parts += [f"up to {binary_bytes(most)}"] if most is not None else []
        return f"kept {' and '.join(parts)}" if parts else "kept without limit"
