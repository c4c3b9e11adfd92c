"""What the GPU subsystem declares."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hostbench.doctor.subsystem import HasChecks
from hostbench.model.subsystem import PublishedFigure, Subsystem
from hostbench.programs.subsystem import HasPeers
from hostbench.report.subsystem import HasReport

if TYPE_CHECKING:
    from hostbench.doctor.check import Check
    from hostbench.model.events import EndEvent, ParamValue, StartEvent
    from hostbench.model.host import HostInventory
    from hostbench.model.limit import Limit
    from hostbench.model.result import CaseResult, ResultDocument
    from hostbench.programs.peer import Params, Peer
    from hostbench.report.subsystem import SubsystemReport


class Gpu(Subsystem, HasPeers, HasChecks, HasReport):
    """Each method imports what it needs when it is called."""

    def load(self) -> None:
        """See Subsystem."""
        from services.gpu import limits, peers

        del limits, peers

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """See services.gpu.limits."""
        from services.gpu.limits import limits

        return limits(host, start, end)

    def published(
        self, params: "Mapping[str, ParamValue]", start: "StartEvent"
    ) -> PublishedFigure | None:
        """See services.gpu.published."""
        from services.gpu.published import published

        return published(params, start)

    def tools(self) -> Sequence[str]:
        """See services.gpu.peers."""
        from services.gpu.peers import TOOLS

        return TOOLS

    def peers(self, workload: str, params: "Params") -> "Sequence[Peer]":
        """See services.gpu.peers."""
        from services.gpu.peers import peers

        return peers(workload, params)

    def checks(self) -> "Sequence[Check]":
        """See services.gpu.doctor."""
        from services.gpu.doctor import CHECKS

        return CHECKS

    def report(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "SubsystemReport":
        """See services.gpu.report."""
        from services.gpu.report import report

        return report(cases, document)


SUBSYSTEM = Gpu(name="gpu", title="GPU", port=8005, has_devices=True, headlines=("tensor", "fma"))
