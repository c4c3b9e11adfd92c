"""Trials between two hosts: each gets a session of its own on the far host."""

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from pydantic import ValidationError

from hostbench.base.errors import BusyError, HostbenchError, shown
from hostbench.base.interrupt import Breakable, Interrupt, Interrupted
from hostbench.model.events import ControlPlaneEvent, ProcessUsage, SkipEvent, StartEvent
from hostbench.model.peer import PeerStartEvent, TrialEvent
from hostbench.model.result import OWN_TOOL
from hostbench.model.service import (
    SESSION_BYTES_MOST,
    SESSION_S_MOST,
    SESSION_STREAM_EVENT,
    SESSION_STREAMS_MOST,
    FailureEvent,
    Refusal,
    SessionEndEvent,
    SessionEvent,
    SessionOutcome,
    SessionPlace,
    SessionRequest,
)
from hostbench.model.trial import Transport, Trial, TrialFailed
from hostbench.plan.workloads import FAR_HOST, TARGET, takes_far_host
from hostbench.programs.peer import Peer
from hostbench.programs.peer_trial import bare_start, skipped
from hostbench.programs.subsystem import peers_of
from hostbench.remote.client import ServiceLost, ServiceRefused
from hostbench.remote.far_host import FarHost
from hostbench.remote.transport import (
    failure_meaning,
    far_end_name,
    holder_job,
    refusal_meaning,
    same_host,
)
from hostbench.remote.wire import Ended, Following

# For the lock and the start of a program.
OPEN_S_MOST = 15.0
# How long a session waits for the near end, which starts meanwhile.
EXPIRY_S = 30.0
# A far end ends a second after its near end. A host that vanished is noticed after 5 s; the near
# end itself takes 3 s of them.
END_S_MOST = 3.0
# Some tools' servers never end by themselves.
TOOL_END_S_MOST = 0.5
# The previous session may be about to end, so a shorter wait is not reported.
BUSY_RETRY_S = 0.2
BUSY_S_UNREPORTED = 3.0
# Something is wrong above a cap: it exceeds what a test with a set rate, or with a set number of
# bytes, does.
CAP_ROOM = 1.1
# More than each socket may have started to send when the total is reached.
BLOCK_BYTES_MOST = 1 << 20
# For a tool that needs only the far host's address: the discard port, where no server listens.
NO_PORT = 9
BEGINNINGS = (StartEvent, PeerStartEvent, SkipEvent)


@dataclass(frozen=True)
class SessionEnd:
    """How a session ended, as far as its service has reported it."""

    event: SessionEndEvent | None = None
    usage: tuple[ProcessUsage, ...] = ()

    @property
    def has_expired(self) -> bool:
        """Whether no near end connected in time."""
        return self.event is not None and self.event.outcome is SessionOutcome.EXPIRED

    @property
    def complaint(self) -> str | None:
        """The far end's reason for its failure; None: it did not fail."""
        if self.event is None or self.event.outcome is SessionOutcome.DONE:
            return None
        return self.event.reason or f"the session ended {self.event.outcome}"


class FarSession:
    """One open session; `place` is where it is. Closing it ends the session at any time."""

    def __init__(self, far: FarHost, request: SessionRequest, interrupt: Interrupt) -> None:
        """Request the session. Raise ServiceRefused, ServiceLost, TrialFailed, a HostbenchError for
        what the far host lacks, or Interrupted."""
        self._url = far.service.url
        self._lines: Following[bytes] = far.service.session(request)
        try:
            self.place = self._opened(interrupt)
        except BaseException:
            self.close()
            raise

    def _opened(self, interrupt: Interrupt) -> SessionPlace:
        try:
            event = self._event(interrupt, OPEN_S_MOST)
        except TimeoutError:
            raise ServiceLost(f"service {self._url} does not open a session") from None
        except Ended:
            raise ServiceLost(f"service {self._url} broke off the stream of a session") from None
        if isinstance(event, SessionEvent):
            return event.place
        if isinstance(event, FailureEvent):
            raise failure_meaning(event, self._url)
        raise TrialFailed("malformed_output", f"event {event.event} before the session is open")

    def when_lost(self, on_error: Callable[[Exception], None]) -> None:
        """Call `on_error` with the error, in another thread, when the far host is lost."""

        def lost(error: BaseException) -> None:
            if isinstance(error, ServiceLost):
                on_error(error)

        self._lines.when_it_fails(lost)

    def ended(self, seconds: float, interrupt: Interrupt) -> SessionEnd:
        """Return how the session ended, after the near end is gone; wait at most `seconds`. Raise
        ServiceLost, TrialFailed, Interrupted, or a HostbenchError for what the far host lacks."""
        until_s = time.monotonic() + seconds
        end: SessionEndEvent | None = None
        usage: tuple[ProcessUsage, ...] = ()
        with contextlib.suppress(TimeoutError, Ended):
            while True:
                event = self._event(interrupt, max(0.0, until_s - time.monotonic()))
                if isinstance(event, SessionEndEvent):
                    end = event
                elif isinstance(event, ControlPlaneEvent):
                    usage = tuple(_of_far_host(one) for one in event.processes)
                elif isinstance(event, FailureEvent):
                    raise failure_meaning(event, self._url)
        return SessionEnd(end, usage)

    def close(self) -> None:
        """Close the connection, which ends the session."""
        self._lines.close()

    def _event(
        self, interrupt: Interrupt, seconds: float
    ) -> SessionEvent | SessionEndEvent | FailureEvent | ControlPlaneEvent:
        line = self._lines.take(interrupt, seconds)
        try:
            return SESSION_STREAM_EVENT.validate_json(line)
        except ValidationError:
            text = line.decode("utf-8", "replace")
            raise TrialFailed("malformed_output", f"not an event: {shown(text)}") from None


