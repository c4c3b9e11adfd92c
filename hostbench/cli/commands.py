"""What the commands do after their options are read."""

import sys
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.cli.options import assignments, check_subject
from hostbench.cli.progress import progress_for
from hostbench.model.result import ResultDocument
from hostbench.model.suite import IdlePolicy, PeerChoice, Suite
from hostbench.page.output import report_after_run
from hostbench.plan.estimate import Plan
from hostbench.plan.suite import Changes, ad_hoc_suite, changed, find_suite, load_suite
from hostbench.remote.far_options import FarOptions
from hostbench.results.document import job_exit_code
from hostbench.results.ids import results_directory
from hostbench.results.store import ResultsStore
from hostbench.run.job import JobRunner

DEFAULT_SUITE = "quick"


@dataclass(frozen=True)
class RunRequest:
    """The options of `hostbench run`; `hostbench plan` has some of them."""

    suite: str | None
    scale: str | None
    workload: str | None
    params: tuple[str, ...]
    trials: int | None
    peers: PeerChoice | None
    wait_s: float
    idle_policy: IdlePolicy | None = None
    resume: str | None = None
    results: Path | None = None
    far: FarOptions | None = None
    report: bool = True


def run_job(request: RunRequest) -> tuple[ResultDocument, ExitCode]:
    """Run or resume a job; return its document and exit code. Raise HostbenchError."""
    interrupt = Interrupt()
    interrupt.install()
    _check_request(request)
    store = ResultsStore(results_directory(request.results))
    with progress_for(sys.stderr) as progress:
        runner = JobRunner(store, interrupt, progress, request.wait_s, request.far)
        if request.resume is not None:
            document = runner.resume(request.resume)
        else:
            document = runner.run(requested_suite(request))
        job = store.job(document.job.id)
        if request.report:
            progress.say(report_after_run(job))
        else:
            job.report.unlink(missing_ok=True)  # the report from before the resumption
    return document, job_exit_code(document)


def plan_job(request: RunRequest) -> Plan:
    """Return what `run_job` would measure, with its time. Raise HostbenchError."""
    interrupt = Interrupt()
    interrupt.install()
    _check_request(request)
    store = ResultsStore(results_directory(request.results))
    with progress_for(sys.stderr) as progress:
        runner = JobRunner(store, interrupt, progress, request.wait_s, request.far)
        return runner.plan(requested_suite(request))


def _check_request(request: RunRequest) -> None:
    if request.resume is not None:
        others = {
            "a suite": request.suite,
            "--scale": request.scale,
            "--workload": request.workload,
            "--param": request.params,
            "--trials": request.trials,
            "--idle-policy": request.idle_policy,
            "--peers": request.peers,
        }
        for name, value in others.items():
            if value:
                raise UsageError(
                    f"--resume continues with the settings of the job; leave out {name}"
                )
    check_subject(request.suite, request.workload, request.params, request.scale)


def requested_suite(request: RunRequest) -> Suite:
    """Return the requested suite with the changes of the options: from its file, at one of its
    scales, or made for one workload. Raise UsageError."""
    if request.workload is not None:
        suite = ad_hoc_suite(request.workload, assignments(request.params))
    else:
        named = DEFAULT_SUITE if request.suite is None else request.suite
        suite = load_suite(find_suite(named)).scaled(request.scale)
    return changed(suite, Changes(request.trials, request.idle_policy, request.peers))
