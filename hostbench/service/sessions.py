"""Whether a session that is asked for is one that this host can open, and where it would be."""

from hostbench.base.errors import UsageError, listing, shown
from hostbench.host.route import family_of, interface_towards, is_own_address, source_address
from hostbench.model.result import OWN_TOOL
from hostbench.model.service import Refusal, RouteAnswer, SessionRequest
from hostbench.programs.program import Program
from hostbench.programs.subsystem import tools_of
from hostbench.service.admission import (
    check_fence,
    check_peer,
    check_program,
    checked_peer_params,
    invalid,
    known_workload,
)
from hostbench.service.farend import FarEndWork
from hostbench.service.toolserver import ToolServerWork
from hostbench.service.trial import Work
from hostbench.web.problem import Problem

# As many as a list of a program may name: CPULIST_MAX of harness/cpulist.h.
CPUS_MOST = 8192


def admitted_session(request: SessionRequest, program: Program, net_address: str | None) -> Work:
    """The session. Raises Problem naming the first field that is wrong. `net_address`: see
    Settings."""
    check_fence(request.fence)
    bind = _bind(request.allowed_address, net_address)
    if request.tool == OWN_TOOL:
        check_program(request.sha256, program)
        return FarEndWork(program, request, bind)
    _check_peer(request, program)
    return ToolServerWork(request, program.table.subsystem, bind)


def _check_peer(request: SessionRequest, program: Program) -> None:
    """A tool's server stands beside a trial of ours as its client does."""
    subsystem = program.table.subsystem
    tools = tools_of(subsystem)
    if request.tool not in tools:
        raise invalid(
            "tool", f"there is no tool {shown(request.tool)}; give {listing([OWN_TOOL, *tools])}"
        )
    if request.workload is None:
        raise invalid("workload", "is missing; give the workload of the peer's trial")
    workload = known_workload(request.workload, program)
    # Its CPUs are the near host's.
    checked_peer_params(request.params, workload, range(CPUS_MOST))
    check_peer(request.tool, subsystem, workload.name, request.params)


def _bind(allowed: str, net_address: str | None) -> str:
    """The address of this host that the near end reaches."""
    try:
        source = source_address(allowed)
    except UsageError as error:
        raise invalid("allowed_address", error.message) from None
    if net_address is None:
        return source
    if family_of(net_address) != family_of(allowed):
        raise invalid(
            "allowed_address",
            f"{allowed} and this host's address for data, {net_address}, are of different "
            "versions of IP; give one of the same",
        )
    if not is_own_address(net_address):
        raise Problem(
            503,
            Refusal.LACKING,
            f"HOSTBENCH_NET_ADDRESS {net_address} is not an address of this host; set another",
        )
    return net_address


def route(to: str | None, net_address: str | None) -> RouteAnswer:
    """How this host reaches another. Raises Problem when it does not."""
    if to is None:
        return RouteAnswer(source=None, interface=None, address=net_address)
    try:
        source = source_address(to)
    except UsageError as error:
        raise Problem(422, "invalid", error.message, field="query.to") from None
    return RouteAnswer(source=source, interface=interface_towards(to), address=net_address)
