"""The peers of the CPU subsystem: see hostbench.programs.peer."""

from hostbench.programs.peer import Params, Peer
from services.cpu.peers import cyclictest, hpcc, likwid, perf_bench, stress_ng, sysbench

_TESTS = (
    likwid.Likwid,
    stress_ng.StressNg,
    sysbench.Sysbench,
    hpcc.Hpl,
    perf_bench.PerfBench,
    cyclictest.Cyclictest,
)
_FINDERS = (
    likwid.peer,
    stress_ng.peer,
    sysbench.peer,
    hpcc.peer,
    perf_bench.peer,
    cyclictest.peer,
)
PACKAGES = {test.tool: test.package for test in _TESTS}
TOOLS = tuple(PACKAGES)


def peers(workload: str, params: Params) -> tuple[Peer, ...]:
    """Return the peers beside `cpu.<workload>` with these parameters, at most one for each tool."""
    found = (find(workload, params) for find in _FINDERS)
    return tuple(peer for peer in found if peer is not None)