def _of_far_host(usage: ProcessUsage) -> ProcessUsage:
    return usage.model_copy(update={"component": f"far_{usage.component}"})


class FarTransport:
    """Runs trials like `inner`, and opens a session for each trial that has its far end on the far
    host. See hostbench.model.trial.Transport."""

    def __init__(
        self,
        inner: Callable[[Interrupt], Transport],
        far: FarHost,
        fence: int | None,
        job: str,
        interrupt: Interrupt,
        on_waiting: Callable[[str], None] = lambda detail: None,
        busy_s: float = math.inf,
    ) -> None:
        """`inner` gets what can interrupt its trials. `on_waiting` gets the holder of the far host
        while another run holds it, for at most `busy_s` seconds."""
        self._breakable = Breakable(interrupt)
        self._inner = inner(self._breakable)
        self._far = far
        self._fence = fence
        self._job = job
        self._interrupt = interrupt
        self._on_waiting = on_waiting
        self._busy_s = busy_s

    def run(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """See Transport.run. The control plane's event includes the far service's share.

        Also raise ServiceLost, ResourceError or BusyError, which end the job.
        """
        if trial.tool != OWN_TOOL:
            return self._run_peer(trial)
        if takes_far_host(trial.subsystem, trial.params):
            return self._between(trial)
        return self._inner.run(trial)

    def _run_peer(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """Run a peer's trial. `trial.params` are resolved: they show where our own trial had its
        far end."""
        peer = _peer(trial)
        if peer is None or trial.params.get(TARGET) != FAR_HOST:
            yield from self._inner.run(trial)
        elif peer.server is not None:
            yield from self._run_with_server(trial, peer)
        elif peer.far_address_only:
            place = SessionPlace(address=self._far.record.address, port=NO_PORT)
            yield from self._inner.run(trial.model_copy(update={"session": place}))
        else:
            yield from self._inner.run(trial)

    def _run_with_server(self, trial: Trial, peer: Peer) -> Generator[TrialEvent, None, None]:
        begun = False
        try:
            with contextlib.closing(self._between(trial)) as events:
                for event in events:
                    begun = True
                    yield event
        except _ToolMissing as missing:
            yield from skipped(peer, f"the far host {self._far.name} has no {missing}")
        except TrialFailed:
            # A failure belongs to a peer; without its start event, it would be unknown which.
            if not begun:
                yield bare_start(peer)
            raise

    def _between(self, trial: Trial) -> Generator[TrialEvent, None, None]:
        """Run a trial with a session. If that expired while another run still held the near host,
        open another one."""
        until_s = time.monotonic() + self._busy_s
        while True:
            with contextlib.closing(self._open(trial, until_s)) as session:
                # Events before the start are passed on for the last attempt only.
                before: list[TrialEvent] | None = []
                try:
                    with contextlib.closing(self._near_end(trial, session)) as events:
                        for event in events:
                            if before is not None and not isinstance(event, BEGINNINGS):
                                before.append(event)
                                continue
                            yield from before or ()
                            before = None
                            yield event
                except TrialFailed as failure:
                    end = self._end_after(failure, session)
                    if before is not None and end.has_expired and time.monotonic() < until_s:
                        continue
                    yield from before or ()
                    raise _explained(failure, end, self._far.name) from None
                yield from before or ()
                return

    def _near_end(self, trial: Trial, session: FarSession) -> Generator[TrialEvent, None, None]:
        own = trial.tool == OWN_TOOL
        plane: ControlPlaneEvent | None = None
        near = trial.model_copy(update={"session": session.place})
        with self._breakable.open(), contextlib.closing(self._inner.run(near)) as events:
            if not own:
                # Our two ends watch each other, and report more about it.
                session.when_lost(self._breakable.break_in)
            for event in events:
                if isinstance(event, ControlPlaneEvent):
                    plane = event
                else:
                    yield event
        end = SessionEnd()
        # The figure is complete: from now on, the state of the far host only matters for the next
        # trial.
        with contextlib.suppress(TrialFailed, HostbenchError):
            end = session.ended(END_S_MOST if own else TOOL_END_S_MOST, self._interrupt)
        if plane is not None:
            yield ControlPlaneEvent(processes=(*plane.processes, *end.usage))

    def _open(self, trial: Trial, until_s: float) -> FarSession:
        """Open a session as soon as the far host is free."""
        notice_at_s = time.monotonic() + BUSY_S_UNREPORTED
        while True:
            try:
                return FarSession(self._far, self._request(trial), self._interrupt)
            except ServiceRefused as refused:
                if refused.code == Refusal.TOOL_MISSING:
                    raise _ToolMissing(trial.tool) from None
                if refused.code != Refusal.BUSY:
                    url = self._far.service.url
                    raise refusal_meaning(refused, url, "a session") from None
                if holder_job(refused) == self._job:
                    raise same_host(self._far.service.url) from None
                if time.monotonic() >= until_s:
                    raise BusyError(f"far host {self._far.name}: {refused.detail}") from None
                if time.monotonic() >= notice_at_s:
                    self._on_waiting(refused.detail)
                self._interrupt.wait(BUSY_RETRY_S)

    def _request(self, trial: Trial) -> SessionRequest:
        own = trial.tool == OWN_TOOL
        return SessionRequest(
            id=f"{far_end_name(self._job, trial)}{secrets.token_hex(4)}",
            allowed_address=self._far.record.near_address,
            duration_s=min(trial.timeout_s, SESSION_S_MOST),
            streams=_sockets_most(trial),
            bytes=_bytes_most(trial) if own else None,
            rate=_rate_most(trial) if own else None,
            expiry_s=EXPIRY_S,
            tool=trial.tool,
            workload=None if own else trial.workload,
            params={} if own else trial.params,
            cpus=() if trial.beside is None else trial.beside.far_cpus[: len(trial.beside.cpus)],
            fence=self._fence,
            sha256=self._far.record.program.sha256 if own else None,
        )

    def _end_after(self, failure: TrialFailed, session: FarSession) -> SessionEnd:
        """Return how the session of a failed trial ended. Raise the error that ends the job:
        without its far host, the trial had to fail."""
        try:
            return session.ended(END_S_MOST, self._interrupt)
        except TrialFailed:
            return SessionEnd()
        except Interrupted:
            raise
        except HostbenchError as error:
            error.add(f"the measuring end reports: {failure.message}")
            raise


class _ToolMissing(Exception):
    """The far host has no such tool."""


def _peer(trial: Trial) -> Peer | None:
    fitting = peers_of(trial.subsystem, trial.workload, trial.params)
    return next((peer for peer in fitting if peer.tool == trial.tool), None)


def _sockets_most(trial: Trial) -> int:
    """Return the most sockets that the test may have at a time: two for each stream of direction
    `both`, and two for each stream of load beside it."""
    counts = (trial.params.get("streams", 1), trial.params.get("load_streams", 0))
    known = [int(count) for count in counts if isinstance(count, int | float)]
    if len(known) < len(counts):
        return SESSION_STREAMS_MOST
    return min(SESSION_STREAMS_MOST, 2 * max(1, sum(known)))


def _rate_most(trial: Trial) -> float | None:
    """Return the cap of a test with a set rate, in byte/s of all its streams, or None: it runs as
    fast as it can."""
    rate = _number(trial, "rate")
    return None if not rate else CAP_ROOM * rate * _directions(trial)


def _bytes_most(trial: Trial) -> int | None:
    """Return the cap of a test with a set number of bytes, or None if its bytes, or those of its
    warm-up, are unknown."""
    total, warmup_s, rate = (_number(trial, name) for name in ("total_bytes", "warmup_s", "rate"))
    if not total or warmup_s is None or (warmup_s > 0 and not rate):
        return None
    paced = total + warmup_s * (rate or 0.0)
    begun = 2 * BLOCK_BYTES_MOST * _sockets_most(trial)
    return min(SESSION_BYTES_MOST, int(CAP_ROOM * paced * _directions(trial)) + begun)


def _directions(trial: Trial) -> int:
    return 2 if trial.params.get("direction") == "both" else 1


def _number(trial: Trial, name: str) -> float | None:
    value = trial.params.get(name)
    return float(value) if isinstance(value, int | float) else None


def _explained(failure: TrialFailed, end: SessionEnd, far_name: str) -> TrialFailed:
    if end.complaint is None:
        return failure
    message = f"{failure.message}; far host {far_name}: {end.complaint}"
    return TrialFailed(failure.code, message, failure.exit_code)
