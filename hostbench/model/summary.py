"""What a listing says of a job: apart from the models of documents, which take long to import."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


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


class StoredModel(BaseModel):
    """Base of everything stored."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


class JobSummary(StoredModel):
    """One line of a listing."""

    id: str
    suite: str
    state: JobState
    hostname: str
    created_unix_s: float
    finished_unix_s: float | None
    cases: int
    verdicts: dict[Verdict, int]
