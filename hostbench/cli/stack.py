"""The command line of the stack: submit, jobs, job, cancel, resume, hosts, console, watch, result;
and what lets other commands use an orchestrator."""

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import UsageError
from hostbench.cli.options import (
    EPILOG,
    CaFile,
    Config,
    Csv,
    Idle,
    Json,
    KeyFile,
    Param,
    Peers,
    Scale,
    Trials,
    Url,
    Workload,
    peer_choice,
    print_document,
    print_json,
    refuse_both,
    whole_number,
    with_options,
)

if TYPE_CHECKING:
    from hostbench.client.api import Orchestrator
    from hostbench.model.jobs import JobView

# Each command imports what takes time to import.

JOBS_SHOWN = 20
LIMIT_MOST = 1_000_000

stack = typer.Typer()

Job = Annotated[str, typer.Argument(help="A job id that hostbench jobs shows, or latest.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Follow the job until it ends, and return its exit code.")
]


def _reach(
    url: Url = None, key_file: KeyFile = None, ca_file: CaFile = None, config: Config = None
) -> "Orchestrator":
    """Return the orchestrator for the options that every command of the stack has."""
    from hostbench.cli.job_commands import orchestrator
    from hostbench.client.connection import Reach

    return orchestrator(Reach(url, key_file, ca_file, config))


def _reach_or_none(
    stack: Annotated[
        bool,
        typer.Option(
            "--stack",
            help="Use the jobs of an orchestrator. Default if one of the next options is given.",
        ),
    ] = False,
    url: Url = None,
    key_file: KeyFile = None,
    ca_file: CaFile = None,
    config: Config = None,
) -> "contextlib.AbstractContextManager[Orchestrator | None]":
    """Do the same with an option that requests it; without any of these options, yield None."""
    if stack or any((url, key_file, ca_file, config)):
        return _reach(url, key_file, ca_file, config)
    return contextlib.nullcontext()


def _command(function: Callable[..., None]) -> Callable[..., None]:
    stack.command(epilog=EPILOG)(with_options(_reach, function))
    return function


