"""Shared secrets in requests: `Authorization: Bearer KEY`."""

import base64
import binascii
import hmac
from collections.abc import Awaitable, Callable

from fastapi import Request

from hostbench.web.problem import Problem


def requires(*keys: str, in_browsers: bool = False) -> Callable[[Request], Awaitable[None]]:
    """A dependency that lets a request pass with one of `keys` and refuses it otherwise.

    `in_browsers`: a browser asks for a name and a password, any name and the key. Only for calls
    that change nothing: a browser sends a password along that another page makes it ask with.
    """
    allowed = [key.encode() for key in keys]
    challenge = 'Basic realm="hostbench", charset="UTF-8"' if in_browsers else "Bearer"

    # A coroutine: FastAPI would call a plain function in a thread.
    async def check(request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # Latin-1 is what the header was decoded with.
        offered = given.strip().encode("latin-1")
        if in_browsers and scheme.lower() == "basic":
            offered = _password(offered)
        elif scheme.lower() != "bearer":
            offered = b""
        if not offered:
            text = "this call needs a key; send it as Authorization: Bearer KEY"
            raise _refusal(text, challenge)
        if not any(hmac.compare_digest(offered, key) for key in allowed):
            text = "the key is not the one of this server; look into secrets/"
            raise _refusal(text, challenge)

    return check


def _password(credentials: bytes) -> bytes:
    """The password of `name:password` in base64 (RFC 7617), empty when it is none."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _refusal(detail: str, challenge: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": challenge})
