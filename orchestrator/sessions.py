"""Logins of browsers, in Redis: sessions, single-use links, and failed attempts.

Redis has no secret: of ids and links it has the SHA-256, and so of the key that a session belongs
to. Whether that key is still valid, and for what, is decided at each request.
"""

import hashlib
import math
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, cast

import redis.asyncio
from redis.exceptions import RedisError

from orchestrator.queue.connection import key

# A working day. It is not renewed by use, which would write to Redis at each page.
SESSION_S = 12 * 3600
LINK_S = 300
FAILURES_MOST, FAILURES_S = 10, 300
# While Redis is not available, the sessions that were used here go on.
REMEMBERED_MOST = 1000
RANDOM_BYTES = 32


@dataclass(frozen=True)
class Session:
    """One login. `key`: the SHA-256 of its key; `csrf`: what its forms must send."""

    key: bytes
    csrf: str


class Sessions:
    """Methods raise RedisError when Redis cannot be used, unless they say otherwise."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._redis = client
        # When each was first seen here, by the monotonic clock.
        self._remembered: OrderedDict[str, tuple[float, Session]] = OrderedDict()

    async def begin(self, key_digest: bytes) -> tuple[str, Session]:
        """Begin a session; return its id, which is new and secret, and the session."""
        session_id = secrets.token_urlsafe(RANDOM_BYTES)
        session = Session(key_digest, secrets.token_urlsafe(RANDOM_BYTES))
        name = _session(session_id)
        fields = {"key": session.key.hex(), "csrf": session.csrf}
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hset(name, mapping=cast(Any, fields))
            pipeline.expire(name, SESSION_S)
            await pipeline.execute()
        return session_id, session

    async def find(self, session_id: str) -> Session | None:
        """Return the session, or None. While Redis is not available, return one that was used here
        before."""
        name = _session(session_id)
        try:
            found: Any = await cast(Any, self._redis.hmget(name, ["key", "csrf"]))
        except RedisError:
            seen_s, known = self._remembered.get(name, (-math.inf, None))
            return known if time.monotonic() - seen_s < SESSION_S else None
        key_digest, csrf = found
        if key_digest is None or csrf is None:
            self._remembered.pop(name, None)
            return None
        session = Session(bytes.fromhex(key_digest), csrf)
        seen_s, _ = self._remembered.get(name, (time.monotonic(), session))
        self._remembered[name] = seen_s, session
        self._remembered.move_to_end(name)
        if len(self._remembered) > REMEMBERED_MOST:
            self._remembered.popitem(last=False)
        return session

    async def end(self, session_id: str) -> None:
        """End a session, at least here if Redis is not available."""
        name = _session(session_id)
        self._remembered.pop(name, None)
        await self._redis.delete(name)

    async def make_link(self, key_digest: bytes) -> str:
        """Return a token that begins one session for this key, within LINK_S."""
        token = secrets.token_urlsafe(RANDOM_BYTES)
        await self._redis.set(_link(token), key_digest.hex(), ex=LINK_S)
        return token

    async def linked(self, token: str) -> bytes | None:
        """Return the SHA-256 of the key that a link is for, or None: it is used or too old."""
        return _digest(await self._redis.get(_link(token)))

    async def use_link(self, token: str) -> bytes | None:
        """Do the same, and end the link."""
        return _digest(await self._redis.getdel(_link(token)))

    async def refused_s(self, address: str) -> int:
        """Return for how many seconds logins from an address are refused; 0: they are not."""
        name = _failures(address)
        if int(await self._redis.get(name) or 0) < FAILURES_MOST:
            return 0
        return max(1, await self._redis.ttl(name))

    async def count_failure(self, address: str) -> None:
        """Note a wrong key or link from an address."""
        name = _failures(address)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.incr(name)
            pipeline.expire(name, FAILURES_S, nx=True)
            await pipeline.execute()


def _session(session_id: str) -> str:
    return key("session", _sha256(session_id))


def _link(token: str) -> str:
    return key("login_link", _sha256(token))


def _failures(address: str) -> str:
    return key("failed_logins", address)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(text: Any) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
