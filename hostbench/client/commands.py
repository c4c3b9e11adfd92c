"""What the commands of the stack ask for, once their options are read."""

from pydantic import ValidationError

from hostbench.client.api import Orchestrator
from hostbench.client.connection import Reach, connection
from hostbench.client.failures import Refusal
from hostbench.errors import UsageError, did_you_mean, listing, shown
from hostbench.models.jobs import JobView, StackState
from hostbench.models.result import RESULT_SCHEMA, ResultDocument
from hostbench.results import LATEST, is_job_id


def orchestrator(reach: Reach) -> Orchestrator:
    """The orchestrator that options, environment or configuration name. Raises HostbenchError."""
    return Orchestrator(connection(reach))


def job_id(server: Orchestrator, text: str) -> str:
    """The id of a job given by its id, or the latest. Raises UsageError."""
    if text == LATEST:
        newest, _ = server.jobs(limit=1)
        if not newest:
            raise UsageError(
                f"{server.url} has no job yet; submit one with: hostbench submit quick"
            )
        return newest[0].id
    if not is_job_id(text):
        raise UsageError(
            f"{shown(text)} is not the id of a job; give one that hostbench jobs lists, or latest"
        )
    return text


def state_filter(text: str | None) -> StackState | None:
    """The state called `text`. Raises UsageError."""
    if text is None:
        return None
    known = [state.value for state in StackState]
    if text not in known:
        raise UsageError(
            f"--state {shown(text)} is not a state; {did_you_mean(text, known)}"
            f"give {listing(known)}"
        )
    return StackState(text)


def document(server: Orchestrator, job: str) -> ResultDocument:
    """The result document of a job. Raises HostbenchError."""
    content = server.result(job)
    try:
        return ResultDocument.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"the result of {job} is not a document of schema {RESULT_SCHEMA}: {where}: "
            f"{first['msg']}; get it as it is with --json, or use the orchestrator's own version"
        ) from None


def result_if_any(server: Orchestrator, job: JobView) -> ResultDocument | None:
    """The document of a job that has ended; None when it ended before it measured anything."""
    try:
        return document(server, job.id)
    except Refusal:
        if job.state is StackState.SUCCEEDED:
            raise
        return None
