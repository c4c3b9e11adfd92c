"""The trials and sessions of this service, and the streams that answer their requests. At most one
holds the host; the others wait to be refused.

Everything here runs on the event loop; each trial has a thread that reports to it.
"""

import asyncio
import contextlib

import structlog
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from hostbench.model.service import Ending, Refusal
from hostbench.service.metrics import Metrics
from hostbench.service.trial import AdmittedCall, Item, RunningTrial
from hostbench.service.work import KeptScratch
from hostbench.web.problem import Problem

# A caller that falls this many lines behind its trial is given up.
UNREAD_MOST = 100_000
_log = structlog.get_logger()
NDJSON = "application/x-ndjson"


class TrialRunner:
    """Starts, renews and ends trials."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.scratch = KeptScratch()
        self._trials: dict[str, RunningTrial] = {}
        self._ending = False
        self._quiet = asyncio.Event()
        self._quiet.set()

    def begin(self, call: AdmittedCall) -> tuple[RunningTrial, "asyncio.Queue[Item]"]:
        """Start a trial or session; its lines appear in the queue, `None` last.

        Raise Problem when the service is ending or one of that name already runs; ResourceError
        when no thread can start.
        """
        if self._ending:
            raise Problem(503, Refusal.LACKING, "the service is about to end; try another time")
        if call.id in self._trials:
            raise Problem(
                409,
                Refusal.BUSY,
                f"{call.kind} {call.id} runs already; give each an id of its own",
            )
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[Item] = asyncio.Queue()

        def take(item: Item) -> None:
            items.put_nowait(item)
            if items.qsize() > UNREAD_MOST:
                trial.end(Ending.CALLER_GONE)

        def put(item: Item) -> None:
            # The loop is closed: the service has ended, and with it the connection.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(take, item)

        def finished(trial: RunningTrial, outcome: str) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._forget, trial, outcome)

        trial = RunningTrial(call, put, finished, self._busy_for_s)
        trial.start()
        # Only now, because the start may fail. It cannot be removed before this: that happens on
        # this loop, too.
        self._trials[call.id] = trial
        self._quiet.clear()
        self._metrics.running.inc()
        _log.info(
            f"{call.kind}_begins", trial=call.id, tool=call.request.tool, fence=call.claim.fence
        )
        return trial, items

    def _forget(self, trial: RunningTrial, outcome: str) -> None:
        call = trial.call
        del self._trials[call.id]
        self._metrics.running.dec()
        self._metrics.count(call.kind, call.request.tool, outcome)
        _log.info(f"{call.kind}_ends", trial=call.id, outcome=outcome)
        if not self._trials:
            self._quiet.set()

    def _busy_for_s(self) -> float | None:
        """Return the remaining lease of the trial that holds the host, if it is one of ours."""
        left = [one.lease.left_s for one in tuple(self._trials.values()) if one.holds_lock]
        return max(left, default=None)

    def renew(self, trial_id: str) -> bool:
        """Renew the lease of a trial; return whether a trial of that name runs."""
        trial = self._trials.get(trial_id)
        if trial is not None:
            trial.lease.renew()
        return trial is not None

    def end_all(self) -> None:
        """End every trial and start no other; return at once."""
        self._ending = True
        for trial in tuple(self._trials.values()):
            trial.end(Ending.SERVICE_ENDS)

    async def quiet(self) -> None:
        """Wait until no trial runs."""
        await self._quiet.wait()


class TrialStream(Response):
    """The answer to POST /trials and POST /sessions.

    It begins with the first line, so that a refused trial gets an error status. When the connection
    closes, the trial ends at once, even between two lines.
    """

    media_type = NDJSON

    def __init__(self, trial: RunningTrial, items: "asyncio.Queue[Item]") -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self._trial = trial
        self._items = items

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send every line of the trial."""
        watch = asyncio.create_task(self._end_with_connection(receive))
        try:
            first = await self._items.get()
            if isinstance(first, Problem):
                await first.response()(scope, receive, send)
            else:
                await self._send_lines(first, send)
        finally:
            watch.cancel()
            # This has no effect if it has ended by itself.
            self._trial.end(Ending.CALLER_GONE)

    async def _end_with_connection(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._trial.end(Ending.CALLER_GONE)

    async def _send_lines(self, first: bytes | None, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        line: Item = first
        while isinstance(line, bytes):
            await send({"type": "http.response.body", "body": line, "more_body": True})
            line = await self._items.get()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
