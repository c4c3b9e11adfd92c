"""Which cases have their other end on a second host."""

from collections.abc import Iterable, Mapping

from hostbench.models.events import ParamValue
from hostbench.models.result import PlannedCase
from hostbench.services import Subsystem

# The parameter of the network's workloads that says where their far end is, and its words.
TARGET = "target"
AUTO, LOOPBACK, FAR_HOST = "auto", "loopback", "far_host"


def takes_far_host(subsystem: str, params: Mapping[str, ParamValue]) -> bool:
    """Whether a trial called with these parameters has its far end on the far host where there is
    one."""
    return subsystem == Subsystem.NET and params.get(TARGET, AUTO) != LOOPBACK


def is_between_hosts(case: PlannedCase) -> bool:
    """Whether a case has; its plan has made one of the two of `auto`. One that is skipped for
    want of a second host needs none."""
    return (
        case.subsystem == Subsystem.NET
        and case.params.get(TARGET) == FAR_HOST
        and case.skip is None
    )


def first_between_hosts(cases: Iterable[PlannedCase]) -> str | None:
    """The title of the first case that has; None: all are measured on one host."""
    return next((case.title for case in cases if is_between_hosts(case)), None)
