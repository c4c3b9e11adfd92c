"""Keys in requests: `Authorization: Bearer KEY`. Who has one is called by name, and has a role."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import structlog
from fastapi import Request

from hostbench.base.errors import listing
from hostbench.web.problem import Problem

_log = structlog.get_logger()
# A line of the file of keys: a name, a role, SHA-256 of the key.
_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63}) (viewer|operator) ([0-9a-f]{64})")


class Role(StrEnum):
    """What a key is for: to look, to look and to change, to register."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    SERVICE = "service"


@dataclass(frozen=True)
class Caller:
    """Whose key a request came with."""

    name: str
    role: Role


class KeyRing:
    """The keys of one server: those it was started with, and those of a file that may change at any
    time. Of all of them it keeps the SHA-256 alone."""

    def __init__(self, keys: Iterable[tuple[Caller, str]], file: Path | None = None) -> None:
        self._own = [(caller, _digest(key.encode())) for caller, key in keys]
        self._file = file
        self._version: object = None
        self._named: list[tuple[Caller, bytes]] = []

    def caller(self, offered: bytes) -> Caller | None:
        """Whose key this is. Takes as long whichever it is."""
        digest = _digest(offered)
        known = [*self._own, *self._from_file()]
        found = [caller for caller, key in known if hmac.compare_digest(digest, key)]
        return found[0] if found else None

    def _from_file(self) -> list[tuple[Caller, bytes]]:
        if self._file is None:
            return []
        try:
            status = self._file.stat()
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            if version != self._version:
                self._named = self._parsed(self._file.read_text("ascii", "replace"))
        except OSError as error:
            version = None
            if self._named or self._version is not None:
                _log.warning("keys_unreadable", file=str(self._file), why=error.strerror)
            self._named = []
        self._version = version
        return self._named

    def _parsed(self, text: str) -> list[tuple[Caller, bytes]]:
        named = []
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                # Without the line, which may be a key that somebody put there.
                _log.warning("keys_line_ignored", file=str(self._file), line=number)
                continue
            name, role, digest = match.groups()
            named.append((Caller(name, Role(role)), bytes.fromhex(digest)))
        return named


def _digest(key: bytes) -> bytes:
    # Keys are random and long: there is nothing to guess that a slow hash would keep from anybody.
    return hashlib.sha256(key).digest()


def requires(
    ring: KeyRing, *roles: Role, in_browsers: bool = False
) -> Callable[[Request], Awaitable[None]]:
    """A dependency that lets a request pass with a key of one of `roles` and refuses it otherwise;
    `request.state.caller` is whose it is.

    `in_browsers`: a browser asks for a name and a password, any name and the key. Only for calls
    that change nothing: a browser sends a password along that another page makes it ask with.
    """
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
        caller = ring.caller(offered)
        if caller is None:
            text = "the key is not the one of this server; look into secrets/"
            raise _refusal(text, challenge)
        request.state.caller = caller
        if caller.role not in roles:
            raise Problem(
                403,
                "forbidden",
                f"the key of {caller.name} has the role {caller.role}, and this call takes "
                f"{listing(roles)}; ask for a key that has it",
            )

    return check


def _password(credentials: bytes) -> bytes:
    """The password of `name:password` in base64 (RFC 7617), empty when it is none."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _refusal(detail: str, challenge: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": challenge})
