"""Which cases have, or may have, their other end on a second host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class FarEnds:
    """Where the cases of a plan have their far ends. `possible`: some of them on a far host, where
    there is one. `required_by`: the title of the first that cannot be measured without one."""

    possible: bool
    required_by: str | None


def far_ends(cases: Sequence[PlannedCase]) -> FarEnds:
    """That of these cases."""
    between = [case for case in cases if is_between_hosts(case)]
    required = (case.title for case in between if case.params.get(TARGET) == FAR_HOST)
    return FarEnds(possible=bool(between), required_by=next(required, None))
