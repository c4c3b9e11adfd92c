"""The declaration of the disk subsystem."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hostbench.base.rating import Rating
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
    from hostbench.report.content import Block
    from hostbench.report.subsystem import SubsystemReport


class Disk(Subsystem, HasPeers, HasChecks, HasReport):
    """Each method imports what it needs when it is called."""

    def load(self) -> None:
        """See Subsystem."""
        from services.disk import limits, peers

        del limits, peers

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """See services.disk.limits."""
        from services.disk.limits import limits

        return limits(host, start, end)

    def ratings(self) -> Sequence[Rating]:
        """Return the operator's ratings of the disk."""
        from hostbench.host.disk import BANDWIDTH, OPERATIONS

        return (BANDWIDTH, OPERATIONS)

    def tools(self) -> Sequence[str]:
        """See services.disk.peers."""
        from services.disk.peers import TOOLS

        return TOOLS

    def peers(self, workload: str, params: "Params") -> "Sequence[Peer]":
        """See services.disk.peers."""
        from services.disk.peers import peers

        return peers(workload, params)

    def equivalent_command(self, workload: str, params: "Params") -> str | None:
        """See services.disk.peers."""
        from services.disk.peers import equivalent_command

        return equivalent_command(workload, params)

    def checks(self) -> "Sequence[Check]":
        """See services.disk.doctor."""
        from services.disk.doctor import CHECKS

        return CHECKS

    def report(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "SubsystemReport":
        """See services.disk.report."""
        from services.disk.report import report

        return report(cases, document)

    def naive_blocks(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "Iterable[Block]":
        """See services.disk.report."""
        from services.disk.report import naive

        return naive(cases, document)


SUBSYSTEM = Disk(
    name="disk",
    title="Disk",
    port=8003,
    has_scratch=True,
    is_quiet=True,
    target_half_width=0.10,
    guest_spread=GuestSpread(drift_ratio=0.08, half_width_ratio=0.4),
    sensitivity=Sensitivity.WAKING,
    headlines=("seq_read", "rand_read"),
)
