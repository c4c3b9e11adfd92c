"""The peers of the net subsystem: see hostbench.programs.peer.

Peers that talk to a server of their own start it themselves on the loopback. Between two hosts, it
is part of the session that the far host's service opens for them.
"""

from hostbench.base.errors import UsageError, listing, shown
from hostbench.programs.peer import Command, Params, Peer
from services.net.peers import iperf3, ping, qperf, sockperf
from services.net.peers.case import Case

_TESTS = (iperf3.Iperf3, sockperf.PingPong, qperf.Latency, ping.Ping)
_FINDERS = (iperf3.peer, sockperf.peer, qperf.peer, ping.peer)
_SERVERS = {iperf3.TOOL: iperf3.server, sockperf.TOOL: sockperf.server}
PACKAGES = {test.tool: test.package for test in _TESTS}
TOOLS = tuple(PACKAGES)
equivalent_command = iperf3.iperf3_command


def peers(workload: str, params: Params) -> tuple[Peer, ...]:
    """Return the peers beside `net.<workload>` with these parameters, at most one for each tool."""
    case = Case.of(workload, params)
    found = (find(case) for find in _FINDERS)
    return tuple(peer for peer in found if peer is not None)


def server(tool: str, workload: str, params: Params, address: str, port: int) -> Command:
    """Return how to run the server of `tool`, at this address of this host only. Raise UsageError
    for a tool without a server that can be limited to it."""
    if tool not in _SERVERS:
        raise UsageError(f"{shown(tool)} has no server; give {listing(sorted(_SERVERS))}")
    return _SERVERS[tool](Case.of(workload, params), address, port)
