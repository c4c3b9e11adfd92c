"""The ids of jobs, which are the names of their directories, and the place of these."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from hostbench.base.errors import UsageError

JOB_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9][a-z0-9-]*-[0-9a-f]{4}", re.ASCII)


def results_directory(given: Path | None) -> Path:
    """Return --results, else HOSTBENCH_RESULTS, else ./results."""
    return given or Path(os.environ.get("HOSTBENCH_RESULTS") or "results")


def new_job_id(suite: str) -> str:
    """Return a new id. The time makes it sortable; the rest distinguishes two jobs of the same
    second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{suite}-{os.urandom(2).hex()}"


def is_job_id(text: str) -> bool:
    """Whether the text has the form of an id, so that it names no other place."""
    return JOB_ID.fullmatch(text) is not None


def submitted_unix_s(job_id: str) -> float:
    """Return the time in a job id, to the second; 0 without a valid time."""
    try:
        return datetime.strptime(job_id.partition("-")[0], "%Y%m%dT%H%M%S%z").timestamp()
    except ValueError:
        return 0.0


def job_ids(root: Path) -> list[str]:
    """Return the ids of all jobs, oldest first. Raise UsageError."""
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if JOB_ID.fullmatch(entry.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(
            f"cannot read {root}: {error.strerror}; "
            "choose another directory with --results or HOSTBENCH_RESULTS"
        ) from None


def has_job(root: Path, job_id: str) -> bool:
    """Whether there is a job of this id."""
    return is_job_id(job_id) and os.path.lexists(root / job_id)
