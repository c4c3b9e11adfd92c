"""The state of the orchestrator: the checks of GET /healthz, the figures of GET /metrics, and what
it and Redis use during a trial."""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

import redis
import redis.asyncio
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import OutOfMemoryError, RedisError

from hostbench.base.units import plural
from hostbench.host.usage import ProcessMeter
from hostbench.model.events import ProcessUsage
from hostbench.model.jobs import Health, PartHealth, QueueMemory
from hostbench.remote.transport import Usage
from orchestrator.queue.connection import key
from orchestrator.queue.jobs import JobStore
from orchestrator.results.archive import Archive
from orchestrator.results.limits import Limits

ANSWER_S_MOST = 1.0
Check = Callable[[], Awaitable[PartHealth]]

# Without these parts no job can run.
VITAL = frozenset({"redis", "scheduler", "keeper"})
DISPATCH_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
Lengths = Callable[[], dict[str, float]]


async def health(checks: Mapping[str, Check]) -> Health:
    """Run all checks at once, each limited to ANSWER_S_MOST, and return the answer."""
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


def redis_check(client: redis.asyncio.Redis, jobs: JobStore) -> Check:
    """Return a check whether Redis answers, can be written to, and accepts new jobs. `jobs` answers
    within a second."""

    async def check() -> PartHealth:
        try:
            # It counts as a write, so Redis refuses it when it refuses others; but it writes
            # nothing.
            with contextlib.suppress(OutOfMemoryError):
                await client.set(key("nothing"), "", xx=True)
            memory = await asyncio.to_thread(jobs.memory)
        except (RedisError, OSError) as error:
            return PartHealth(status="down", detail=f"Redis cannot be used: {error}")
        if memory.full:
            return PartHealth(status="degraded", detail=memory.refusal)
        detail = f"{memory.text}, {plural(memory.ended_jobs, 'ended job')} kept"
        return PartHealth(status="ok", detail=detail)

    return check


def results_check(archive: Archive, limits: Limits) -> Check:
    """Return a check whether results can be stored, including those of new jobs, and how long they
    are kept."""

    async def check() -> PartHealth:
        path = archive.results.root
        if not await asyncio.to_thread(os.access, path, os.W_OK | os.X_OK):
            return PartHealth(status="degraded", detail=f"{path} may not be written")
        refusal = await asyncio.to_thread(archive.refusal)
        if refusal is not None:
            return PartHealth(status="degraded", detail=refusal)
        return PartHealth(status="ok", detail=limits.text)

    return check


def thread_check(alive: Callable[[], bool]) -> Check:
    """Return a check whether a thread that must not end still runs."""

    async def check() -> PartHealth:
        if alive():
            return PartHealth(status="ok")
        return PartHealth(status="down", detail="it has ended; start this orchestrator again")

    return check


class Metrics:
    """The metrics of one orchestrator. What Redis holds is read at each scrape."""

    def __init__(
        self,
        jobs: JobStore,
        running_here: Callable[[], int],
        outbox: Lengths,
        hosts: Callable[[], bytes],
    ) -> None:
        """`outbox` returns its figures by name, such as `entries`; empty without InfluxDB. `hosts`
        returns the series of the hosts, as text."""
        self._hosts = hosts
        self._registry = CollectorRegistry()
        self._registry.register(_Shared(jobs, running_here, outbox))
        self.dispatch_seconds = Histogram(
            "hostbench_dispatch_seconds",
            "From the moment a job could start to its leases",
            buckets=DISPATCH_BUCKETS_S,
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self._registry) + self._hosts()


class _Shared(Collector):
    def __init__(self, jobs: JobStore, running_here: Callable[[], int], outbox: Lengths) -> None:
        self._jobs = jobs
        self._running_here = running_here
        self._outbox = outbox

    def collect(self) -> Iterator[Metric]:
        yield _gauge("hostbench_leases", "Jobs that hold hosts here", self._running_here())
        try:
            counts, outbox, memory = self._jobs.counts(), self._outbox(), self._jobs.memory()
        except RedisError:
            yield _gauge("hostbench_redis_up", "Whether Redis answers", 0)
            return
        yield _gauge("hostbench_redis_up", "Whether Redis answers", 1)
        states = GaugeMetricFamily("hostbench_jobs", "Jobs that Redis knows", labels=["state"])
        for state, count in counts.items():
            states.add_metric([state], count)
        yield states
        for name, text, value in _memory_figures(memory):
            yield _gauge(f"hostbench_redis_{name}", text, value)
        for name, value in outbox.items():
            yield _gauge(f"hostbench_outbox_{name}", "Of the outbox of points for InfluxDB", value)


def _memory_figures(memory: QueueMemory) -> Iterator[tuple[str, str, float]]:
    yield "used_bytes", "What Redis uses of its memory", memory.used_bytes
    if memory.limit_bytes is not None:
        yield "limit_bytes", "What Redis may use (maxmemory)", memory.limit_bytes
    yield "full", "Whether Redis has no room for new jobs", memory.full
    if memory.oldest_ended_unix_s is not None:
        age_s = max(0.0, time.time() - memory.oldest_ended_unix_s)
        yield "oldest_ended_seconds", "Since when the oldest job that Redis keeps has ended", age_s


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


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
                        # Less than before: Redis was restarted.
                        cpu_s=max(0.0, redis_after_s - redis_before_s),
                        elapsed_s=max(1e-9, time.monotonic() - started_s),
                        written_bytes=None,
                    )
                )
            return used

        return taken

    return begin


def _cpu_s(client: redis.Redis) -> float | None:
    """Return the CPU time of Redis so far, including its background threads and children."""
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
