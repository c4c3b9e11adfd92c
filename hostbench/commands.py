"""What the commands do, once their options are read."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostbench.document import job_exit_code
from hostbench.errors import UsageError, shown
from hostbench.exitcode import ExitCode
from hostbench.interrupt import Interrupt
from hostbench.job import JobRunner
from hostbench.models.events import ParamValue
from hostbench.models.result import ResultDocument
from hostbench.models.suite import ALL, IdlePolicy, IdleRules, PeerChoice, Suite, SuiteCase
from hostbench.plan import split_workload
from hostbench.progress import progress_for
from hostbench.report.output import report_after_run
from hostbench.results import ResultsStore, results_directory
from hostbench.suite import find_suite, load_suite

DEFAULT_SUITE = "quick"
AD_HOC = "ad-hoc"
TRIALS_MOST = 1000
AD_HOC_IDLE = IdleRules(policy="flag", timeout_s=10.0, per="suite")


@dataclass(frozen=True)
class RunRequest:
    """The options of `hostbench run`."""

    suite: str | None
    workload: str | None
    params: tuple[str, ...]
    trials: int | None
    idle_policy: IdlePolicy | None
    peers: PeerChoice | None
    resume: str | None
    wait_s: float
    results: Path | None


def run_job(request: RunRequest) -> tuple[ResultDocument, ExitCode]:
    """Runs or resumes a job; its document and exit code. Raises HostbenchError."""
    interrupt = Interrupt()
    interrupt.install()
    _check_request(request)
    store = ResultsStore(results_directory(request.results))
    with progress_for(sys.stderr) as progress:
        runner = JobRunner(store, interrupt, progress, request.wait_s)
        if request.resume is not None:
            document = runner.resume(request.resume)
        else:
            document = runner.run(requested_suite(request))
        progress.say(report_after_run(store.job(document.job.id)))
    return document, job_exit_code(document)


def _check_request(request: RunRequest) -> None:
    if request.resume is not None:
        others = {
            "a suite": request.suite,
            "--workload": request.workload,
            "--param": request.params,
            "--trials": request.trials,
            "--idle-policy": request.idle_policy,
            "--peers": request.peers,
        }
        for name, value in others.items():
            if value:
                raise UsageError(
                    f"--resume goes on with what the job was asked for; leave out {name}"
                )
    if request.workload is not None and request.suite is not None:
        raise UsageError(
            f"suite {shown(request.suite)} and --workload {shown(request.workload)} are both "
            "given; leave out one"
        )
    if request.params and request.workload is None:
        raise UsageError(
            f"--param {shown(request.params[0])} needs --workload; "
            "the parameters of a suite stand in its file"
        )


def requested_suite(request: RunRequest) -> Suite:
    """The suite as asked for: from its file or made up for one workload, with what the options
    change. Raises UsageError."""
    if request.workload is not None:
        suite = _ad_hoc_suite(request.workload, request.params)
    else:
        suite = load_suite(find_suite(DEFAULT_SUITE if request.suite is None else request.suite))
    if request.idle_policy is not None:
        idle = suite.idle.model_copy(update={"policy": request.idle_policy})
        suite = suite.model_copy(update={"idle": idle})
    if request.trials is not None:
        suite = _with_trials(suite, request.trials)
    if request.peers is not None:
        # Of one workload the tools named must fit it; of a suite, whatever fits each of its cases.
        named = request.peers if request.workload is not None else None
        cases = tuple(case.model_copy(update={"peers": named}) for case in suite.cases)
        suite = suite.model_copy(update={"peers": request.peers, "cases": cases})
    return suite


def _ad_hoc_suite(workload: str, assignments: tuple[str, ...]) -> Suite:
    split_workload(workload)
    given = _assigned(assignments)
    params: dict[str, ParamValue] = {k: v for k, v in given.items() if v != ALL}
    grid: dict[str, list[ParamValue]] = {k: [v] for k, v in given.items() if v == ALL}
    return Suite(
        name=AD_HOC,
        idle=AD_HOC_IDLE,
        cases=(SuiteCase(workload=workload, params=params, grid=dict(grid)),),
    )


def _assigned(assignments: tuple[str, ...]) -> Mapping[str, str]:
    given: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not value:
            raise UsageError(
                f"--param {shown(assignment)} is not name=value; write it like threads=2"
            )
        if name in given:
            raise UsageError(f"--param {name} is given twice; give it once")
        given[name] = value
    return given


def _with_trials(suite: Suite, trials: int) -> Suite:
    exactly = {"min_trials": trials, "max_trials": trials}
    cases = tuple(
        case.model_copy(update={"repeats": case.repeats.model_copy(update=exactly)})
        for case in suite.cases
    )
    return suite.model_copy(update={"cases": cases})
