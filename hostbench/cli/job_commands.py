"""What the commands on an orchestrator's jobs do after their options are read."""

import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from pydantic import TypeAdapter, ValidationError

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.cli.options import assignments, check_subject
from hostbench.client.api import Orchestrator
from hostbench.client.connection import Reach, connection
from hostbench.client.failures import Refusal
from hostbench.model.jobs import HOSTS_MOST, JobSpec, JobView, StackState
from hostbench.model.result import ResultDocument
from hostbench.model.service import HostName
from hostbench.model.suite import IdlePolicy, PeerChoice, Suite
from hostbench.plan.suite import SUFFIXES, load_suite
from hostbench.results.ids import is_job_id
from hostbench.results.output import STANDARD_OUTPUT, check_output, write_output
from hostbench.results.sealed import read_document
from hostbench.results.store import CSV, DOCUMENT, LATEST, REPORT

_HOST_NAME: TypeAdapter[str] = TypeAdapter(HostName)


@dataclass(frozen=True)
class SubmitRequest:
    """The options of `hostbench submit`."""

    suite: str | None
    scale: str | None
    workload: str | None
    params: tuple[str, ...]
    hosts: tuple[str, ...]
    priority: int
    trials: int | None
    idle_policy: IdlePolicy | None
    peers: PeerChoice | None


def job_spec(request: SubmitRequest) -> JobSpec:
    """Return the body of POST /jobs. Raise UsageError."""
    check_subject(request.suite, request.workload, request.params, request.scale)
    if request.suite is None and request.workload is None:
        raise UsageError(
            "nothing to measure is named; give a suite, such as quick or ./mine.yaml, or --workload"
        )
    try:
        return JobSpec(
            suite=None if request.suite is None else _suite(request.suite, request.scale),
            scale=request.scale,
            workload=request.workload,
            params=dict(assignments(request.params)),
            hosts=list(request.hosts) or None,
            priority=request.priority,
            trials=request.trials,
            idle_policy=request.idle_policy,
            peers=request.peers,
        )
    except ValidationError as error:
        raise _bad_option(error) from None


def _suite(text: str, scale: str | None) -> str | Suite:
    """Return a name for the orchestrator, or the suite in a local file, which must have this
    scale."""
    if text.endswith(SUFFIXES) or text.startswith((".", "/")):
        suite = load_suite(Path(text))
        suite.scaled(scale)
        return suite
    return text


def _bad_option(error: ValidationError) -> UsageError:
    """Return the error for what no orchestrator accepts, in words of the command line."""
    first = error.errors(include_url=False)[0]
    field, value = first["loc"][0] if first["loc"] else "hosts", shown(first["input"])
    if first["type"] == "too_long" and field == "hosts":
        return UsageError(f"--host is given more than {HOSTS_MOST} times; a job has one or two")
    if field == "hosts":
        if first["type"] == "value_error":
            return UsageError("--host names one host twice; name each once")
        return _no_host_name(value)
    if field == "params":
        name = shown(str(first["loc"][1]))
        return UsageError(
            f"--param {name} is not the name of a parameter; hostbench list workloads, or "
            "docs/workloads.md, lists them"
        )
    if field == "scale":
        return UsageError(
            f"--scale {value} is not the name of a scale; hostbench list suites lists them"
        )
    what = "--workload" if field == "workload" else "suite"
    return UsageError(
        f"{what} {value} is not a name; give 1 to 80 characters, such as cpu.fma, quick"
    )


def _no_host_name(value: str) -> UsageError:
    return UsageError(f"--host {value} is not the name of a host; hostbench hosts lists them")


@dataclass(frozen=True)
class Wanted:
    """The options of `hostbench result`. Raises UsageError for two outputs to one place, or a path
    that cannot be written."""

    as_csv: bool
    as_json: bool
    output: str | None
    report: str | None

    def __post_init__(self) -> None:
        if self.report == STANDARD_OUTPUT and self.output in (None, STANDARD_OUTPUT):
            others = {"--json": self.as_json, "--csv": self.as_csv, "--output": self.output}
            for option, given in others.items():
                if given:
                    raise UsageError(
                        f"--report - and {option} both want standard output; give one a file"
                    )
        if self.output is not None and self.output == self.report != STANDARD_OUTPUT:
            raise UsageError(f"--output and --report both name {self.output}; give each its own")
        name = CSV if self.as_csv else DOCUMENT
        for option, target, example in self._files(name):
            check_output(option, "the file", Path(target), example)

    def _files(self, name: str) -> list[tuple[str, str, str]]:
        named = [("--output", self.output, name), ("--report", self.report, REPORT)]
        return [(o, t, e) for o, t, e in named if t is not None and t != STANDARD_OUTPUT]

    @property
    def in_full(self) -> bool:
        """Whether the document or the CSV is requested unchanged."""
        return self.as_json or self.as_csv or self.output is not None


def fetch(server: Orchestrator, job: str, wanted: Wanted) -> bool:
    """Fetch what is requested; return False if that is only the table. Raise HostbenchError."""
    if wanted.in_full:
        content = server.result_csv(job) if wanted.as_csv else server.result(job)
        _put("--output", wanted.output, content)
    if wanted.report is not None:
        _put("--report", wanted.report, server.report(job))
    return wanted.in_full or wanted.report is not None


def _put(option: str, target: str | None, content: bytes) -> None:
    """Write into the file and print its name, or write to standard output."""
    if target is None or target == STANDARD_OUTPUT:
        sys.stdout.write(content.decode("utf-8", "replace"))
        return
    write_output(option, "the file", Path(target), content)
    typer.echo(target)


def orchestrator(reach: Reach) -> Orchestrator:
    """Return the orchestrator named by options, environment or configuration. Raise
    HostbenchError."""
    return Orchestrator(connection(reach))


def job_id(server: Orchestrator, text: str) -> str:
    """Return the id of a job given by its id, or of the latest. Raise UsageError."""
    if text == LATEST:
        newest = server.jobs(limit=1).jobs
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


def one_host(server: Orchestrator, named: str | None) -> str:
    """Return the named host, or the only one. Raise UsageError."""
    if named is not None:
        try:
            return _HOST_NAME.validate_python(named)
        except ValidationError:
            raise _no_host_name(shown(named)) from None
    names = [host.name for host in server.hosts().hosts]
    if len(names) != 1:
        known = listing(names) if names else "a name that hostbench jobs shows"
        raise UsageError(f"{server.url} has {len(names)} hosts; choose one with --host: {known}")
    return names[0]


def state_filter(text: str | None) -> StackState | None:
    """Return the state called `text`. Raise UsageError."""
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
    """Return the result document of a job. Raise HostbenchError."""
    content = server.result(job)
    remedy = "get it as it is with --json, or use the orchestrator's own version"
    return read_document(content, f"the result of {job}", remedy)


def result_if_any(server: Orchestrator, job: JobView) -> ResultDocument | None:
    """Return the document of an ended job, or None when it ended before it measured anything."""
    try:
        return document(server, job.id)
    except Refusal:
        if job.state is StackState.SUCCEEDED:
            raise
        return None
