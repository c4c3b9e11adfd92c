"""Figures of versions that measure in another way."""

from collections.abc import Iterable

from hostbench.model.decision import CaseFigure, JobFigures
from hostbench.model.registry import subsystems
from hostbench.model.subsystem import MethodChange


def method_change(
    case: CaseFigure, a: Iterable[JobFigures], b: Iterable[JobFigures]
) -> tuple[float, str | None]:
    """Return the factor that converts figures of side A to the method of side B, and why there is
    none.

    Either the factor is 1 or the reason is None.
    """
    subsystem = subsystems().get(case.subsystem)
    if subsystem is None:
        return 1.0, None
    relevant = [one for one in subsystem.method_changes if one.concerns(case.workload)]
    if not relevant:
        return 1.0, None
    sides = []
    for side in (a, b):
        found = {_passed(job, case.subsystem, relevant) for job in side}
        if len(found) > 1:
            return 1.0, "the jobs of one side are from versions that measure it differently"
        sides.append(found.pop())
    factor = 1.0
    for one in relevant:
        before, after = (one in side for side in sides)
        if before == after:
            continue
        if one.factor is None:
            return 1.0, f"{one.why} since {subsystem.program} {one.version}"
        factor *= one.factor if after else 1 / one.factor
    return factor, None


def _passed(
    job: JobFigures, subsystem: str, changes: Iterable[MethodChange]
) -> tuple[MethodChange, ...]:
    """Return the changes that the job's version includes."""
    version = _numbers(job.versions.get(subsystem, "0"))
    return tuple(one for one in changes if version >= _numbers(one.version))


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, so that `0.10.1` follows `0.9`."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
