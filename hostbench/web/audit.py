"""Who changed what: a line in the log for each call that changes something, with the name of its
key."""

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hostbench.web.keys import Caller, Role

LOOKS = ("GET", "HEAD")
_log = structlog.get_logger()


class Audit:
    """ASGI middleware. Registrations, which services renew four times a minute, are logged by the
    code that knows which are new."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log afterwards who sent it."""
        if scope["type"] != "http" or scope["method"] in LOOKS:
            await self._app(scope, receive, send)
            return
        answer: Message = {"status": None, "headers": ()}

        async def noted(message: Message) -> None:
            nonlocal answer
            if message["type"] == "http.response.start":
                answer = message
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            caller = scope.get("state", {}).get("caller")
            if isinstance(caller, Caller) and caller.role is not Role.SERVICE:
                location = dict(answer["headers"]).get(b"location", b"").decode("latin-1")
                _log.info(
                    "audit",
                    key=caller.name,
                    role=caller.role.value,
                    call=f"{scope['method']} {scope['path']}",
                    status=answer["status"],
                    **({"made": location} if location else {}),
                )
