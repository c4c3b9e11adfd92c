"""The connection to Redis, and the scripts that it runs."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import redis
import redis.asyncio
from pydantic import SecretStr
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

# One hash tag, so that all keys are in one slot.
PREFIX = "{hostbench}:"
CONNECT_TIMEOUT_S = 1.0
# A slow disk may delay the AOF for seconds.
ANSWER_TIMEOUT_S = 5.0
# One for each thread of jobs and calls, and for each watcher; redis-py's default is 100.
CONNECTIONS_MOST = 500
LUA = Path(__file__).with_name("lua")


def key(*parts: str) -> str:
    """Return the key `{hostbench}:part:part`."""
    return PREFIX + ":".join(parts)


def _options(
    password: SecretStr | None, answer_timeout_s: float, connect_timeout_s: float
) -> dict[str, Any]:
    return {
        "password": password and password.get_secret_value(),
        "decode_responses": True,
        "socket_connect_timeout": connect_timeout_s,
        "socket_timeout": answer_timeout_s,
        "max_connections": CONNECTIONS_MOST,
        "client_name": "hostbench-orchestrator",
        # A script whose answer was lost may have run, so the caller decides about a retry.
        "retry": Retry(NoBackoff(), 0),
    }


def connect(
    url: str,
    password: SecretStr | None = None,
    answer_timeout_s: float = ANSWER_TIMEOUT_S,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
) -> redis.Redis:
    """Return a client for any number of threads. It connects when it is used."""
    return redis.Redis.from_url(url, **_options(password, answer_timeout_s, connect_timeout_s))


def connect_async(url: str, password: SecretStr | None = None) -> redis.asyncio.Redis:
    """Return a client for the event loop."""
    options = _options(password, ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S)
    options["retry"] = AsyncRetry(NoBackoff(), 0)
    return redis.asyncio.Redis.from_url(url, **options)


@cache
def _text(name: str, *, grows: bool) -> str:
    flags = "" if grows else " flags=allow-oom"
    return f"#!lua{flags}\n" + "".join(
        (LUA / f"{part}.lua").read_text() for part in ("common", name)
    )


class Scripts:
    """The scripts of lua/, by name. Redis keeps them; one that lost them gets them again."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._scripts = {
            (path.stem, grows): client.register_script(_text(path.stem, grows=grows))
            for path in LUA.glob("*.lua")
            if path.stem != "common"
            for grows in (False, True)
        }

    def __call__(self, name: str, *arguments: str | int, grows: bool = False) -> Any:
        """Run a script. Raise RedisError.

        `grows`: the script needs memory for something new, so a full Redis refuses it with
        OutOfMemoryError. All other scripts run, so that existing jobs can go on and end.
        """
        return self._scripts[name, grows](keys=[PREFIX], args=arguments)


def flat(fields: dict[str, str]) -> Sequence[str]:
    """Return names and values in turn, as the scripts take them."""
    return [word for pair in fields.items() for word in pair]
