"""/jobs: submit, list, show, cancel, resume."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import AfterValidator
from redis.exceptions import OutOfMemoryError

from hostbench.base.errors import shown
from hostbench.model.jobs import TERMINAL, JobList, JobSpec, JobView, StackState
from hostbench.results.ids import JOB_ID, is_job_id
from hostbench.web.body import accepts, json_body
from hostbench.web.problem import Problem, problem_responses
from orchestrator.api.common import Core, Job, as_json
from orchestrator.core import Orchestrator
from orchestrator.queue.jobs import QUEUED_MOST, Changed, Enqueued

LIMIT_DEFAULT, LIMIT_MOST = 50, 500
# Ids of one second differ by four digits.
ID_ATTEMPTS = 50
RETRY_AFTER_S = 60
_EXAMPLES: dict[str, Any] = {
    "a suite": {"suite": "quick"},
    "a suite with changes": {
        "suite": "full",
        "hosts": ["bench-1"],
        "priority": 2,
        "trials": 7,
        "idle_policy": "fail",
        "peers": "auto",
    },
    "a suite at one of its scales": {"suite": "cs553/openstack-haswell", "scale": "full"},
    "a workload": {
        "workload": "cpu.fma",
        "params": {"dtype": "fp64", "isa": "avx2", "threads": 1, "duration_s": 2},
        "hosts": ["bench-1"],
    },
    "a workload on a disk": {
        "workload": "disk.rand_read",
        "params": {"block_bytes": 4096, "queue_depth": 32, "duration_s": 10},
    },
    "a suite in full": {
        "suite": {
            "name": "two-threads",
            "repeats": {"min_trials": 3, "max_trials": 5},
            "cases": [{"workload": "cpu.fma", "grid": {"threads": [1, 2], "dtype": "all"}}],
        }
    },
}


def _is_job_id(text: str | None) -> str | None:
    if text is not None and not is_job_id(text):
        raise ValueError(f"{shown(text)} is not the id of a job; give `next` of the last answer")
    return text


router = APIRouter(tags=["jobs"])
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="The same key with the same body gives the same job, for 24 hours.",
    ),
]


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobView,
    summary="Queue a job",
    description=(
        "The orchestrator first plans the whole job, on the host as it registered. It refuses a "
        "job that cannot be measured, and names the field."
    ),
    response_description="The job, queued.",
    responses={
        200: {"model": JobView, "description": "Submitted before with this Idempotency-Key."},
        **problem_responses([401, 403, 413, 422, 429, 503, 507]),
    },
    openapi_extra=accepts(JobSpec, _EXAMPLES),
)
def submit(
    spec: Annotated[JobSpec, Depends(json_body(JobSpec))],
    core: Core,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """POST /jobs."""
    answer, view = submitted(core, spec, idempotency_key)
    return as_json(view, 200 if answer.outcome == "known" else 202, Location=f"/jobs/{answer.id}")


def submitted(
    core: Orchestrator, spec: JobSpec, idempotency_key: str | None
) -> tuple[Enqueued, JobView]:
    """Queue a job, or find the one that was submitted before. Raise Problem or RedisError."""
    answer = _enqueued(core, spec, idempotency_key)
    if answer.outcome == "other":
        raise Problem(
            422,
            "idempotency_key_reused",
            f"this Idempotency-Key was sent with another body, for job {answer.id}; "
            "make a new key for each job",
            field="header.idempotency-key",
        )
    if answer.outcome == "full":
        raise _full()
    return answer, answer.view or core.catalogue.view(answer.id)


def _enqueued(core: Orchestrator, spec: JobSpec, idempotency_key: str | None) -> Enqueued:
    body = spec.model_dump_json(exclude_defaults=True).encode()
    try:
        accepted = core.acceptance.accept(spec)
        _check_room(core)
        for _ in range(ID_ATTEMPTS):
            answer = core.jobs.enqueue(accepted.job(), idempotency_key, body)
            if answer.outcome != "taken":
                return answer
    except (Problem, OutOfMemoryError):
        # An accepted job stays accepted, even if its host is gone now or Redis is full.
        before = None if idempotency_key is None else core.jobs.submitted(idempotency_key, body)
        if before is None:
            raise
        return before
    raise Problem(429, "no_id_left", "too many jobs of this suite in one second; try again")


def _check_room(core: Orchestrator) -> None:
    """Raise Problem if the results directory has no room for another job."""
    if (refusal := core.archive.refusal()) is not None:
        raise Problem(507, "results_full", refusal)


def _full() -> Problem:
    return Problem(
        429,
        "queue_full",
        f"{QUEUED_MOST} jobs are queued, the most there may be; wait, or cancel some",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )


@router.get(
    "/jobs",
    response_model=JobList,
    summary="List jobs, newest first",
    responses=problem_responses([401, 403, 422, 503]),
)
def jobs(
    core: Core,
    state: Annotated[StackState | None, Query(description="Only jobs in this state.")] = None,
    host: Annotated[
        str | None,
        Query(
            max_length=64, description="Only jobs that were submitted for this host or ran on it."
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MOST)] = LIMIT_DEFAULT,
    before: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Only jobs older than this one: `next` of the last answer.",
            json_schema_extra={"pattern": f"^{JOB_ID.pattern}$"},
        ),
        AfterValidator(_is_job_id),
    ] = None,
) -> Response:
    """GET /jobs."""
    return as_json(core.catalogue.page(state, host, limit, before))


@router.get(
    "/jobs/{job_id}",
    response_model=JobView,
    summary="A job and its state",
    responses=problem_responses([401, 403, 404, 422, 503]),
)
def job(job: Job) -> Response:
    """GET /jobs/{id}."""
    return as_json(job)


@router.delete(
    "/jobs/{job_id}",
    status_code=202,
    response_model=JobView,
    summary="Cancel a job",
    description=(
        "A queued job is cancelled at once. A running job first ends its trial, within seconds; "
        "its results so far are kept."
    ),
    responses=problem_responses([401, 403, 404, 409, 422, 503]),
)
def cancel(job: Job, core: Core) -> Response:
    """DELETE /jobs/{id}."""
    return as_json(cancelled(core, job), 202)


def cancelled(core: Orchestrator, job: JobView) -> JobView:
    """Cancel a job; return it as it is then. Raise Problem if it has ended."""
    job_id = job.id
    answer = core.jobs.cancel(job_id)
    if answer.outcome in ("ended", "unknown"):
        state = answer.before or job.state
        raise Problem(
            409, "ended", f"job {job_id} is {state} already: nothing is left to cancel", state=state
        )
    view = core.catalogue.view(job_id)
    if view.state in TERMINAL:
        core.archive.keep(view)  # a resumed job may have measured before
    return view


@router.post(
    "/jobs/{job_id}/resume",
    status_code=202,
    response_model=JobView,
    summary="Queue a lost, failed or cancelled job again",
    description=(
        "The job keeps its id. Complete cases are kept if program and host are still the same. "
        "Its events begin anew."
    ),
    responses=problem_responses([401, 403, 404, 409, 422, 429, 503, 507]),
)
def resume(job: Job, core: Core) -> Response:
    """POST /jobs/{id}/resume."""
    return as_json(resumed(core, job), 202, Location=f"/jobs/{job.id}")


def resumed(core: Orchestrator, job: JobView) -> JobView:
    """Queue an ended job again; return it as it is then. Raise Problem if it cannot be resumed."""
    answer = _resumed(core, job)
    if answer.outcome == "full":
        raise _full()
    if answer.outcome == "refused":
        raise Problem(
            409,
            "not_resumable",
            f"job {job.id} is {answer.before}; only a lost, failed or cancelled job is resumed",
            state=answer.before,
        )
    return core.catalogue.view(job.id)


def _resumed(core: Orchestrator, job: JobView) -> Changed:
    if job.state in TERMINAL and job.state is not StackState.SUCCEEDED:
        _check_room(core)
    if core.jobs.state(job.id) is not None:
        return core.jobs.resume(job.id, job.priority, {})
    if job.state not in (StackState.LOST, StackState.FAILED, StackState.CANCELLED):
        return Changed("refused", job.state)
    if job.spec is None:
        raise Problem(
            409,
            "not_resumable",
            f"job {job.id} was not submitted here; go on with hostbench run --resume {job.id} "
            "where it was measured",
        )
    # Redis no longer has it, so it is planned as a new one: hosts may have changed.
    accepted = core.acceptance.accept(job.spec.model_copy(update={"hosts": job.hosts}))
    again = accepted.job(job.id)
    fields = again.fields | {
        "queue": again.queue,
        "submitted_us": str(int(job.submitted_unix_s * 1e6)),
        "sessions": str(job.sessions),
    }
    return core.jobs.resume(job.id, job.priority, fields)
