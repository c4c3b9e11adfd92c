"""The peers of the disk subsystem: see hostbench.programs.peer.

All measure in the unnamed file of our own trial, which they inherit (`Beside.scratch_fd`): none
creates a file, and nothing has a name.
"""

from hostbench.programs.peer import Params, Peer
from services.disk.peers import dd, fio, ioping, sysbench

_TESTS = (fio.Fio, dd.Dd, sysbench.RandomRead, ioping.Ioping)
_FINDERS = (fio.peer, dd.peer, sysbench.peer, ioping.peer)
PACKAGES = {test.tool: test.package for test in _TESTS}
TOOLS = tuple(PACKAGES)
equivalent_command = fio.fio_command


def peers(workload: str, params: Params) -> tuple[Peer, ...]:
    """Return the peers beside `disk.<workload>` with these parameters, at most one for each
    tool."""
    found = (find(workload, params) for find in _FINDERS)
    return tuple(peer for peer in found if peer is not None)
