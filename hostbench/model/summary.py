"""What a listing shows of a job, without pydantic, which takes longer to import than the jobs to
list."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How far a figure can be trusted."""

    CLEAN = "clean"
    NOISY = "noisy"
    DISTURBED = "disturbed"
    INVALID = "invalid"
    SKIPPED = "skipped"
    FAILED = "failed"
    CORRUPT = "corrupt"


# The program ended without a figure. Of a wrong result, documents of before the word corrupt say
# failed.
FAILURES = (Verdict.CORRUPT, Verdict.FAILED)


class JobState(StrEnum):
    """The state of a job. `running` is never stored: the journal is locked meanwhile."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True)
class JobSummary:
    """One line of a listing. As part of a stored model, it is validated like the rest of it.

    `took_s` is measured with the clock that counts from the host's boot; None: unknown, for example
    for a job that was resumed after a boot.
    """

    id: str
    suite: str
    state: JobState
    hostname: str
    created_unix_s: float
    finished_unix_s: float | None
    cases: int
    verdicts: dict[Verdict, int]
    took_s: float | None = None
