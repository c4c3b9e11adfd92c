"""Jobs as parts of campaigns: those of some campaigns, and whether they may be judged together."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.base.units import some_of
from hostbench.model.result import CampaignMember

VALUES_NAMED = 3


class Job(Protocol):
    """A document, or what an index keeps of one."""

    @property
    def member(self) -> CampaignMember | None:
        """Return the campaign and the node or pair of the document."""
        ...


OneJob = TypeVar("OneJob", bound=Job)


def of_campaigns(jobs: Sequence[OneJob], campaigns: Sequence[str]) -> Sequence[OneJob]:
    """Return the jobs of these campaigns; without any name, all. Raise UsageError for a campaign
    that no job is of."""
    if not campaigns:
        return jobs
    there = sorted({job.member.campaign for job in jobs if job.member is not None})
    for name in campaigns:
        if name not in there:
            known = ", ".join(there) if there else "no campaign"
            raise UsageError(
                f"--campaign {shown(name)}: none of {len(jobs)} documents is of it; "
                f"{did_you_mean(name, there)}they are of {known}"
            )
    return [job for job in jobs if job.member is not None and job.member.campaign in campaigns]


def refuse_clusters(jobs: Iterable[Job]) -> None:
    """Raise UsageError for jobs of several clusters."""
    members = [job.member for job in jobs if job.member is not None]
    campaigns = {one.cluster: one.campaign for one in members}
    option = f"--campaign {listing(campaigns.values())}"
    refuse_several("clusters", option, (one.cluster for one in members))


def refuse_several(what: str, option: str, values: Iterable[str]) -> None:
    """Raise UsageError if jobs have several values of what they must share. `option` chooses."""
    counts = Counter(values)
    if len(counts) > 1:
        each = [f"{shown(value)} ({number} documents)" for value, number in counts.most_common()]
        raise UsageError(
            f"the documents are of {len(counts)} {what}, {some_of(each, VALUES_NAMED)}: hosts are "
            f"compared with others of one; choose with {option}, or give the documents of one"
        )
