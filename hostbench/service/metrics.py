"""The counters of the service, for Prometheus."""

from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.process_collector import ProcessCollector

from hostbench.host.lock import fence_of
from hostbench.model.result import ProgramVersion

# The kinds of what a service runs: `AdmittedCall.kind`.
KINDS = (TRIAL, SESSION) = ("trial", "session")


class Metrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self, host: str, program: ProgramVersion, lock: Path) -> None:
        """`lock`: the file from which the fence is read at each scrape."""
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._ended = {
            kind: Counter(
                f"hostbench_service_{kind}s",
                f"{kind.capitalize()}s by tool and by how they ended.",
                ("tool", "outcome"),
                registry=self._registry,
            )
            for kind in KINDS
        }
        self.running = Gauge(
            "hostbench_service_trials_running",
            "Trials and sessions that run or wait for the host.",
            registry=self._registry,
        )
        self.registrations = Counter(
            "hostbench_service_registrations",
            "Attempts to register with the orchestrator, by how they ended.",
            ("outcome",),
            registry=self._registry,
        )
        fence = Gauge(
            "hostbench_service_fence",
            "The highest fence that was presented on this host.",
            registry=self._registry,
        )
        fence.set_function(lambda: fence_of(lock))
        build = Gauge(
            "hostbench_service_info",
            "The host and the program of this service.",
            ("host", "subsystem", "version"),
            registry=self._registry,
        )
        build.labels(host=host, subsystem=program.subsystem, version=program.version).set(1)

    def count(self, kind: str, tool: str, outcome: str) -> None:
        """Count the end of one of KINDS."""
        self._ended[kind].labels(tool=tool, outcome=outcome).inc()

    def exposition(self) -> bytes:
        """Return all present values in the text format."""
        return generate_latest(self._registry)
