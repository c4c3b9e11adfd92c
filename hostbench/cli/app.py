"""The command line: run, plan, list, show, report, doctor; decisions.py and stack.py have more."""

import dataclasses
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench import __version__
from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.place import build
from hostbench.cli.ab import settings
from hostbench.cli.baseline import baseline
from hostbench.cli.decisions import decisions
from hostbench.cli.fleet import fleet
from hostbench.cli.history import histories
from hostbench.cli.options import (
    EPILOG,
    Csv,
    FarCaFile,
    FarHostUrl,
    FarKeyFile,
    Idle,
    Json,
    Param,
    Peers,
    Results,
    Scale,
    SuiteName,
    Trials,
    Wait,
    Workload,
    peer_choice,
    print_document,
    print_json,
    refuse_both,
    seconds,
    whole_number,
)
from hostbench.cli.stack import stack
from hostbench.cli.verify import verification

if TYPE_CHECKING:
    from hostbench.cli.commands import RunRequest
    from hostbench.model.result import ResultDocument

# Each command imports what takes time to import.

LIMIT_MOST = 1_000_000
NAME = "hostbench"

app = typer.Typer(
    name=NAME,
    help="Measures what this host can really do, and shows how far each figure can be trusted.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Listed(StrEnum):
    """What `hostbench list` lists."""

    JOBS = "jobs"
    SUITES = "suites"
    WORKLOADS = "workloads"


class ReportFormat(StrEnum):
    """What a report is written as."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    OPENMETRICS = "openmetrics"


def _version(given: bool) -> None:
    if given:
        typer.echo(f"hostbench {__version__} ({build()})")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print version, commit and build."
        ),
    ] = False,
) -> None:
    """Options before the command."""


@app.command(epilog=EPILOG)
def run(
    suite: SuiteName = None,
    scale: Scale = None,
    workload: Workload = None,
    param: Param = None,
    trials: Trials = None,
    idle_policy: Idle = None,
    peers: Peers = None,
    resume: Annotated[
        str | None, typer.Option(help="Continue an interrupted job, given by its id or latest.")
    ] = None,
    wait: Wait = "0",
    far_host: FarHostUrl = None,
    far_key_file: FarKeyFile = None,
    far_ca: FarCaFile = None,
    results: Results = None,
    no_report: Annotated[
        bool,
        typer.Option("--no-report", help="Write no report; hostbench report can write it later."),
    ] = False,
    openmetrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.prom",
            help="Also write the job's series for node_exporter's textfile collector.",
        ),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Measure a suite, or one workload, on this host."""
    from hostbench.cli.commands import run_job

    refuse_both(as_json, as_csv)
    request = dataclasses.replace(
        _request(
            suite, scale, workload, param, trials, peers, wait, far_host, far_key_file, far_ca
        ),
        idle_policy=idle_policy.value if idle_policy else None,
        resume=resume,
        results=results,
        report=not no_report,
    )
    if openmetrics is not None:
        from hostbench.page.series import check_textfile

        check_textfile(openmetrics)
    document, code = run_job(request)
    if openmetrics is not None:
        code = _write_series(document, openmetrics, code)
    print_document(document, as_json=as_json, as_csv=as_csv)
    raise typer.Exit(code)


def _write_series(document: "ResultDocument", target: Path, code: ExitCode) -> ExitCode:
    """Write the series of a job that was just measured; return the exit code of the command. The
    result counts and is printed, also where this fails."""
    from hostbench.page.series import write_textfile

    try:
        write_textfile(document, target)
    except HostbenchError as error:
        typer.echo(f"hostbench: {error.message}", err=True)
        return error.exit_code if code is ExitCode.OK else code
    return code


@app.command(epilog=EPILOG)
def plan(
    suite: SuiteName = None,
    scale: Scale = None,
    workload: Workload = None,
    param: Param = None,
    trials: Trials = None,
    peers: Peers = None,
    wait: Wait = "0",
    far_host: FarHostUrl = None,
    far_key_file: FarKeyFile = None,
    far_ca: FarCaFile = None,
    as_json: Json = False,
) -> None:
    """Show what a run would measure and how long it would take.

    It runs cases with a fixed amount of work for a moment to estimate their time, and keeps no
    result.
    """
    from hostbench.cli.commands import plan_job
    from hostbench.cli.plan_view import plan_tree, show_plan

    found = plan_job(
        _request(suite, scale, workload, param, trials, peers, wait, far_host, far_key_file, far_ca)
    )
    if as_json:
        print_json(plan_tree(found))
    else:
        show_plan(found, sys.stdout)


def _request(
    suite: str | None,
    scale: str | None,
    workload: str | None,
    param: list[str] | None,
    trials: str | None,
    peers: str | None,
    wait: str,
    far_host: str | None,
    far_key_file: Path | None,
    far_ca: Path | None,
) -> "RunRequest":
    """Return the checked options that run and plan share. Raise UsageError or ResourceError."""
    from hostbench.cli.commands import RunRequest
    from hostbench.model.suite import TRIALS_MOST
    from hostbench.remote.far_options import far_options

    return RunRequest(
        suite=suite,
        scale=scale,
        workload=workload,
        params=tuple(param or ()),
        trials=None if trials is None else whole_number("--trials", trials, 1, TRIALS_MOST),
        peers=None if peers is None else peer_choice(peers),
        wait_s=seconds("--wait", wait),
        far=far_options(far_host, far_key_file, far_ca),
    )


@app.command("list")
def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")] = Listed.JOBS,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Maximum number of jobs, newest first; 0: all. Default: 20; with --json: all.",
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """List jobs, suites or workloads."""
    if what is Listed.JOBS:
        _list_jobs(limit, results, as_json=as_json)
    elif what is Listed.SUITES:
        _list_suites(as_json=as_json)
    else:
        _list_workloads(as_json=as_json)


def _list_jobs(limit: str | None, results: Path | None, *, as_json: bool) -> None:
    from hostbench.cli.listing import JOBS_SHOWN, job_summaries

    most = 0 if as_json else JOBS_SHOWN
    if limit is not None:
        most = whole_number("--limit", limit, 0, LIMIT_MOST)
    summaries, older = job_summaries(results, most)
    if as_json:
        print_json({"jobs": [dataclasses.asdict(summary) for summary in summaries]})
        return
    from hostbench.cli.render_list import show_jobs

    show_jobs(summaries, older, sys.stdout)


def _list_suites(*, as_json: bool) -> None:
    from hostbench.cli.listing import suites

    found = suites()
    if as_json:
        print_json({"suites": found})
        return
    for suite in found:
        scales = f" Scales: {', '.join(suite['scales'])}." if suite["scales"] else ""
        typer.echo(f"{suite['name']}: {suite['error'] or suite['description']}{scales}")


def _list_workloads(*, as_json: bool) -> None:
    from hostbench.cli.listing import tables

    found = tables()
    if as_json:
        print_json({"programs": [table.model_dump(mode="json") for table in found]})
        return
    for table in found:
        for workload in table.workloads:
            naive = " Naive: its figure misleads on purpose." if workload.naive else ""
            unsupported = f" Not here: {workload.unsupported}." if workload.unsupported else ""
            name = f"{table.subsystem}.{workload.name}"
            typer.echo(f"{name}: {workload.description}{naive}{unsupported}")


@app.command(epilog=EPILOG)
def show(
    job: Annotated[str, typer.Argument(help="A job id that hostbench list shows, or latest.")],
    samples: Annotated[
        bool,
        typer.Option("--samples", help="With --csv: one row per sample instead of one per metric."),
    ] = False,
    results: Results = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show what a job measured."""
    from hostbench.results.ids import results_directory
    from hostbench.results.store import ResultsStore

    refuse_both(as_json, as_csv)
    if samples and not as_csv:
        raise UsageError("--samples needs --csv; --json contains the samples anyway")
    document = ResultsStore(results_directory(results)).job(job).load()
    if samples:
        from hostbench.results.csv import sample_table

        sys.stdout.write(sample_table(document))
        return
    print_document(document, as_json=as_json, as_csv=as_csv)


@app.command()
def doctor(
    subsystem: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show only what affects the figures of this subsystem, such as cpu.",
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Show what on this host disturbs or limits measurements. It changes nothing."""
    from hostbench.doctor.examination import examine
    from hostbench.results.ids import results_directory

    report = examine(results_directory(results), subsystem)
    if as_json:
        typer.echo(report.model_dump_json(indent=1, by_alias=True))
        return
    from hostbench.cli.doctor import show_report

    show_report(report, sys.stdout)


@app.command(epilog=EPILOG)
def report(
    job: Annotated[str, typer.Argument(help="A job id that hostbench list shows, or latest.")],
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            help="An HTML page, Markdown for a ticket, CSV as show prints it, or series for "
            "Prometheus.",
        ),
    ] = ReportFormat.HTML,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Output file; - for standard output. Default: report.html in the job's "
            "directory; the other formats go to standard output.",
        ),
    ] = None,
    results: Results = None,
) -> None:
    """Write a job's report and print where it is."""
    from hostbench.page.output import Format, write_report
    from hostbench.results.ids import results_directory
    from hostbench.results.store import ResultsStore

    found = ResultsStore(results_directory(results)).job(job)
    written = write_report(found, Format(form), output)
    if written is not None:
        typer.echo(written)


app.add_typer(decisions)
app.add_typer(settings)
app.add_typer(verification)
app.add_typer(baseline)
app.add_typer(histories)
app.add_typer(fleet)
app.add_typer(stack)


def invoke(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code. Raise HostbenchError, or SystemExit if the reader of the
    output has gone."""
    try:
        # By this name whatever starts it: completion asks by a variable that has the name in it.
        return int(app(list(arguments), prog_name=NAME, standalone_mode=False) or 0)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except typer.TyperException as error:
        raise UsageError(
            f"{error.format_message().replace('Value error, ', '').rstrip('.')}; "
            "see hostbench --help"
        ) from None
