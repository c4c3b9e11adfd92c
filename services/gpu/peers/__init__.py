"""The peers of the gpu subsystem: see hostbench.programs.peer.

All but clpeak are of NVIDIA's cards alone, and get the card by its UUID. clpeak
takes every device of OpenCL in turn; its figure is read behind the name of ours.
"""

from hostbench.programs.peer import Params, Peer
from services.gpu.peers import clpeak, cublaslt, nvbandwidth, pytorch

_FINDERS = (clpeak.peer, nvbandwidth.peer, cublaslt.peer, pytorch.peer)
# What Debian has; the others say themselves where they are from.
PACKAGES = {clpeak.TOOL: clpeak.PACKAGE}
TOOLS = (clpeak.TOOL, nvbandwidth.TOOL, cublaslt.TOOL, pytorch.TOOL)


def peers(workload: str, params: Params) -> tuple[Peer, ...]:
    """The peers beside `gpu.<workload>` with these parameters, at most one a tool."""
    found = (find(workload, params) for find in _FINDERS)
    return tuple(peer for peer in found if peer is not None)
