"""GET /metrics: how the orchestrator and what it shares with others stand."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from orchestrator.queue.jobs import JobStore

DISPATCH_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
Lengths = Callable[[], dict[str, float]]


class Metrics:
    """Of one orchestrator; what Redis holds is read when somebody asks."""

    def __init__(self, jobs: JobStore, running_here: Callable[[], int], outbox: Lengths) -> None:
        """`outbox`: its figures by name, such as `entries`; empty without InfluxDB."""
        self._registry = CollectorRegistry()
        self._registry.register(_Shared(jobs, running_here, outbox))
        self.dispatch_seconds = Histogram(
            "hostbench_dispatch_seconds",
            "From the moment a job could start to its leases",
            buckets=DISPATCH_BUCKETS_S,
            registry=self._registry,
        )

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)


class _Shared(Collector):
    def __init__(self, jobs: JobStore, running_here: Callable[[], int], outbox: Lengths) -> None:
        self._jobs = jobs
        self._running_here = running_here
        self._outbox = outbox

    def collect(self) -> Iterator[Metric]:
        yield _gauge("hostbench_leases", "Jobs that hold hosts here", self._running_here())
        try:
            counts, outbox = self._jobs.counts(), self._outbox()
        except RedisError:
            yield _gauge("hostbench_redis_up", "Whether Redis answers", 0)
            return
        yield _gauge("hostbench_redis_up", "Whether Redis answers", 1)
        states = GaugeMetricFamily("hostbench_jobs", "Jobs that Redis knows", labels=["state"])
        for state, count in counts.items():
            states.add_metric([state], count)
        yield states
        for name, value in outbox.items():
            yield _gauge(f"hostbench_outbox_{name}", "Of the outbox of points for InfluxDB", value)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)
