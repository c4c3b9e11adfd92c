"""What the control plane takes while a trial runs: this process, and Redis."""

import time
from collections.abc import Callable

import redis
from redis.exceptions import RedisError

from hostbench.host.usage import ProcessMeter
from hostbench.model.events import ProcessUsage
from hostbench.remote.transport import Usage


def control_plane_meter(client: redis.Redis) -> Callable[[], Usage]:
    """See hostbench.remote.transport.HttpTransport. Redis is left out when it does not answer."""

    def begin() -> Usage:
        process = ProcessMeter("orchestrator")
        started_s, redis_before_s = time.monotonic(), _cpu_s(client)

        def taken() -> list[ProcessUsage]:
            used = [process.taken()]
            redis_after_s = _cpu_s(client)
            if redis_before_s is not None and redis_after_s is not None:
                used.append(
                    ProcessUsage(
                        component="redis",
                        # Less than before: it was started anew.
                        cpu_s=max(0.0, redis_after_s - redis_before_s),
                        elapsed_s=max(1e-9, time.monotonic() - started_s),
                        written_bytes=None,
                    )
                )
            return used

        return taken

    return begin


def _cpu_s(client: redis.Redis) -> float | None:
    """The CPU time of Redis so far, its background threads and children included."""
    try:
        answer = client.info("cpu")
    except RedisError:
        return None
    assert isinstance(answer, dict)
    return sum(
        float(answer[name])
        for name in (
            "used_cpu_sys",
            "used_cpu_user",
            "used_cpu_sys_children",
            "used_cpu_user_children",
        )
    )
