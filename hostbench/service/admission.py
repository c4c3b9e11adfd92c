"""Whether this host can run a requested trial: the checks of the fields, each by name."""

import os
from collections.abc import Collection, Mapping
from ipaddress import ip_address

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.events import ParamValue
from hostbench.model.result import OWN_TOOL
from hostbench.model.service import (
    SESSION_S_MOST,
    BesideRequest,
    Refusal,
    SessionPlace,
    TrialRequest,
)
from hostbench.model.table import Workload
from hostbench.model.trial import Trial
from hostbench.plan.workloads import LOOPBACK, TARGET
from hostbench.programs.params import (
    check_params,
    check_value,
    cpu_ranges,
    excluding,
    known_param,
)
from hostbench.programs.program import Program
from hostbench.programs.subsystem import peers_of, tools_of
from hostbench.run.local import takes_session
from hostbench.web.problem import Problem


def admitted(request: TrialRequest, program: Program) -> Trial:
    """Return the trial. Raise Problem, which names the first wrong field."""
    subsystem = program.table.subsystem
    workload = known_workload(request.workload, program)
    check_program(request.sha256, program)
    own = request.tool == OWN_TOOL
    if own and request.beside is not None:
        raise invalid("beside", "beside stands in a peer's trial only; remove it, or name a tool")
    _check_session(request, workload)
    known = {
        "params": _own_params(request, workload) if own else _peer_params(request, workload),
        "beside": None if own else _peer_beside(request, subsystem),
        "subsystem": subsystem,
    }
    return Trial(**(dict(request) | known))


def _check_session(request: TrialRequest, workload: Workload) -> None:
    session = request.session
    if session is None:
        return
    if not takes_session(workload):
        raise invalid("session", f"{workload.name} has no far end; remove session")
    if request.tool == OWN_TOOL and session.token is None:
        raise invalid("session.token", "is missing; give the token of the session")
    if request.tool != OWN_TOOL:
        _check_peer_session(request, session)
    if request.params.get(TARGET) == LOOPBACK:
        raise invalid(
            "session",
            "target loopback has its far end on this host; give target auto or far_host, or remove "
            "session",
        )


def _check_peer_session(request: TrialRequest, session: SessionPlace) -> None:
    """Check the session of a peer. A tool checks no token, so the limits of its address and its
    duration are narrower."""
    if ip_address(session.address).is_link_local:
        raise invalid(
            "session.address",
            f"{session.address} is known on one link alone, where {request.tool} may meet anybody; "
            "give an address that the far host has beyond it",
        )
    if request.beside is not None and request.beside.elapsed_s > SESSION_S_MOST:
        raise invalid(
            "beside.elapsed_s",
            f"{request.beside.elapsed_s:g} s is longer than any session lasts; "
            f"give up to {SESSION_S_MOST:g}",
        )


def check_program(sha256: str | None, program: Program) -> None:
    """Raise Problem when it is not the program that the caller knows."""
    if sha256 is not None and sha256 != program.sha256:
        raise Problem(
            409,
            Refusal.PROGRAM_CHANGED,
            f"{program.table.program} here is another build than the one of the request; "
            "start the job again",
            sha256=program.sha256,
        )


def invalid(field: str, detail: str) -> Problem:
    """Return the refusal that names a field of the body."""
    return Problem(422, "invalid", detail, field=f"body.{field}")


def known_workload(name: str, program: Program) -> Workload:
    """Return the workload of that name. Raise Problem."""
    workload = program.table.workload(name)
    if workload is None:
        names = [one.name for one in program.table.workloads]
        raise invalid(
            "workload",
            f"there is no workload {shown(name)}; {did_you_mean(name, names)}give {listing(names)}",
        )
    return workload


def _own_params(request: TrialRequest, workload: Workload) -> dict[str, ParamValue]:
    allowed_cpus = os.sched_getaffinity(0)
    params: dict[str, ParamValue] = {}
    for name, value in request.params.items():
        try:
            params |= check_params(workload, {name: value}, allowed_cpus)
        except UsageError as error:
            raise invalid(f"params.{name}", error.message) from None
    for param in excluding(workload, params):
        try:
            check_params(workload, params, allowed_cpus)
        except UsageError as error:
            raise invalid(f"params.{param.name}", error.message) from None
    return params


def _peer_params(request: TrialRequest, workload: Workload) -> dict[str, ParamValue]:
    return checked_peer_params(request.params, workload, os.sched_getaffinity(0))


def checked_peer_params(
    params: Mapping[str, ParamValue], workload: Workload, allowed_cpus: Collection[int]
) -> dict[str, ParamValue]:
    """Return the parameters that a trial of ours resolved: its numbers may be below the minimum of
    a request."""
    for name, value in params.items():
        try:
            param = known_param(workload, name)
            small = not isinstance(value, str) and (param.max is None or value <= param.max)
            if not (small and param.type in ("count", "number")):
                check_value(param, value, allowed_cpus)
        except UsageError as error:
            raise invalid(f"params.{name}", error.message) from None
    return dict(params)


def check_peer(tool: str, subsystem: str, workload: str, params: Mapping[str, ParamValue]) -> None:
    """Raise Problem for a tool that cannot run beside this trial."""
    tools = tools_of(subsystem)
    if tool not in tools:
        raise invalid(
            "tool",
            f"there is no tool {shown(tool)}; {did_you_mean(tool, tools)}"
            f"give {listing([OWN_TOOL, *tools])}",
        )
    fitting = [peer.tool for peer in peers_of(subsystem, workload, params)]
    if tool not in fitting:
        raise invalid(
            "tool",
            f"{tool} does not stand beside {subsystem}.{workload} with these params; "
            f"give {listing([OWN_TOOL, *fitting])}",
        )


def _peer_beside(request: TrialRequest, subsystem: str) -> BesideRequest:
    check_peer(request.tool, subsystem, request.workload, request.params)
    if request.beside is None:
        raise invalid(
            "beside", "a peer's trial needs beside; give cpus, rate and elapsed_s of your trial"
        )
    return _beside(request.beside, here=request.session is None)


def _beside(beside: BesideRequest, *, here: bool) -> BesideRequest:
    """Return the checked trial that a peer runs beside. `here`: its far end was on this host."""
    allowed = os.sched_getaffinity(0)
    outside = sorted(set(beside.cpus) - allowed)
    if outside:
        raise invalid(
            "beside.cpus",
            f"beside has CPU {outside[0]}, which this service may not use; "
            f"give CPUs out of {cpu_ranges(allowed)}",
        )
    if not here:
        return beside
    # If the peer's server runs here, it only gets CPUs that it may use.
    far_cpus = tuple(cpu for cpu in beside.far_cpus if cpu in allowed)
    return beside.model_copy(update={"far_cpus": far_cpus})
