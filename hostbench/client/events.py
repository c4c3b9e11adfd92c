"""The events of a job, live, over as many connections as needed."""

import time
from collections.abc import Callable, Iterator

import httpx_sse
from pydantic import TypeAdapter, ValidationError

from hostbench.client.api import Orchestrator
from hostbench.client.failures import LostContact
from hostbench.model.job_events import JobEvent, StateEvent
from hostbench.model.jobs import TERMINAL

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
# As long as an orchestrator may need for an upgrade.
GIVE_UP_S = 600.0

_EVENT: TypeAdapter[JobEvent] = TypeAdapter(JobEvent)


class JobEvents:
    """The events of a job from the first one on; they end when the job has ended.

    Iterating raises HostbenchError: LostContact when the orchestrator was unreachable for
    GIVE_UP_S.
    """

    def __init__(self, orchestrator: Orchestrator, job_id: str, say: Callable[[str], None]) -> None:
        """`say` gets a line when the connection is lost, and when it is back."""
        self._orchestrator = orchestrator
        self._job_id = job_id
        self._say = say
        self._last_id: str | None = None
        self._lost_since_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def __iter__(self) -> Iterator[JobEvent]:
        while True:
            try:
                yield from self._connection()
                if self._has_ended():
                    return
            except LostContact as error:
                self._wait(error)
            else:
                # The server of the events is ending: it closes the stream and will be back.
                time.sleep(FIRST_PAUSE_S)

    def _connection(self) -> Iterator[JobEvent]:
        """Yield the events of one connection, until it ends or the job's last event."""
        with self._orchestrator.events(self._job_id, self._last_id) as stream:
            self._found()
            for message in stream:
                self._last_id = message.id or self._last_id
                event = _event(message)
                if event is None:
                    continue
                yield event
                if isinstance(event, StateEvent) and event.state in TERMINAL:
                    return

    def _has_ended(self) -> bool:
        """Whether the job has ended: the last state of an earlier session is not the end of the
        job."""
        return self._orchestrator.job(self._job_id).state in TERMINAL

    def _wait(self, error: LostContact) -> None:
        now_s = time.monotonic()
        if self._lost_since_s is None:
            self._lost_since_s = now_s
            self._say(f"{error.message}; trying again, the job continues")
        if now_s - self._lost_since_s > GIVE_UP_S:
            error.add(f"stopped trying; the job continues: hostbench watch {self._job_id}")
            raise error
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _found(self) -> None:
        if self._lost_since_s is not None:
            self._say(f"connected to {self._orchestrator.url} again")
        self._lost_since_s, self._pause_s = None, FIRST_PAUSE_S


def _event(message: httpx_sse.ServerSentEvent) -> JobEvent | None:
    """Return the event, or None for one that this version does not know."""
    try:
        return _EVENT.validate_json(message.data, extra="ignore")
    except ValidationError:
        return None
