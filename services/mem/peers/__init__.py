"""The peers of the memory subsystem: see hostbench.programs.peer."""

from hostbench.programs.peer import Params, Peer
from services.mem.peers import hpcc, likwid, mbw, sysbench

_TESTS = (likwid.Likwid, mbw.Mbw, sysbench.Sequential, hpcc.Stream)
_FINDERS = (likwid.peer, mbw.peer, sysbench.peer, hpcc.peer)
PACKAGES = {test.tool: test.package for test in _TESTS}
TOOLS = tuple(PACKAGES)


def peers(workload: str, params: Params) -> tuple[Peer, ...]:
    """Return the peers beside `mem.<workload>` with these parameters, at most one for each tool."""
    found = (find(workload, params) for find in _FINDERS)
    return tuple(peer for peer in found if peer is not None)
