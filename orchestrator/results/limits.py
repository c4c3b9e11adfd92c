"""How much of results is kept. Imported by the settings, so that it imports nothing slow."""

from dataclasses import dataclass

from hostbench.base.units import binary_bytes


@dataclass(frozen=True)
class Limits:
    """For how long, and how much of, results are kept, and for how long points that InfluxDB
    refused; None: without limit."""

    results_days: float | None = None
    results_bytes: int | None = None
    rejected_days: float | None = None

    @property
    def text(self) -> str:
        """What is kept of results."""
        days, most = self.results_days, self.results_bytes
        parts = [f"for {days:g} days"] if days is not None else []
        parts += [f"up to {binary_bytes(most)}"] if most is not None else []
        return f"kept {' and '.join(parts)}" if parts else "kept without limit"
