"""The sessions of a service: the checks of a request, the session's address on this host, and the
far end of our program (`net-bench far-end`, docs/kernel-protocol.md)."""

import secrets
from collections.abc import Generator

from pydantic import ValidationError

from hostbench.base.errors import UsageError, listing, shown
from hostbench.base.interrupt import Interrupt
from hostbench.host.route import family_of, interface_towards, is_own_address, source_address
from hostbench.model.result import OWN_TOOL
from hostbench.model.service import (
    FAR_END_EVENT,
    FarEndEvent,
    ListeningEvent,
    Refusal,
    RouteAnswer,
    SessionEndEvent,
    SessionEvent,
    SessionRequest,
)
from hostbench.model.trial import TrialFailed
from hostbench.programs.child import Child
from hostbench.programs.program import Program
from hostbench.programs.subsystem import tools_of
from hostbench.run.local import text_descriptor
from hostbench.service.admission import (
    check_peer,
    check_program,
    checked_peer_params,
    invalid,
    known_workload,
)
from hostbench.service.toolserver import ToolServerWork
from hostbench.service.trial import Work, WorkEvent
from hostbench.web.problem import Problem

# As many as a program's list may name: CPULIST_MAX of harness/cpulist.h.
CPUS_MOST = 8192
TOKEN_BYTES = 16
# The far end enforces its caps itself; one that fails to do so is ended after this.
OVERTIME_S = 5.0


def admitted_session(request: SessionRequest, program: Program, net_address: str | None) -> Work:
    """Return the session's work. Raise Problem, which names the first wrong field. `net_address`:
    see Settings."""
    bind = _bind(request.allowed_address, net_address)
    if request.tool == OWN_TOOL:
        check_program(request.sha256, program)
        return FarEndWork(program, request, bind)
    _check_peer(request, program)
    return ToolServerWork(request, program.table.subsystem, bind)


def _check_peer(request: SessionRequest, program: Program) -> None:
    """Check the request for a tool's server, which must fit a trial of ours as its client does."""
    subsystem = program.table.subsystem
    tools = tools_of(subsystem)
    if request.tool not in tools:
        raise invalid(
            "tool", f"there is no tool {shown(request.tool)}; give {listing([OWN_TOOL, *tools])}"
        )
    if request.workload is None:
        raise invalid("workload", "is missing; give the workload of the peer's trial")
    workload = known_workload(request.workload, program)
    # Its CPUs are those of the near host.
    checked_peer_params(request.params, workload, range(CPUS_MOST))
    check_peer(request.tool, subsystem, workload.name, request.params)


def _bind(allowed: str, net_address: str | None) -> str:
    """Return the address of this host that the near end reaches."""
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
    """Return how this host reaches another. Raise Problem when it does not."""
    if to is None:
        return RouteAnswer(source=None, interface=None, address=net_address)
    try:
        source = source_address(to)
    except UsageError as error:
        raise Problem(422, "invalid", error.message, field="query.to") from None
    return RouteAnswer(source=source, interface=interface_towards(to), address=net_address)


class FarEndWork:
    """See hostbench.service.trial.Work."""

    def __init__(self, program: Program, request: SessionRequest, bind: str) -> None:
        """`bind` is the address of this host at which it listens."""
        self._program = program
        self._request = request
        self._bind = bind

    def run(self, interrupt: Interrupt, lock_descriptor: int) -> Generator[WorkEvent, None, None]:
        """Yield `session` first and `session_end` last."""
        token = secrets.token_hex(TOKEN_BYTES)
        seconds = self._request.expiry_s + self._request.duration_s + OVERTIME_S
        with text_descriptor(
            "session", far_end_text(self._request, self._bind, token)
        ) as descriptor:
            arguments = ["far-end", f"--session-fd={descriptor}"]
            inherited = (lock_descriptor, descriptor)
            with Child(self._program.path, arguments, interrupt, inherited) as child:
                reading = _Reading(token)
                try:
                    for line in child.lines(seconds):
                        yield reading.take(line)
                    reading.finish(child.wait(), child.last_errors())
                except TrialFailed as failure:
                    raise _named(failure) from None


def far_end_text(request: SessionRequest, bind: str, token: str) -> str:
    """Return what the far end reads: one line for each value, without missing caps."""
    lines = {
        "bind": bind,
        "allowed": request.allowed_address,
        "token": token,
        "duration_s": f"{request.duration_s:.6f}",
        "streams": request.streams,
        "bytes": request.bytes,
        "rate": None if request.rate is None else f"{request.rate:.6f}",
        "expiry_s": f"{request.expiry_s:.6f}",
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items() if value is not None)


class _Reading:
    """The two lines of a far end, in their order."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._listens = False
        self._ended = False

    def take(self, line: bytes) -> SessionEvent | SessionEndEvent:
        """What a line becomes. Raise TrialFailed on one that has no place."""
        event = _event(line)
        if self._ended:
            raise TrialFailed("malformed_output", f"event {event.event} after the last one")
        if isinstance(event, ListeningEvent):
            if self._listens:
                raise TrialFailed("malformed_output", "a second listening event")
            self._listens = True
            return SessionEvent(address=event.address, port=event.port, token=self._token)
        if not self._listens:
            raise TrialFailed("far_end", event.reason or event.outcome)
        self._ended = True
        return event

    def finish(self, exit_code: int, stderr: str) -> None:
        """Called when its output ended. Raise TrialFailed unless it was complete."""
        output = f"; its output: {stderr}" if stderr else ""
        if exit_code < 0:
            raise TrialFailed("killed", f"killed by signal {-exit_code}{output}")
        if not self._ended:
            raise TrialFailed("no_last_event", f"exit code {exit_code} without an end{output}")


def _event(line: bytes) -> FarEndEvent:
    try:
        return FAR_END_EVENT.validate_json(line)
    except ValidationError:
        text = line.decode("utf-8", "replace")
        raise TrialFailed("malformed_output", f"not an event: {shown(text)}") from None


def _named(failure: TrialFailed) -> TrialFailed:
    return TrialFailed(failure.code, f"the far end: {failure.message}", failure.exit_code)
