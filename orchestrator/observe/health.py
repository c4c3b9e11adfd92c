"""GET /healthz: each part of the stack and how it stands, within a second."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping

import redis.asyncio
from redis.exceptions import OutOfMemoryError, RedisError

from hostbench.model.jobs import Health, PartHealth
from orchestrator.queue.connection import key

ANSWER_S_MOST = 1.0
Check = Callable[[], Awaitable[PartHealth]]

# Without these no job can run.
VITAL = frozenset({"redis", "scheduler", "keeper"})


async def health(checks: Mapping[str, Check]) -> Health:
    """All checks at once."""
    answers = await asyncio.gather(*(_bounded(check) for check in checks.values()))
    parts = dict(zip(checks, answers, strict=True))
    bad = [name for name, part in parts.items() if part.status in ("degraded", "down")]
    if any(parts[name].status == "down" for name in bad if name in VITAL):
        return Health(status="down", parts=parts)
    return Health(status="degraded" if bad else "ok", parts=parts)


async def _bounded(check: Check) -> PartHealth:
    try:
        async with asyncio.timeout(ANSWER_S_MOST):
            return await check()
    except TimeoutError:
        return PartHealth(status="down", detail=f"no answer within {ANSWER_S_MOST:g} s")


def redis_check(client: redis.asyncio.Redis) -> Check:
    """Whether Redis answers, and may be written."""

    async def check() -> PartHealth:
        try:
            # As a write it is refused where others would be, and it writes nothing.
            await client.set(key("nothing"), "", xx=True)
        except OutOfMemoryError:
            return PartHealth(
                status="degraded",
                detail="Redis is full: running jobs go on, nothing new is accepted; give it more "
                "memory (maxmemory)",
            )
        except (RedisError, OSError) as error:
            return PartHealth(status="down", detail=f"Redis cannot be used: {error}")
        return PartHealth(status="ok")

    return check


def results_check(path: os.PathLike[str]) -> Check:
    """Whether results can be stored."""

    async def check() -> PartHealth:
        if await asyncio.to_thread(os.access, path, os.W_OK | os.X_OK):
            return PartHealth(status="ok")
        return PartHealth(status="degraded", detail=f"{os.fspath(path)} may not be written")

    return check


def thread_check(alive: Callable[[], bool]) -> Check:
    """Whether a thread that must not end still runs."""

    async def check() -> PartHealth:
        if alive():
            return PartHealth(status="ok")
        return PartHealth(status="down", detail="it has ended; start this orchestrator again")

    return check
