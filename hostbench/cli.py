"""The command line: run, list, show, report, doctor."""

import errno
import io
import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hostbench import __version__
from hostbench.errors import HostbenchError, ResourceError, UsageError
from hostbench.exitcode import ExitCode, exit_code_table
from hostbench.optionvalues import peer_choice, seconds, whole_number
from hostbench.services import Subsystem

if TYPE_CHECKING:
    from hostbench.models.result import ResultDocument

# Everything that takes time to import is imported by the command that needs it.

JOBS_SHOWN = 20
LIMIT_MOST = 1_000_000
OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT})
EPILOG = "Exit codes:\n\n\b\n" + exit_code_table()

app = typer.Typer(
    name="hostbench",
    help="Measures what this host can really do, and says how far each figure can be trusted.",
    epilog=EPILOG,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class IdlePolicy(StrEnum):
    """What to do on a host that does not become idle."""

    FAIL = "fail"
    FLAG = "flag"
    FORCE = "force"


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


Results = Annotated[
    Path | None,
    typer.Option(
        "--results", help="Results directory. Default: HOSTBENCH_RESULTS, else ./results."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Csv = Annotated[bool, typer.Option("--csv", help="CSV on standard output, base units.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hostbench {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


@app.command(epilog=EPILOG)
def run(
    suite: Annotated[
        str | None,
        typer.Argument(help="A suite by name (hostbench list suites) or path. Default: quick."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Measure one workload instead, such as cpu.fma.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(help="A parameter of it, as name=value; all stands for every choice."),
    ] = None,
    trials: Annotated[
        str | None, typer.Option(metavar="N", help="Exactly so many trials a case.")
    ] = None,
    idle_policy: Annotated[
        IdlePolicy | None,
        typer.Option(help="When the host is not idle: end, measure and say so, or do not ask."),
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|NAME,NAME",
            help="Tools measured in turn with ours: likwid-bench, stress-ng, sysbench, hpcc. "
            "Default: as the suite says; one workload: none.",
        ),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with an interrupted job, by its id or latest.")
    ] = None,
    wait: Annotated[
        str,
        typer.Option(metavar="SECONDS", help="How long to wait for another run on this host."),
    ] = "0",
    results: Results = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Measure a suite, or one workload, on this host."""
    from hostbench.commands import TRIALS_MOST, RunRequest, run_job

    _refuse_both(as_json, as_csv)
    request = RunRequest(
        suite=suite,
        workload=workload,
        params=tuple(param or ()),
        trials=None if trials is None else whole_number("--trials", trials, 1, TRIALS_MOST),
        idle_policy=idle_policy.value if idle_policy else None,
        peers=None if peers is None else peer_choice(peers),
        resume=resume,
        wait_s=seconds("--wait", wait),
        results=results,
    )
    document, code = run_job(request)
    _print_document(document, as_json=as_json, as_csv=as_csv)
    raise typer.Exit(code)


@app.command("list")
def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")] = Listed.JOBS,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="So many jobs, newest first; 0: all. Default: 20, JSON all."
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
    from hostbench.listing import job_summaries

    most = 0 if as_json else JOBS_SHOWN
    if limit is not None:
        most = whole_number("--limit", limit, 0, LIMIT_MOST)
    summaries, older = job_summaries(results, most)
    if as_json:
        _print_json({"jobs": [summary.model_dump(mode="json") for summary in summaries]})
        return
    from hostbench.rendering import show_jobs

    show_jobs(summaries, older, sys.stdout)


def _list_suites(*, as_json: bool) -> None:
    from hostbench.listing import suites

    found = suites()
    if as_json:
        _print_json({"suites": found})
        return
    for suite in found:
        typer.echo(f"{suite['name']}: {suite['error'] or suite['description']}")


def _list_workloads(*, as_json: bool) -> None:
    from hostbench.listing import tables

    found = tables()
    if as_json:
        _print_json({"programs": [table.model_dump(mode="json") for table in found]})
        return
    for table in found:
        for workload in table.workloads:
            unsupported = f" Not here: {workload.unsupported}." if workload.unsupported else ""
            typer.echo(f"{table.subsystem}.{workload.name}: {workload.description}{unsupported}")


@app.command(epilog=EPILOG)
def show(
    job: Annotated[str, typer.Argument(help="A job id that hostbench list shows, or latest.")],
    samples: Annotated[
        bool, typer.Option("--samples", help="With --csv: one row a sample, not a metric.")
    ] = False,
    results: Results = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show what a job measured."""
    from hostbench.results import ResultsStore, results_directory

    _refuse_both(as_json, as_csv)
    if samples and not as_csv:
        raise UsageError("--samples needs --csv; --json holds the samples anyway")
    document = ResultsStore(results_directory(results)).job(job).load()
    if samples:
        from hostbench.csvtable import sample_table

        sys.stdout.write(sample_table(document))
        return
    _print_document(document, as_json=as_json, as_csv=as_csv)


@app.command()
def doctor(
    subsystem: Annotated[
        Subsystem | None, typer.Option(help="Only what touches the figures of this one.")
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Say what on this host disturbs or limits measurements. Changes nothing."""
    from hostbench.doctor.examination import examine
    from hostbench.results import results_directory

    report = examine(results_directory(results), subsystem)
    if as_json:
        typer.echo(report.model_dump_json(indent=1, by_alias=True))
        return
    from hostbench.doctor.rendering import show_report

    show_report(report, sys.stdout)


@app.command(epilog=EPILOG)
def report(
    job: Annotated[str, typer.Argument(help="A job id that hostbench list shows, or latest.")],
    form: Annotated[
        ReportFormat,
        typer.Option("--format", help="A page, Markdown for a ticket, or CSV as show prints it."),
    ] = ReportFormat.HTML,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where to, - for standard output. Default: report.html in the job's directory; "
            "Markdown and CSV go to standard output.",
        ),
    ] = None,
    results: Results = None,
) -> None:
    """Write a job's report and print where it is."""
    from hostbench.report.output import Format, write_report
    from hostbench.results import ResultsStore, results_directory

    found = ResultsStore(results_directory(results)).job(job)
    written = write_report(found, Format(form), output)
    if written is not None:
        typer.echo(written)


def _refuse_both(as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise UsageError("--json and --csv are both given; leave out one")


def _print_json(content: object) -> None:
    typer.echo(json.dumps(content, indent=1))


def _print_document(document: "ResultDocument", *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        typer.echo(document.model_dump_json(indent=1))
    elif as_csv:
        from hostbench.csvtable import case_table

        sys.stdout.write(case_table(document))
    else:
        from hostbench.rendering import show_result

        show_result(document, sys.stdout)


def run_command_line(arguments: Sequence[str]) -> int:
    """Runs one command line; returns its exit code. Expected errors are one line on stderr."""
    # A character that the terminal's encoding lacks must not cost the result.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_went_away()
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        _to_nowhere(sys.stdout)
        return _complain(
            ResourceError(f"cannot write the output: {error.strerror}; free space, or pipe it on")
        )


def _invoke(arguments: Sequence[str]) -> int:
    try:
        code = app(list(arguments), standalone_mode=False)
        return int(code or 0)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit:
        # All that Typer ends the process for by itself is a broken pipe.
        return _reader_went_away()
    except typer.TyperException as error:
        failure: HostbenchError = UsageError(
            f"{error.format_message().replace('Value error, ', '').rstrip('.')}; "
            "see hostbench --help"
        )
    except HostbenchError as error:
        failure = error
    if "--json" in arguments:
        error_object = {"exit_code": int(failure.exit_code), "message": failure.message}
        _print_json({"error": error_object})
    return _complain(failure)


def _complain(error: HostbenchError) -> int:
    try:
        typer.echo(f"hostbench: {error.message}", err=True)
    except OSError:
        _to_nowhere(sys.stderr)
    return error.exit_code


def _reader_went_away() -> int:
    """`hostbench … | head` ends quietly, as programs that die of SIGPIPE do."""
    _to_nowhere(sys.stdout)
    return ExitCode.BROKEN_PIPE


def _to_nowhere(stream: TextIO) -> None:
    """So that the interpreter does not stumble over the same stream again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
