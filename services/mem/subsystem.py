"""The declaration of the memory subsystem."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostbench.base.rating import Rating
from hostbench.doctor.subsystem import HasChecks
from hostbench.model.subsystem import GuestSpread, Subsystem
from hostbench.programs.subsystem import HasPeers
from hostbench.report.subsystem import HasReport

if TYPE_CHECKING:
    from hostbench.doctor.check import Check
    from hostbench.model.events import EndEvent, StartEvent
    from hostbench.model.host import HostInventory
    from hostbench.model.limit import Limit
    from hostbench.model.result import CaseResult, ResultDocument
    from hostbench.programs.peer import Params, Peer
    from hostbench.report.subsystem import SubsystemReport


class Mem(Subsystem, HasPeers, HasChecks, HasReport):
    """Each method imports what it needs when it is called."""

    def load(self) -> None:
        """See Subsystem."""
        from services.mem import limits, peers

        del limits, peers

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """See services.mem.limits."""
        from services.mem.limits import limits

        return limits(host, start, end)

    def ratings(self) -> Sequence[Rating]:
        """Return the operator's ratings of the memory."""
        from hostbench.host.memory import BANDWIDTH

        return (BANDWIDTH,)

    def tools(self) -> Sequence[str]:
        """See services.mem.peers."""
        from services.mem.peers import TOOLS

        return TOOLS

    def peers(self, workload: str, params: "Params") -> "Sequence[Peer]":
        """See services.mem.peers."""
        from services.mem.peers import peers

        return peers(workload, params)

    def checks(self) -> "Sequence[Check]":
        """See services.mem.doctor."""
        from services.mem.doctor import CHECKS

        return CHECKS

    def report(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "SubsystemReport":
        """See services.mem.report."""
        from services.mem.report import report

        return report(cases, document)


SUBSYSTEM = Mem(
    name="mem",
    title="Memory",
    port=8002,
    target_half_width=0.05,
    guest_spread=GuestSpread(drift_ratio=0.12, time_drift_ratio=0.04, half_width_ratio=0.42),
    headlines=("triad", "copy", "read"),
)
