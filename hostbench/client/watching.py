"""Following a job to its end, and what that end means to the shell."""

import sys

from hostbench.client.api import Orchestrator
from hostbench.client.events import JobEvents
from hostbench.client.follow import Follower
from hostbench.client.rendering import next_step, place_in_queue
from hostbench.client.stopping import stoppable
from hostbench.exitcode import ExitCode
from hostbench.interrupt import Interrupted
from hostbench.models.jobs import TERMINAL, JobView, StackState
from hostbench.peerjudge import shown_text
from hostbench.progress import PlainProgress, progress_for

_PAST = {
    StackState.SUCCEEDED: "succeeded",
    StackState.FAILED: "failed",
    StackState.CANCELLED: "was cancelled",
    StackState.LOST: "was lost",
}


def watch(server: Orchestrator, job: str) -> JobView:
    """Shows the progress of a job on standard error until it has ended; the job as it is then.

    Raises Interrupted on Ctrl-C: the job goes on.
    """
    with stoppable():
        try:
            with progress_for(sys.stderr) as progress:
                return _watched(server, server.job(job), progress)
        except Interrupted as error:
            error.message = (
                f"stopped watching ({error.signum.name}); the job goes on: hostbench watch {job} "
                f"shows it again, hostbench cancel {job} ends it"
            )
            raise


def _watched(server: Orchestrator, job: JobView, progress: PlainProgress) -> JobView:
    if job.state is StackState.QUEUED:
        place = place_in_queue(job)
        progress.say(f"job {job.id} is queued on {', '.join(job.hosts)}: {place}")
    if job.state not in TERMINAL:
        follower = Follower(progress)
        for event in JobEvents(server, job.id, progress.say):
            follower.take(event)
        job = server.job(job.id)
    return job


def exit_code(job: JobView) -> ExitCode:
    """What a finished job makes of the command's exit code."""
    if job.state in (StackState.CANCELLED, StackState.LOST):
        return ExitCode.ENDED_EARLY
    if job.exit_code in set(ExitCode):
        return ExitCode(job.exit_code)
    return ExitCode.OK if job.state is StackState.SUCCEEDED else ExitCode.CASE_FAILED


def last_words(job: JobView) -> str:
    """How a job ended, and what can be done now: two lines."""
    reason = f": {job.reason}" if job.reason else ""
    return shown_text(f"job {job.id} {_PAST[job.state]}{reason}") + f"\nnext: {next_step(job)}"
