"""How the figure of a case varies from job to job on its host.

The trials of one job see a few minutes. Where the host is slow during all of them, nothing in the
job shows it; the host's earlier jobs do.
"""

import statistics
from collections.abc import Sequence

from hostbench.base.units import bound, human
from hostbench.judge.figure import Measured
from hostbench.model.decision import FigureKind
from hostbench.model.result import BetweenJobs, Reason

VARIES = "varies_between_jobs"
# With fewer, the median is no better than one of them.
JOBS_LEAST = 3
# From this share of the jobs on, a figure that is off is no rare exception. So a single one counts
# in ten jobs, and no longer in eleven.
OFF_LEAST_RATIO = 0.1


def between_jobs(one: Measured, usual_half_width: float) -> BetweenJobs | None:
    """Return how the figure of a case that may be used varies between the earlier jobs and this
    one, or None: they are too few. `usual_half_width`: see ClassSpreads."""
    if not one.values:
        return None
    kind = FigureKind.UNDISTURBED if one.is_of_slices else FigureKind.DELIVERED
    values = [value for figure in one.earlier if (value := figure.value(kind)) is not None]
    values.append(statistics.median(one.values))
    return spread_of(values, max(one.case.repeats.target, usual_half_width))


def spread_of(values: Sequence[float], bound_ratio: float) -> BetweenJobs | None:
    """Return how the figures of several jobs vary, or None: they are too few."""
    if len(values) < JOBS_LEAST:
        return None
    middle = statistics.median(values)
    return BetweenJobs(
        jobs=len(values),
        low=min(values),
        high=max(values),
        off=sum(abs(value / middle - 1) > bound_ratio for value in values),
        bound_ratio=bound_ratio,
    )


def varies(found: BetweenJobs | None) -> bool:
    """Whether so many jobs are off that each of them shows too little."""
    return found is not None and found.off / found.jobs >= OFF_LEAST_RATIO


def varying_reasons(found: BetweenJobs | None, unit: str) -> tuple[Reason, ...]:
    """Return why a figure is noisy although the trials of this job agree; empty where it hardly
    varies between jobs."""
    if found is None or not varies(found):
        return ()
    return (
        Reason(
            code=VARIES,
            text=f"{human(found.low, unit)} to {human(found.high, unit)} in this and "
            f"{found.jobs - 1} earlier jobs of this host: {found.off} of these "
            f"{found.jobs} figures {'is' if found.off == 1 else 'are'} more than "
            f"{bound(found.bound_ratio)} off their median; hostbench history shows when",
        ),
    )
