"""The server of a peer, such as `iperf3 -s`, for the time of one session."""

import dataclasses
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from hostbench.base.errors import ResourceError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.host.route import family_of
from hostbench.model.service import (
    Refusal,
    SessionEndEvent,
    SessionEvent,
    SessionOutcome,
    SessionRequest,
)
from hostbench.model.trial import TrialFailed
from hostbench.programs.child import Child
from hostbench.programs.peer import Command, on_cpus
from hostbench.programs.peer_trial import SUPERVISOR, SUPERVISOR_GRACE_S
from hostbench.programs.subsystem import server_of
from hostbench.service.admission import invalid
from hostbench.service.trial import WorkEvent
from hostbench.web.problem import Problem

READY_S_MOST = 5.0
POLL_S = 0.02
PORT_TRIES = 20
OUTPUT_CHARACTERS_MOST = 400
# include/net/tcp_states.h: TCP_LISTEN, and TCP_CLOSE, the state of a bound datagram socket.
_TAKING = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}


class ToolServerWork:
    """See hostbench.service.trial.Work. A tool has no token: it serves anybody who reaches its
    port, as long as the session lasts."""

    def __init__(self, request: SessionRequest, subsystem: str, bind: str) -> None:
        """Raise Problem if the tool has no server for this, or is not installed."""
        self._request = request
        self._subsystem = subsystem
        self._bind = bind
        self._command(port=1)
        if shutil.which(request.tool) is None:
            raise Problem(
                409,
                Refusal.TOOL_MISSING,
                f"{request.tool} is not installed on this host; install it there",
            )

    def _command(self, port: int) -> Command:
        """Return the server's command line, which only the subsystem knows."""
        request = self._request
        try:
            if request.workload is None:
                raise UsageError("is given without a workload; give that of the peer's trial")
            command = server_of(
                self._subsystem,
                request.tool,
                request.workload,
                request.params,
                self._bind,
                port,
            )
        except UsageError as error:
            raise invalid("tool", error.message) from None
        outside = sorted(set(request.cpus) - os.sched_getaffinity(0))
        if outside:
            raise invalid("cpus", f"cpus has CPU {outside[0]}, which this service may not use")
        pinned = on_cpus(request.cpus, *command.arguments) if request.cpus else command.arguments
        return dataclasses.replace(command, arguments=pinned)

    def run(self, interrupt: Interrupt, lock_descriptor: int) -> Generator[WorkEvent, None, None]:
        """Yield `session` once it listens, and `session_end` last."""
        port = free_port(self._bind)
        seconds = self._request.expiry_s + self._request.duration_s
        request: dict[str, Any] = {
            "command": self._command(port).arguments,
            "files": {},
            "links": {},
            "report": None,
            "timeout_s": seconds,
            "inherited": [lock_descriptor],
        }
        arguments = ["-I", "-S", str(SUPERVISOR), json.dumps(request)]
        inherited = (lock_descriptor,)
        with Child(Path(sys.executable), arguments, interrupt, inherited, hurry=False) as child:
            if _ready(port, child, interrupt):
                yield SessionEvent(address=self._bind, port=port, token=None)
                yield _end(list(child.lines(seconds + SUPERVISOR_GRACE_S)))
                return
            if not child.has_exited:
                raise TrialFailed("tool_server", self._unready("did not listen in time"))
            lines = list(child.lines(SUPERVISOR_GRACE_S))
            raise TrialFailed("tool_server", self._unready(_end(lines).reason or "ended at once"))

    def _unready(self, why: str) -> str:
        return f"the server of {self._request.tool}: {why}"


def _ready(port: int, child: Child, interrupt: Interrupt) -> bool:
    """Whether the server soon listens at the port. It is never tested by connecting: a server for
    one test would take that for its client."""
    until_s = time.monotonic() + READY_S_MOST
    while time.monotonic() < until_s and not child.has_exited:
        if is_taken(port):
            return True
        interrupt.wait(POLL_S)
    return False


def is_taken(port: int) -> bool:
    """Whether a socket of this host receives what comes to the port."""
    return any(port == taken for taken in _taken_ports())


def _taken_ports() -> Iterator[int]:
    for name, state in _TAKING.items():
        try:
            lines = Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, its_state, *_ = line.split()
            if its_state == state:
                yield int(local.rpartition(":")[2], 16)


def _end(lines: list[bytes]) -> SessionEndEvent:
    """Return the end of the server, from its supervisor's report."""
    if len(lines) != 1:
        raise TrialFailed("supervisor", "the server's supervisor ended without a word")
    ended = json.loads(lines[0])
    if ended["timed_out"]:
        outcome, reason = SessionOutcome.CAPPED, "its time was over"
    elif ended["exit_code"] == 0:
        outcome, reason = SessionOutcome.DONE, None
    else:
        output = " ".join(ended["output"].split())[-OUTPUT_CHARACTERS_MOST:]
        outcome = SessionOutcome.FAILED
        reason = f"exit code {ended['exit_code']}; its output: {output}"
    return SessionEndEvent(outcome=outcome, reason=reason, cpu_s=ended["cpu_s"])


def free_port(address: str) -> int:
    """Return a port of `address` that is free for both TCP and UDP, because a tool uses both. Raise
    ResourceError."""
    family, why = family_of(address), ""
    for _ in range(PORT_TRIES):
        try:
            with (
                socket.socket(family, socket.SOCK_STREAM) as stream,
                socket.socket(family, socket.SOCK_DGRAM) as datagram,
            ):
                stream.bind((address, 0))
                port: int = stream.getsockname()[1]
                datagram.bind((address, port))
                return port
        except OSError as error:
            why = str(error.strerror)
    raise ResourceError(f"there is no free port at {address}: {why}; end other servers there")
