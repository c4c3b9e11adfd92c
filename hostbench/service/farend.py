"""The far end of a session: `net-bench far-end`, as docs/kernel-protocol.md says."""

import secrets
from collections.abc import Generator

from pydantic import ValidationError

from hostbench.base.errors import shown
from hostbench.base.interrupt import Interrupt
from hostbench.model.service import (
    FAR_END_EVENT,
    FarEndEvent,
    ListeningEvent,
    SessionEndEvent,
    SessionEvent,
    SessionRequest,
)
from hostbench.model.trial import TrialFailed
from hostbench.programs.child import Child
from hostbench.programs.handover import text_descriptor
from hostbench.programs.program import Program
from hostbench.service.trial import WorkEvent

TOKEN_BYTES = 16
# The far end heeds its caps by itself; one that does not is ended.
OVERTIME_S = 5.0


class FarEndWork:
    """See hostbench.service.trial.Work."""

    def __init__(self, program: Program, request: SessionRequest, bind: str) -> None:
        """`bind` is the address of this host where it listens."""
        self._program = program
        self._request = request
        self._bind = bind

    def run(self, interrupt: Interrupt, lock_descriptor: int) -> Generator[WorkEvent, None, None]:
        """`session` first, `session_end` last."""
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
    """What the far end reads: a line each, and none for a cap that there is not."""
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
        """What a line becomes. Raises TrialFailed on one that has no place."""
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
        """Called when its output ended. Raises TrialFailed unless it was complete."""
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
