"""The declaration of the CPU subsystem."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostbench.doctor.subsystem import HasChecks
from hostbench.model.subsystem import GuestSpread, Sensitivity, Subsystem
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


class Cpu(Subsystem, HasPeers, HasChecks, HasReport):
    """Each method imports what it needs when it is called."""

    def load(self) -> None:
        """See Subsystem."""
        from services.cpu import limits, peers

        del limits, peers

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """See services.cpu.limits."""
        from services.cpu.limits import limits

        return limits(host, start, end)

    def tools(self) -> Sequence[str]:
        """See services.cpu.peers."""
        from services.cpu.peers import TOOLS

        return TOOLS

    def peers(self, workload: str, params: "Params") -> "Sequence[Peer]":
        """See services.cpu.peers."""
        from services.cpu.peers import peers

        return peers(workload, params)

    def checks(self) -> "Sequence[Check]":
        """See services.cpu.doctor."""
        from services.cpu.doctor import CHECKS

        return CHECKS

    def report(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "SubsystemReport":
        """See services.cpu.report."""
        from services.cpu.report import report

        return report(cases, document)

    def least_instructions(self, case: "CaseResult", document: "ResultDocument") -> float | None:
        """See services.cpu.instructions."""
        from services.cpu.instructions import least_instructions

        return least_instructions(document.host, case)


SUBSYSTEM = Cpu(
    name="cpu",
    title="CPU",
    port=8001,
    guest_spread=GuestSpread(drift_ratio=0.005, half_width_ratio=0.03),
    sensitivity=Sensitivity.CORE,
    headlines=("fma",),
)
