"""Following a job to its end, and the exit code for that end."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import EXIT_CODES, Interrupted
from hostbench.cli.progress import PlainProgress, progress_for
from hostbench.cli.render_jobs import next_step
from hostbench.client.api import Orchestrator
from hostbench.client.events import JobEvents
from hostbench.judge.peer import shown_text
from hostbench.model.jobs import ENDED, TERMINAL, JobView, StackState


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """End the context with Interrupted on SIGINT, SIGTERM or SIGHUP.

    Unlike in a run, the handler raises it: nothing was started that could be left behind, and a
    read from the network waits for nothing else.
    """
    before = {signum: signal.getsignal(signum) for signum in EXIT_CODES}

    def stop(signum: int, _frame: FrameType | None) -> None:
        for one in before:  # A second signal must not disturb the end after the first.
            signal.signal(one, signal.SIG_IGN)
        raise Interrupted(signal.Signals(signum))

    for signum, handler in before.items():
        if handler != signal.SIG_IGN or signum != signal.SIGHUP:  # nohup
            signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def watch(server: Orchestrator, job: str) -> JobView:
    """Show the progress of a job on standard error until it has ended; return the job in its final
    state.

    Raise Interrupted on Ctrl-C: the job goes on.
    """
    with stoppable():
        try:
            with progress_for(sys.stderr) as progress:
                return _watched(server, server.job(job), progress)
        except Interrupted as error:
            error.message = (
                f"stopped watching ({error.signum.name}); the job continues: hostbench watch "
                f"{job} shows it again, hostbench cancel {job} cancels it"
            )
            raise


def _watched(server: Orchestrator, job: JobView, progress: PlainProgress) -> JobView:
    if job.state is StackState.QUEUED:
        progress.say(f"job {job.id} is queued on {', '.join(job.hosts)}: {job.place}")
    if job.state not in TERMINAL:
        for event in JobEvents(server, job.id, progress.say):
            progress.take(event)
        job = server.job(job.id)
    return job


def exit_code(job: JobView) -> ExitCode:
    """Return the command's exit code for a finished job."""
    if job.state in (StackState.CANCELLED, StackState.LOST):
        return ExitCode.ENDED_EARLY
    if job.exit_code in set(ExitCode):
        return ExitCode(job.exit_code)
    return ExitCode.OK if job.state is StackState.SUCCEEDED else ExitCode.CASE_FAILED


def last_words(job: JobView) -> str:
    """Return how a job ended, and what the user can do now, in two lines."""
    between = ": " if job.why == job.reason else " "
    why = f"{between}{job.why}" if job.why else ""
    return shown_text(f"job {job.id} {ENDED[job.state]}{why}") + f"\nnext: {next_step(job)}"
