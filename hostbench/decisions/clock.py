"""Wall clocks that were set back between two jobs, so that time stamps do not show the order of the
jobs."""

import itertools
from collections.abc import Sequence

from hostbench.model.decision import JobFigures
from hostbench.results.ids import submitted_unix_s

JOBS_NAMED = 3


def clock_went_back(jobs: Sequence[JobFigures]) -> tuple[str, ...]:
    """Return the jobs of one host that began, by its wall clock, before they were submitted, or
    before the previous job of the same boot.

    Ids in another order than the beginnings prove nothing: a queue has priorities.
    """
    boots: dict[str, list[tuple[float, JobFigures]]] = {}
    for job in jobs:
        if job.boot is not None:
            boots.setdefault(job.boot.id, []).append((job.boot.since_s, job))
    orders = [[job for _, job in sorted(one, key=lambda at: at[0])] for one in boots.values()]
    found = [job.job for job in jobs if job.created_unix_s < submitted_unix_s(job.job)]
    found += [
        later.job
        for order in orders
        for earlier, later in itertools.pairwise(order)
        if later.created_unix_s < earlier.created_unix_s
    ]
    return tuple(dict.fromkeys(found))


def clock_sentence(went_back: Sequence[str], consequence: str) -> str:
    """Return a sentence on the jobs before which a clock was set back, and the consequence."""
    more = len(went_back) - JOBS_NAMED
    others = f" and {more} others" if more > 0 else ""
    named = ", ".join(went_back[:JOBS_NAMED])
    return f"The clock of the host was set back before {named}{others}: {consequence}"
