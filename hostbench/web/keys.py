"""Keys in requests: `Authorization: Bearer KEY`. The owner of a key has a name and a role."""

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import structlog
from fastapi import Request

from hostbench.base.errors import listing
from hostbench.web.problem import Problem
from hostbench.web.settings import KEY_CHARACTERS_LEAST

_log = structlog.get_logger()
# A line of the file of keys: a name, a role, the key's SHA-256.
_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63}) (viewer|operator|poster) ([0-9a-f]{64})")
# A line of the file of hosts' keys: a host, its key.
_HOST_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63}) ([!-~]{16,200})")
# How long the previous key is accepted after a change: the other side reads its own file a moment
# later.
BEFORE_S = 60.0
Content = TypeVar("Content")


class Role(StrEnum):
    """What a key allows: to read, to read and change, to post documents alone, or to register."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    POSTER = "poster"
    SERVICE = "service"


@dataclass(frozen=True)
class Caller:
    """The owner of a request's key. `host`: the only host whose services may use it; None: any
    host."""

    name: str
    role: Role
    host: str | None = None


# The services of a host with the key that all hosts share.
SERVICES = Caller("services", Role.SERVICE)
Keys = Sequence[tuple[Caller, bytes]]


class KeyRing:
    """The keys of one server, as SHA-256, read from their sources at each call: files of keys may
    change at any time."""

    def __init__(self, *sources: Callable[[], Keys]) -> None:
        self._sources = sources

    def caller(self, offered: bytes) -> Caller | None:
        """Return the owner of this key, or None. It takes the same time for every key."""
        return self.owner(hashlib.sha256(offered).digest())

    def owner(self, digest: bytes) -> Caller | None:
        """Return the present owner of the key with this SHA-256, or None: it was revoked."""
        known = [one for source in self._sources for one in source()]
        found = [caller for caller, key in known if hmac.compare_digest(digest, key)]
        return found[0] if found else None


class WatchedFile(Generic[Content]):
    """A small file with keys that is read again when it has changed. `missing`: the content if it
    cannot be read."""

    def __init__(self, path: Path, parse: Callable[[str], Content], missing: Content) -> None:
        self._path = path
        self._parse = parse
        self._missing = self._content = missing
        self._version: object = None

    def content(self) -> Content:
        """Return its present content."""
        try:
            status = self._path.stat()
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            if version != self._version:
                self._content = self._parse(self._path.read_text("ascii", "replace"))
        except OSError as error:
            version = None
            if self._version is not None:
                _log.warning("keys_unreadable", file=str(self._path), why=error.strerror)
            self._content = self._missing
        self._version = version
        return self._content


class NamedKeys:
    """The keys of users with a name and a role, one a line of a file: NAME ROLE SHA-256."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFile[Keys](path, self._parsed, ())

    def known(self) -> Keys:
        """Return all of them."""
        return self._file.content()

    def _parsed(self, text: str) -> Keys:
        return [
            (Caller(name, Role(role)), bytes.fromhex(digest))
            for name, role, digest in _fields(_LINE, text, self._path)
        ]


class _HostKeyFile(NamedTuple):
    """The keys of hosts, as they are sent, and as requests with them are known."""

    keys: Mapping[str, str]
    known: Keys


class HostKeys:
    """The key of each host, with which its services register and are called, one a line of a file:
    HOST KEY. Without a file, all hosts share one key."""

    def __init__(self, shared: str, path: Path | None) -> None:
        self._shared = shared
        self._path = path
        self._shared_known = [(SERVICES, digest_of(shared))]
        self._file = WatchedFile(path, self._parsed, _HostKeyFile({}, ())) if path else None

    def of(self, host: str) -> str | None:
        """Return the key of a host, or None if it has none, or no longer has one."""
        return self._shared if self._file is None else self._file.content().keys.get(host)

    def known(self) -> Keys:
        """Return all of them; each except the shared one is bound to its host."""
        return self._shared_known if self._file is None else self._file.content().known

    def _parsed(self, text: str) -> _HostKeyFile:
        assert self._path is not None
        keys = dict(_fields(_HOST_LINE, text, self._path))
        known = [(Caller(host, Role.SERVICE, host), digest_of(key)) for host, key in keys.items()]
        return _HostKeyFile(keys, known)


class OwnKey:
    """The single key of a caller: from its file, which may change while the server runs, or from
    the settings. The previous key is accepted for another `before_s` seconds."""

    def __init__(
        self,
        key: str,
        path: Path | None,
        caller: Caller = SERVICES,
        before_s: float = BEFORE_S,
    ) -> None:
        self._caller = caller
        self._key = self._before = key
        self._before_s = before_s
        self._before_until_s = 0.0
        self._path = path
        self._file = WatchedFile(path, self._parsed, "") if path else None

    def current(self) -> str:
        """Return the key to send. An empty file changes nothing: it is just being written."""
        key = (self._file.content() if self._file else "") or self._key
        if key != self._key:
            self._before, self._key = self._key, key
            self._before_until_s = time.monotonic() + self._before_s
            _log.info("key_changed", key=self._caller.name)
        return self._key

    def known(self) -> Keys:
        """Return the keys to accept."""
        keys = [self.current()]
        if time.monotonic() < self._before_until_s:
            keys.append(self._before)
        return [(self._caller, digest_of(key)) for key in keys]

    def _parsed(self, text: str) -> str:
        key = text.strip()
        if 0 < len(key) < KEY_CHARACTERS_LEAST:
            _log.warning("key_too_short", file=str(self._path), least=KEY_CHARACTERS_LEAST)
            return ""
        return key


def _fields(line: re.Pattern[str], text: str, path: Path) -> Iterator[Any]:
    """Yield the groups of each line. The log names a wrong line only by its number, because it may
    contain a key."""
    for number, written in enumerate(text.splitlines(), start=1):
        if not written.strip() or written.startswith("#"):
            continue
        match = line.fullmatch(written.strip())
        if match is None:
            _log.warning("keys_line_ignored", file=str(path), line=number)
            continue
        yield match.groups()


def digest_of(key: str) -> bytes:
    """Return what is stored of a key. Keys are random and long, so a slow hash would not protect
    them better."""
    return hashlib.sha256(key.encode()).digest()


def requires(
    ring: KeyRing, *roles: Role, in_browsers: bool = False
) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that accepts a request with a key of one of `roles` and refuses any
    other. `request.state.caller` is the key's owner, `request.state.key` the key's SHA-256.

    `in_browsers`: a browser asks for a name and a password; any name and the key are valid. Use
    this only for calls that change nothing: another page can make a browser send a request with the
    password.
    """
    challenge = 'Basic realm="hostbench", charset="UTF-8"' if in_browsers else "Bearer"

    # A coroutine, because FastAPI would call a plain function in a thread.
    async def check(request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # The header was decoded as Latin-1.
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
        request.state.key = hashlib.sha256(offered).digest()
        if caller.role not in roles:
            raise Problem(
                403,
                "forbidden",
                f"the key of {caller.name} has the role {caller.role}, and this call takes "
                f"{listing(roles)}; ask for a key that has it",
            )

    return check


def _password(credentials: bytes) -> bytes:
    """Return the password of `name:password` in base64 (RFC 7617), or an empty value if it is
    invalid."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _refusal(detail: str, challenge: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": challenge})
