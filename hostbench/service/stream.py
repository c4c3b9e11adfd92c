"""The answer to POST /trials: lines as they come, or a refusal, and an eye on the caller."""

import asyncio

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from hostbench.model.service import Ending
from hostbench.service.trial import Item, RunningTrial
from hostbench.web.problem import Problem

NDJSON = "application/x-ndjson"


class TrialStream(Response):
    """Begins with the first line, so that a trial that cannot be is an error status. The trial
    ends with the connection, at once, also while it has nothing to say."""

    media_type = NDJSON

    def __init__(self, trial: RunningTrial, items: "asyncio.Queue[Item]") -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self._trial = trial
        self._items = items

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends everything the trial says."""
        watch = asyncio.create_task(self._end_with_connection(receive))
        try:
            first = await self._items.get()
            if isinstance(first, Problem):
                await first.response()(scope, receive, send)
            else:
                await self._send_lines(first, send)
        finally:
            watch.cancel()
            # Nothing happens where it has ended by itself.
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
