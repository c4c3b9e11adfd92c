"""What the toy subsystem declares: limits, and for the rest what every subsystem has."""

from pathlib import Path
from typing import TYPE_CHECKING

from hostbench.model.subsystem import Subsystem

if TYPE_CHECKING:
    from hostbench.model.events import EndEvent, StartEvent
    from hostbench.model.host import HostInventory
    from hostbench.model.limit import Limit

STEPS = "steps_per_second"
# Far above what any core does: the limit is here to be shown.
STEPS_MOST = 1e12


class Toy(Subsystem):
    """Its program lies beside this module."""

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """One factor, which needs neither host nor trial."""
        from hostbench.model.limit import Factor, Limit

        del host, start, end
        factor = Factor(name="steps", value=STEPS_MOST, unit="step/s", source="made up")
        return {STEPS: Limit(value=STEPS_MOST, unit="step/s", factors=(factor,))}


SUBSYSTEM = Toy(name="toy", title="Toy", port=8090, directory=Path(__file__).parent)
