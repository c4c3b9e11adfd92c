"""A suite as somebody asks for it: by workload, or a suite with some of it changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from hostbench.models.events import ParamValue
from hostbench.models.suite import ALL, IdlePolicy, IdleRules, PeerChoice, Suite, SuiteCase
from hostbench.plan import AD_HOC, split_workload

TRIALS_MOST = 1000
AD_HOC_IDLE = IdleRules(policy="flag", timeout_s=10.0, per="suite")


@dataclass(frozen=True)
class Changes:
    """What is asked for otherwise than the suite says; None: as it says."""

    trials: int | None = None
    idle_policy: IdlePolicy | None = None
    peers: PeerChoice | None = None


def ad_hoc_suite(workload: str, given: Mapping[str, ParamValue]) -> Suite:
    """A suite of one workload; `all` stands for every choice of a parameter. Raises UsageError."""
    split_workload(workload)
    params: dict[str, ParamValue] = {k: v for k, v in given.items() if v != ALL}
    grid: dict[str, list[ParamValue]] = {k: [v] for k, v in given.items() if v == ALL}
    return Suite(
        name=AD_HOC,
        idle=AD_HOC_IDLE,
        cases=(SuiteCase(workload=workload, params=params, grid=dict(grid)),),
    )


def changed(suite: Suite, changes: Changes) -> Suite:
    """The suite with these changes."""
    if changes.idle_policy is not None:
        idle = suite.idle.model_copy(update={"policy": changes.idle_policy})
        suite = suite.model_copy(update={"idle": idle})
    if changes.trials is not None:
        suite = _with_trials(suite, changes.trials)
    if changes.peers is not None:
        # Of one workload the tools named must fit it; of a suite, whatever fits each of its cases.
        named = changes.peers if suite.name == AD_HOC else None
        cases = tuple(case.model_copy(update={"peers": named}) for case in suite.cases)
        suite = suite.model_copy(update={"peers": changes.peers, "cases": cases})
    return suite


def _with_trials(suite: Suite, trials: int) -> Suite:
    exactly = {"min_trials": trials, "max_trials": trials}
    cases = tuple(
        case.model_copy(update={"repeats": case.repeats.model_copy(update=exactly)})
        for case in suite.cases
    )
    return suite.model_copy(update={"cases": cases})
