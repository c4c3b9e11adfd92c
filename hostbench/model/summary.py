"""What a listing says of a job, without pydantic: that takes longer to import than to list them."""

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


class JobState(StrEnum):
    """Where a job stands. `running` is never written down: the journal is locked meanwhile."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True)
class JobSummary:
    """One line of a listing. In a stored model it is checked as the rest of that is. `took_s` is by
    the clock that counts from the host's boot; None: unknown, as of a job resumed after another."""

    id: str
    suite: str
    state: JobState
    hostname: str
    created_unix_s: float
    finished_unix_s: float | None
    cases: int
    verdicts: dict[Verdict, int]
    took_s: float | None = None
