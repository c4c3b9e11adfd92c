"""The declaration of the network subsystem."""

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
    from hostbench.programs.peer import Command, Params, Peer
    from hostbench.report.content import Block
    from hostbench.report.subsystem import SubsystemReport


class Net(Subsystem, HasPeers, HasChecks, HasReport):
    """Each method imports what it needs when it is called."""

    def load(self) -> None:
        """See Subsystem."""
        from services.net import limits, peers

        del limits, peers

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """See services.net.limits."""
        from services.net.limits import limits

        return limits(host, start, end)

    def ratings(self) -> Sequence[Rating]:
        """Return the operator's rating of the path to other hosts."""
        from hostbench.host.network import BANDWIDTH

        return (BANDWIDTH,)

    def tools(self) -> Sequence[str]:
        """See services.net.peers."""
        from services.net.peers import TOOLS

        return TOOLS

    def peers(self, workload: str, params: "Params") -> "Sequence[Peer]":
        """See services.net.peers."""
        from services.net.peers import peers

        return peers(workload, params)

    def equivalent_command(self, workload: str, params: "Params") -> str | None:
        """See services.net.peers."""
        from services.net.peers import equivalent_command

        return equivalent_command(workload, params)

    def server(
        self, tool: str, workload: str, params: "Params", address: str, port: int
    ) -> "Command":
        """See services.net.peers."""
        from services.net.peers import server

        return server(tool, workload, params, address, port)

    def checks(self) -> "Sequence[Check]":
        """See services.net.doctor."""
        from services.net.doctor import CHECKS

        return CHECKS

    def report(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "SubsystemReport":
        """See services.net.report."""
        from services.net.report import report

        return report(cases, document)

    def naive_blocks(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "Iterable[Block]":
        """See services.net.report."""
        from services.net.report import naive

        return naive(cases, document)


SUBSYSTEM = Net(
    name="net",
    title="Network",
    port=8004,
    has_far_ends=True,
    target_half_width=0.10,
    guest_spread=GuestSpread(drift_ratio=0.1, time_drift_ratio=0.08, half_width_ratio=0.9),
    sensitivity=Sensitivity.WAKING,
    headlines=("tcp_stream", "tcp_rr"),
)
