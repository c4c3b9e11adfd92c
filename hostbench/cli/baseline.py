"""`hostbench baseline`: what hosts of one model do, as a file. The command imports what takes time
to import."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.cli.options import EPILOG, Json, Results, own_epilog, print_json
from hostbench.cli.stack import here_or_there, refuse_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostbench.client.api import Orchestrator
    from hostbench.model.baseline import Baseline, HostCheck, MeasuredJob

baseline = typer.Typer(
    name="baseline",
    help="Make, merge and check baselines: JSON files with the figures of hosts of one model.",
    rich_markup_mode=None,
)

JOBS = "Jobs: an id, latest, a pattern such as '2026*-quick-*', host=NAME, a time such as 3d.., a "
JOBS += "result.json, or a directory."
EXAMPLE = "xeon-8488c.json"
WHAT = "the baseline"

CODES = own_epilog(
    {
        ExitCode.OK: "as expected",
        ExitCode.WORSE: "low",
        ExitCode.UNDECIDED: "suspect, or too few hosts are known",
    },
    ExitCode.UNREACHABLE,
)

Output = Annotated[
    str, typer.Option("--output", metavar="FILE", help="Output file; - for standard output.")
]


@baseline.command(epilog=EPILOG)
def make(
    jobs: Annotated[list[str], typer.Argument(metavar="JOBS...", help=JOBS)],
    output: Output,
    results: Results = None,
) -> None:
    """Make a baseline from jobs of hosts of one model."""
    from hostbench.decisions.baseline import made_of

    _write(made_of(list(_measured(jobs, results))), output)


@baseline.command(epilog=EPILOG)
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Baselines.")],
    output: Output,
) -> None:
    """Merge several baselines of one model into one, without duplicate hosts."""
    from hostbench.decisions.baseline import merged
    from hostbench.decisions.baseline_files import read_all

    _write(merged(list(read_all(files))), output)


@baseline.command(epilog=CODES)
@here_or_there
def check(
    server: "Orchestrator | None",
    job: Annotated[str, typer.Argument(help=f"Of one host. {JOBS}")],
    baseline_file: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="The baseline to check against. Default: all "
            "fitting ones that hostbench baseline list "
            "shows.",
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Check whether a host performs like other hosts of its model."""
    from hostbench.decisions.host_words import check_sentences

    if server is not None:
        from hostbench.cli.job_commands import job_id

        refuse_here(baseline=baseline_file, results=results)
        found = server.baseline_check(job_id(server, job))
    else:
        found = _checked(list(_measured([job], results)), baseline_file)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        for sentence in check_sentences(found):
            typer.echo(sentence)
        _show_limits(found)
    raise typer.Exit(_exit_code(found))


@baseline.command(epilog=EPILOG)
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A baseline.")],
    as_json: Json = False,
) -> None:
    """Show what a baseline expects of a host."""
    from hostbench.decisions.baseline_files import read_baseline

    found = read_baseline(file)
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
        return
    from hostbench.cli.render_baseline import show_baseline

    show_baseline(found, str(file), sys.stdout)


@baseline.command("list", epilog=EPILOG)
@here_or_there
def list_(server: "Orchestrator | None", as_json: Json = False) -> None:
    """List the baselines that checks use, and the folders that hostbench searches for them."""
    from hostbench.base.units import plural
    from hostbench.decisions.baseline_files import known_baselines
    from hostbench.decisions.host_words import baseline_words
    from hostbench.model.baseline import HOSTS_LEAST

    few_hosts = f"; below {HOSTS_LEAST} hosts limits are the reference"
    found = known_baselines(os.environ) if server is None else server.baselines()
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for one in found.baselines:
        few = "" if one.key is None or one.hosts >= HOSTS_LEAST else few_hosts
        typer.echo(f"{baseline_words(one)}{few}")
    typer.echo(f"{plural(len(found.baselines), 'baseline')} in {', '.join(found.folders)}")


@baseline.command(epilog=EPILOG)
def export(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Baselines of one model")],
    anonymous: Annotated[
        bool,
        typer.Option("--anonymous", help="Hash each host once more, with a secret of your own."),
    ] = False,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="File to write after showing its content.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
) -> None:
    """Show a baseline in the form for sharing, then write it.

    The file has figures, limits, digests of documents, and facts such as kernel and microcode, but
    no names, addresses or serial numbers.
    """
    from hostbench.decisions.baseline import anonymous as made_anonymous
    from hostbench.decisions.baseline import merged
    from hostbench.decisions.baseline_files import content_of, read_all, user_salt

    if not anonymous:
        raise UsageError(
            "export needs --anonymous; to hand on a baseline with the hashes of its machines, copy "
            "the file"
        )
    if yes and output is None:
        raise UsageError("--yes needs a file to write; give --output FILE")
    found = made_anonymous(merged(list(read_all(files))), user_salt(os.environ))
    typer.echo(content_of(found).decode(), nl=False)
    if output is None:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{output} was not written: its content is shown above; add --yes to write it "
                "without a question"
            )
        typer.confirm(f"Write this to {output}?", abort=True, err=True)
    _write(found, output)


def _measured(jobs: list[str], results: Path | None) -> "Iterator[MeasuredJob]":
    from hostbench.decisions.baseline import measured_job
    from hostbench.decisions.documents import documents_of
    from hostbench.results.ids import results_directory

    for document in documents_of(jobs, results_directory(results)):
        yield measured_job(document)


def _checked(jobs: "list[MeasuredJob]", file: Path | None) -> "HostCheck":
    from hostbench.decisions.baseline import not_this_model
    from hostbench.decisions.baseline_files import checked_jobs, read_baseline
    from hostbench.decisions.hostcheck import check_host

    jobs.sort(key=lambda job: (job.created_unix_s, job.job))
    other = next((job for job in jobs if job.machine != jobs[0].machine), None)
    if other is not None:
        raise UsageError(
            f"jobs {jobs[0].job} and {other.job} are of two hosts; check them one by one"
        )
    last = jobs[-1]
    if file is not None:
        given = read_baseline(file)
        if given.key != last.key:
            raise not_this_model(last.key, given.key, str(file))
        return check_host(jobs, given)
    return checked_jobs(jobs, os.environ)


def _show_limits(found: "HostCheck") -> None:
    """Print headline figures with their limits if there are no other hosts to compare with."""
    from hostbench.decisions.host_words import figure_words

    alone = [one for one in found.headlines if one.p is None]
    for one in alone:
        typer.echo(f"  {figure_words(one)}")


def _exit_code(found: "HostCheck") -> ExitCode:
    from hostbench.model.baseline import HostWord

    return {HostWord.LOW: ExitCode.WORSE, HostWord.AS_EXPECTED: ExitCode.OK}.get(
        found.word, ExitCode.UNDECIDED
    )


def _write(found: "Baseline", output: str) -> None:
    from hostbench.decisions.baseline import described
    from hostbench.decisions.baseline_files import content_of
    from hostbench.decisions.host_words import baseline_words
    from hostbench.model.baseline import HOSTS_LEAST
    from hostbench.results.output import STANDARD_OUTPUT, check_output, write_output

    content = content_of(found)
    if output == STANDARD_OUTPUT:
        sys.stdout.write(content.decode())
        return
    target = Path(output)
    check_output("--output", WHAT, target, EXAMPLE)
    write_output("--output", WHAT, target, content)
    typer.echo(baseline_words(described(found, output)), err=True)
    if len(found.hosts) < HOSTS_LEAST:
        typer.echo(
            f"Below {HOSTS_LEAST} hosts nothing is known of how hosts differ: checks use the limit "
            "until then.",
            err=True,
        )
