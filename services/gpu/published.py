"""Figures that others published of GPUs: what stands beside ours where no baseline is known."""

from collections.abc import Mapping

from hostbench.model.events import ParamValue, StartEvent
from hostbench.model.subsystem import PublishedFigure

POINTER_CHASE, SIZE, CYCLES = "pointer_chase", "size_bytes", "access_cycles"
# H100 PCIe: the file gpu-latency/h100_pcie.txt there, L1 to 216 kB, L2 to 20 MB, DRAM from 62 MB.
_HOPPER = "GH200 and H100 PCIe: te42kyfo/gpu-benches and others"
# Cycles of an access by compute capability and level, the least and the most; L2 by the distance of
# its half.
LEVELS: dict[str, dict[str, PublishedFigure]] = {
    "9.0": {
        "l1": PublishedFigure(metric=CYCLES, least=32, most=34.2, source=_HOPPER),
        "l2": PublishedFigure(metric=CYCLES, least=226, most=280, source=_HOPPER),
        "dram": PublishedFigure(metric=CYCLES, least=650, most=690, source=_HOPPER),
    }
}


def published(params: Mapping[str, ParamValue], start: StartEvent) -> PublishedFigure | None:
    """What was published of such a card; `params` as the suite has them, so that a level is one."""
    if start.workload != POINTER_CHASE:
        return None
    of_card = LEVELS.get(start.facts.get("compute_capability", ""), {})
    return of_card.get(str(params.get(SIZE)))
