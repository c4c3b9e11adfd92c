"""Workloads by name, the hash that identifies a case, and which cases have their far end on a
second host."""

import hashlib
import json
from collections.abc import Iterable, Mapping

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.events import ParamValue
from hostbench.model.registry import find_subsystem, subsystem_names
from hostbench.model.result import PlannedCase
from hostbench.model.suite import Suite
from hostbench.model.table import Metric, ParamMeaning, Table, Workload

CASE_HASH_DIGITS = 12
# The name of the suite that hostbench makes from one workload.
AD_HOC = "ad-hoc"
# The parameter for the place of the far end, and its words.
TARGET = "target"
AUTO, LOOPBACK, FAR_HOST = "auto", "loopback", "far_host"


def subsystems_of(suite: Suite) -> list[str]:
    """Return the subsystems whose programs a suite needs. Raise UsageError for an unknown one, also
    in a published table."""
    for table in suite.published.tables if suite.published else ():
        try:
            find_subsystem(table.subsystem)
        except UsageError as error:
            raise UsageError(f"published table {table.name}: {error.message}") from None
    return sorted({split_workload(case.workload)[0] for case in suite.cases})


def split_workload(full_name: str) -> tuple[str, str]:
    """Return ("cpu", "fma") for "cpu.fma". Raise UsageError for anything else."""
    known = subsystem_names()
    subsystem, dot, name = full_name.partition(".")
    if not dot or not name:
        raise UsageError(
            f"workload {shown(full_name)} has no subsystem; write it like cpu.fma, "
            f"with {listing(known)} before the dot"
        )
    if subsystem not in known:
        raise UsageError(
            f"workload {shown(full_name)}: there is no subsystem {shown(subsystem)}; "
            f"{did_you_mean(subsystem, known)}give {listing(known)}"
        )
    return subsystem, name


def find_workload(tables: Mapping[str, Table], full_name: str) -> Workload:
    """Return the workload in its table. Raise UsageError, which names the nearest."""
    subsystem, name = split_workload(full_name)
    workload = tables[subsystem].workload(name)
    if workload is not None:
        return workload
    known = [f"{subsystem}.{workload.name}" for workload in tables[subsystem].workloads]
    raise UsageError(
        f"there is no workload {shown(full_name)}; "
        f"{did_you_mean(full_name, known)}give {listing(known)}"
    )


def case_hash(full_name: str, params: Mapping[str, ParamValue]) -> str:
    """Return the identity of a case: the same for the same workload and parameters, in any order,
    at any time and on any host. 2 and 2.0 are the same value."""
    plain = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }
    text = json.dumps([full_name, plain], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:CASE_HASH_DIGITS]


def metrics_of(
    cases: Iterable[PlannedCase], tables: Mapping[str, Table]
) -> dict[str, tuple[Metric, ...]]:
    """Return the metrics of every workload in these cases."""
    return {case.workload: find_workload(tables, case.workload).metrics for case in cases}


def meanings_of(
    cases: Iterable[PlannedCase], tables: Mapping[str, Table]
) -> dict[str, tuple[ParamMeaning, ...]]:
    """Return the meanings of the parameters that a suite may set, for every workload in these
    cases."""
    workloads = {case.workload: find_workload(tables, case.workload) for case in cases}
    return {
        name: tuple(param.meaning for param in workload.params if param.scope == "request")
        for name, workload in workloads.items()
    }


def takes_far_host(subsystem: str, params: Mapping[str, ParamValue]) -> bool:
    """Whether a trial with these parameters has its far end on the far host, if there is one."""
    return find_subsystem(subsystem).has_far_ends and params.get(TARGET, AUTO) != LOOPBACK


def is_between_hosts(case: PlannedCase) -> bool:
    """Whether a case has its far end on the far host; its plan has already resolved `auto`. A case
    that is skipped because there is no second host needs none."""
    return (
        find_subsystem(case.subsystem).has_far_ends
        and case.params.get(TARGET) == FAR_HOST
        and case.skip is None
    )


def first_between_hosts(cases: Iterable[PlannedCase]) -> PlannedCase | None:
    """Return the first case with its far end on the far host, or None if all are measured on one
    host."""
    return next((case for case in cases if is_between_hosts(case)), None)
