"""The time of cases that a plan cannot estimate: those of a fixed work, and teams' problems.

How long a fixed work takes depends on the host. So each such case runs for a moment before anything
is measured, and only its time is kept.
"""

import contextlib
import dataclasses
import time
from collections.abc import Mapping

from hostbench.host.scratch import takes_scratch
from hostbench.model.events import EndEvent, ParamValue
from hostbench.model.peer import TrialEvent
from hostbench.model.result import OWN_TOOL, PlannedCase
from hostbench.model.table import Table, Workload
from hostbench.model.trial import Transport, Trial, TrialFailed, trial_name
from hostbench.plan.estimate import (
    SETUP_TIMEOUT_S,
    TRIAL_OVERHEAD_S,
    CaseTime,
    Plan,
    trial_timeout_s,
)
from hostbench.plan.workloads import find_workload, split_workload
from hostbench.programs.subsystem import peers_of

# Long enough to find a rate within some percent, short beside any work that is worth fixing.
MOMENT_S = 0.3
# A trial whose set-up takes longer than this is tried a second time.
SETUP_LONG_S = 1.0
# The programs' metrics for the work done.
WORK_DONE = ("work_operations", "work_bytes")


def untimed(plan: Plan, tables: Mapping[str, Table]) -> list[PlannedCase]:
    """Return the cases that must run for a moment.

    If there is one of a fixed work, all teams run, too: a team always takes the time of a whole
    problem, whatever its duration.
    """
    unknown = [case for case in plan.cases if case.skip is None and case.trial_time_s is None]
    if not unknown:
        return []
    return [
        case
        for case in plan.cases
        if case.skip is None
        and (case.trial_time_s is None or find_workload(tables, case.workload).kind == "team")
    ]


def timed(plan: Plan, tables: Mapping[str, Table], transport: Transport) -> Plan:
    """Return the plan with the time of every case that could be tried.

    A case that fails is measured all the same, and then reports its reason. Raise what the
    transport raises except TrialFailed, such as Interrupted.
    """
    times = dict(plan.times)
    for case in untimed(plan, tables):
        found = _case_time(case, find_workload(tables, case.workload), transport)
        if found is not None:
            times[case.case] = found
    return dataclasses.replace(plan, times=times)


def _case_time(case: PlannedCase, workload: Workload, transport: Transport) -> CaseTime | None:
    end, beside_s = _tried(case, workload, transport)
    if beside_s > SETUP_LONG_S:
        # The first use of memory is slow, above all in guests, but only once.
        end, beside_s = _tried(case, workload, transport)
    if end is None or end.elapsed_s <= 0:
        return None
    if takes_scratch(workload):
        # The first such trial fills the file for all.
        beside_s = float(case.params.get("warmup_s") or 0.0) + TRIAL_OVERHEAD_S
    elapsed_s = _elapsed_s(case, workload, end)
    if elapsed_s is None:
        return None
    subsystem, name = split_workload(case.workload)
    peers = peers_of(subsystem, name, case.params)
    peers_s = sum(peer.trial_time_s(elapsed_s) for peer in peers if peer.tool in case.peers)
    return CaseTime(trial_s=beside_s + elapsed_s, peers_s=peers_s)


def _tried(
    case: PlannedCase, workload: Workload, transport: Transport
) -> tuple[EndEvent | None, float]:
    """Run one short trial; return its end, None if it has no figure, and the seconds outside its
    timed region."""
    began_s = time.monotonic()
    subsystem, name = split_workload(case.workload)
    trial = Trial(
        tool=OWN_TOOL,
        subsystem=subsystem,
        workload=name,
        params=_for_a_moment(case, workload),
        timeout_s=trial_timeout_s(MOMENT_S) + (SETUP_TIMEOUT_S if workload.setup_s else 0.0),
        id=f"{trial_name(case, 0)}-moment",
    )
    events: list[TrialEvent] = []
    with (
        contextlib.closing(transport.run(trial)) as stream,
        contextlib.suppress(TrialFailed),
    ):
        events.extend(stream)
    took_s = time.monotonic() - began_s
    end = next((event for event in events if isinstance(event, EndEvent)), None)
    return end, took_s - (end.elapsed_s if end else 0.0)


def _for_a_moment(case: PlannedCase, workload: Workload) -> dict[str, ParamValue]:
    """Return the call of the case with a short duration in place of its work."""
    left_out = {param.name for param in workload.params if param.ends_trial}
    call = {name: value for name, value in case.call.items() if name not in left_out}
    return {**call, "duration_s": MOMENT_S}


def _elapsed_s(case: PlannedCase, workload: Workload, end: EndEvent) -> float | None:
    """Return the seconds of a trial's timed region: the whole work at the measured rate, at most
    the case's own duration where it has one."""
    most_s = case.params.get("duration_s")
    fixing = (param.name for param in workload.params if param.ends_trial)
    work = next((case.params[name] for name in fixing if name in case.params), None)
    if not isinstance(work, int | float):
        # A team starts problems until its time is over, and one problem may take longer than that.
        return max(end.elapsed_s, float(most_s or 0.0))
    done = next((end.metrics[name] for name in WORK_DONE if end.metrics.get(name)), None)
    if not done:
        return None
    whole_s = float(work) * end.elapsed_s / done
    return min(whole_s, float(most_s)) if isinstance(most_s, int | float) else whole_s
