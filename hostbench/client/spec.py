"""What `hostbench submit` is asked for, as the body of POST /jobs."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hostbench.errors import UsageError, shown
from hostbench.models.jobs import HOSTS_MOST, JobSpec
from hostbench.models.suite import IdlePolicy, PeerChoice, Suite
from hostbench.optionvalues import assignments, check_subject
from hostbench.suite import SUFFIXES, load_suite


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
    """The body of POST /jobs. Raises UsageError."""
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
    """A name the orchestrator knows, or the suite in a file here, which has this scale."""
    if text.endswith(SUFFIXES) or text.startswith((".", "/")):
        suite = load_suite(Path(text))
        suite.scaled(scale)
        return suite
    return text


def _bad_option(error: ValidationError) -> UsageError:
    """What no orchestrator would take, in words of the command line."""
    first = error.errors(include_url=False)[0]
    field, value = first["loc"][0] if first["loc"] else "hosts", shown(first["input"])
    if first["type"] == "too_long" and field == "hosts":
        return UsageError(f"--host is given more than {HOSTS_MOST} times; a job has one or two")
    if field == "hosts":
        if first["type"] == "value_error":
            return UsageError("--host names one host twice; name each once")
        return UsageError(f"--host {value} is not the name of a host; hostbench hosts lists them")
    if field == "params":
        name = shown(str(first["loc"][1]))
        return UsageError(
            f"--param {name} is not the name of a parameter; hostbench list workloads, or "
            "docs/workloads.md, tells them"
        )
    if field == "scale":
        return UsageError(
            f"--scale {value} is not the name of a scale; hostbench list suites tells them"
        )
    what = "--workload" if field == "workload" else "suite"
    return UsageError(f"{what} {value} is no name; give 1 to 80 characters, such as cpu.fma, quick")
