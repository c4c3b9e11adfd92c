"""Which cases have, or may have, their other end on a second host."""

from collections.abc import Mapping, Sequence

from hostbench.models.events import ParamValue
from hostbench.models.result import PlannedCase
from hostbench.services import Subsystem

# The parameter of the network's workloads that says where their far end is, and its words.
TARGET = "target"
AUTO, LOOPBACK, FAR_HOST = "auto", "loopback", "far_host"


def takes_far_host(subsystem: str, params: Mapping[str, ParamValue]) -> bool:
    """Whether a trial with these parameters has its far end on the far host where there is one."""
    return subsystem == Subsystem.NET and params.get(TARGET, AUTO) != LOOPBACK


def is_between_hosts(case: PlannedCase) -> bool:
    """The same of a case."""
    return takes_far_host(case.subsystem, case.params)


def needing_far_host(cases: Sequence[PlannedCase]) -> PlannedCase | None:
    """The first that cannot be measured without a far host; None: all can."""
    return next(
        (one for one in cases if is_between_hosts(one) and one.params.get(TARGET) == FAR_HOST), None
    )
