"""What a subsystem adds to a suite: the peers of its workloads."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.registry import find_subsystem, subsystem_names

if TYPE_CHECKING:
    from hostbench.model.suite import PeerChoice
    from hostbench.programs.peer import Command, Params, Peer


class HasPeers(ABC):
    """Base class of a subsystem with peers, in addition to hostbench.model.subsystem.Subsystem."""

    @abstractmethod
    def tools(self) -> Sequence[str]:
        """Return the tools that a suite may name as peers of its workloads."""

    @abstractmethod
    def peers(self, workload: str, params: "Params") -> "Sequence[Peer]":
        """Return the peers beside a workload with these parameters, at most one for each tool."""

    def equivalent_command(self, workload: str, params: "Params") -> str | None:
        """Return the command line of a trusted tool for the same measurement, to be run by hand;
        None if no tool can do it."""
        del workload, params
        return None

    def server(
        self, tool: str, workload: str, params: "Params", address: str, port: int
    ) -> "Command":
        """Return how to run a peer's server at this address of this host only. Raise UsageError for
        a tool without one."""
        del workload, params, address, port
        raise _without_server(tool)


def _without_server(tool: str) -> UsageError:
    return UsageError(
        f"{shown(tool)} has no server in this version; use the same version of hostbench on both "
        "hosts"
    )


def _with_peers(subsystem: str) -> HasPeers | None:
    found = find_subsystem(subsystem)
    return found if isinstance(found, HasPeers) else None


def tools_of(subsystem: str) -> tuple[str, ...]:
    """Return the tools that a suite may name as peers of a subsystem's workloads. Raise UsageError,
    as do all functions here, for a subsystem that is not installed."""
    found = _with_peers(subsystem)
    return tuple(found.tools()) if found else ()


def peers_of(subsystem: str, workload: str, params: "Params") -> "tuple[Peer, ...]":
    """Return the peers beside a workload with these parameters, at most one for each tool."""
    found = _with_peers(subsystem)
    return tuple(found.peers(workload, params)) if found else ()


def server_of(
    subsystem: str, tool: str, workload: str, params: "Params", address: str, port: int
) -> "Command":
    """Return how to run a peer's server. Raise UsageError also for a tool without one."""
    found = _with_peers(subsystem)
    if found is None:
        raise _without_server(tool)
    return found.server(tool, workload, params, address, port)


def chosen_peers(
    choice: "PeerChoice", subsystem: str, workload: str, params: "Params"
) -> "tuple[Peer, ...]":
    """Return the peers that a suite requests. A tool may be another subsystem's, as a suite may
    cover several. Raise UsageError for a tool that no subsystem knows."""
    if choice == "none":
        return ()
    fitting = peers_of(subsystem, workload, params)
    if choice == "auto":
        return tuple(peer for peer in fitting if peer.light)
    tools = tools_of(subsystem)
    for tool in choice:
        if not any(tool in tools_of(name) for name in subsystem_names()):
            raise UsageError(
                f"there is no peer {shown(tool)}; {did_you_mean(tool, tools)}"
                f"give auto, none, or a list out of {listing(tools)}"
            )
    return tuple(peer for peer in fitting if peer.tool in choice)
