"""Theoretical limit of the mem workloads: the most that all populated channels of the host
transfer.

Bytes are counted as in STREAM, never above the real traffic: what a cache fetches before a plain
store is not counted.
"""

from hostbench.host.memory_limit import bandwidth_limit, cache_bytes
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import HostInventory
from hostbench.model.limit import NAIVE_REASON, Limit
from services.mem.params import BLOCK_KERNELS, KERNELS, NAIVE, SIZE

METRIC, UNIT = "bytes_per_second", "byte/s"
# Of code_chase.
CODE, JUMP = "code_chase", "jump_time_s"
WORKLOADS = {*KERNELS, *BLOCK_KERNELS}
NO_JUMP = "hostbench has no table of how long a core's fetch and branch predictor take for a jump"


def limits(host: HostInventory, start: StartEvent, end: EndEvent) -> dict[str, Limit]:
    """Return the limits of a trial on `host`, by metric; empty for a workload without limits."""
    del end  # no factor is measured
    if start.workload in NAIVE:
        return {METRIC: Limit(value=None, unit=UNIT, reason=NAIVE_REASON)}
    if start.workload == CODE:
        return {JUMP: Limit(value=None, unit="s", reason=NO_JUMP)}
    if start.workload not in WORKLOADS:
        return {}
    size = start.params.get(SIZE)
    cache = cache_bytes(host, start.placement.cpus, start.placement.sockets)
    return {METRIC: bandwidth_limit(host.memory, size, cache)}