def here_or_there(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that uses an orchestrator if options request it, and otherwise gets None for
    it."""
    return with_options(_reach_or_none, function)


def refuse_here(**given: object) -> None:
    """Raise UsageError for an option on local files together with options of a stack."""
    for name, value in given.items():
        if value is not None:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} applies to local files, not to the jobs of an orchestrator: leave "
                "it out"
            )


@_command
def submit(
    server: "Orchestrator",
    suite: Annotated[
        str | None,
        typer.Argument(help="Name of a suite of the orchestrator, or path of a local suite."),
    ] = None,
    scale: Scale = None,
    workload: Workload = None,
    param: Param = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host to measure; give it twice for two hosts. Default: the only registered host."
        ),
    ] = None,
    priority: Annotated[
        str,
        typer.Option(
            metavar="N", help="From -10 to 10; each step counts like ten minutes of waiting."
        ),
    ] = "0",
    trials: Trials = None,
    idle_policy: Idle = None,
    peers: Peers = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Queue a job on the orchestrator and print its id."""
    from hostbench.cli.job_commands import SubmitRequest, job_spec
    from hostbench.model.jobs import PRIORITY_MOST
    from hostbench.model.suite import TRIALS_MOST

    request = SubmitRequest(
        suite=suite,
        scale=scale,
        workload=workload,
        params=tuple(param or ()),
        hosts=tuple(host or ()),
        priority=whole_number("--priority", priority, -PRIORITY_MOST, PRIORITY_MOST),
        trials=None if trials is None else whole_number("--trials", trials, 1, TRIALS_MOST),
        idle_policy=idle_policy.value if idle_policy else None,
        peers=None if peers is None else peer_choice(peers),
    )
    _queued(server, server.submit(job_spec(request)), wait=wait, as_json=as_json)


def _queued(server: "Orchestrator", job: "JobView", *, wait: bool, as_json: bool) -> None:
    """Print only the id on standard output, for scripts; the rest is for people."""
    if not as_json:
        typer.echo(job.id)
        sys.stdout.flush()
    if not wait:
        if as_json:
            print_json(job.model_dump(mode="json"))
        return
    from hostbench.cli.job_commands import result_if_any
    from hostbench.cli.watching import exit_code, last_words, watch

    job = watch(server, job.id)
    if as_json:
        print_json(job.model_dump(mode="json"))
    elif document := result_if_any(server, job):
        from hostbench.cli.render import show_result

        show_result(document, sys.stderr)
    typer.echo(last_words(job), err=True)
    raise typer.Exit(exit_code(job))


@_command
def jobs(
    server: "Orchestrator",
    state: Annotated[
        str | None,
        typer.Option(help="Only jobs in this state: queued, running, succeeded and so on."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Only jobs of this host.")] = None,
    limit: Annotated[
        str, typer.Option(metavar="N", help="Maximum number of jobs, newest first; 0: all.")
    ] = str(JOBS_SHOWN),
    as_json: Json = False,
) -> None:
    """List the jobs of the orchestrator."""
    from hostbench.cli.job_commands import state_filter

    most = whole_number("--limit", limit, 0, LIMIT_MOST)
    found = server.jobs(most, state_filter(state), host)
    if as_json:
        content = found.model_dump(mode="json", include={"jobs", "memory"})
        print_json({**content, "older": found.next is not None})
        return
    from hostbench.cli.render_jobs import show_jobs

    show_jobs(found, sys.stdout)


@_command
def job(server: "Orchestrator", job: Job, as_json: Json = False) -> None:
    """Show the state of a job of the orchestrator."""
    from hostbench.cli.job_commands import job_id
    from hostbench.cli.render_jobs import show_job

    view = server.job(job_id(server, job))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        show_job(view, sys.stdout)


@_command
def cancel(server: "Orchestrator", job: Job, as_json: Json = False) -> None:
    """Cancel a job of the orchestrator and keep what it measured."""
    from hostbench.cli.job_commands import job_id

    view = server.cancel(job_id(server, job))
    if as_json:
        print_json(view.model_dump(mode="json"))
        return
    from hostbench.model.jobs import StackState

    done = view.state is StackState.CANCELLED
    typer.echo(f"job {view.id} {'is cancelled' if done else 'ends within seconds'}")


@_command
def resume(server: "Orchestrator", job: Job, wait: Wait = False, as_json: Json = False) -> None:
    """Queue an unsuccessful job again and keep its finished cases."""
    from hostbench.cli.job_commands import job_id

    _queued(server, server.resume(job_id(server, job)), wait=wait, as_json=as_json)


@_command
def hosts(server: "Orchestrator", as_json: Json = False) -> None:
    """List the hosts that are registered with the orchestrator."""
    found = server.hosts()
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    from hostbench.cli.render_jobs import show_hosts

    show_hosts(found.hosts, sys.stdout)


@_command
def console(
    server: "Orchestrator",
    open_it: Annotated[
        bool, typer.Option("--open", help="Open it in the browser of this machine.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print a link that logs a browser in to the console, once, within five minutes."""
    link = server.console_link()
    url = f"{server.url}{link.path}"
    if as_json:
        print_json({"url": url, "valid_s": link.valid_s})
    else:
        typer.echo(url)
    if open_it:
        import webbrowser

        if not webbrowser.open(url):
            typer.echo(
                "this machine cannot open a browser: open the link on one that has a browser",
                err=True,
            )


@_command
def watch(server: "Orchestrator", job: Job) -> None:
    """Show a job of the orchestrator as it runs, then its result. Ctrl-C leaves the job alone."""
    from hostbench.cli.job_commands import job_id, result_if_any
    from hostbench.cli.watching import exit_code, last_words
    from hostbench.cli.watching import watch as follow

    view = follow(server, job_id(server, job))
    if document := result_if_any(server, view):
        print_document(document, as_json=False, as_csv=False)
    typer.echo(last_words(view), err=True)
    raise typer.Exit(exit_code(view))


@_command
def result(
    server: "Orchestrator",
    job: Job,
    as_json: Json = False,
    as_csv: Csv = False,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File for the document or, with --csv, for the CSV."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File for the report as an HTML page; - for standard output."
        ),
    ] = None,
) -> None:
    """Show what a job of the orchestrator measured, or fetch it."""
    from hostbench.cli.job_commands import Wanted, document, fetch, job_id

    refuse_both(as_json, as_csv)
    wanted = Wanted(as_csv=as_csv, as_json=as_json, output=output, report=report)
    found = job_id(server, job)
    if not fetch(server, found, wanted):
        print_document(document(server, found), as_json=False, as_csv=False)
