"""The headers of every answer of the console: what browsers must refuse."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts, styles and pictures come from this orchestrator alone, and none stands inside a page.
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'"
)
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Pages show what only the owner of a key may see, and change from moment to moment.
_UNLESS_SET = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}


class Headers:
    """ASGI middleware. An answer may set its own policy: the report has styles inside its page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
                for name, value in _UNLESS_SET.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)
