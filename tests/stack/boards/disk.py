"""What the panels of the board Disk show of a job."""

from collections.abc import Mapping
from functools import partial

from hostbench.model.result import CaseResult
from tests.stack.boards.answers import Row
from tests.stack.boards.board import (
    BANDWIDTH,
    COMMIT_TIME,
    LATENCIES,
    PERCENTILES,
    RATE,
    Answer,
    SubsystemBoard,
)


class DiskBoard(SubsystemBoard):
    """Throughputs, operations and commits."""

    def answers(self) -> Mapping[str, Answer]:
        found: dict[str, Answer] = {
            **super().answers(),
            "Highest throughput by workload": lambda _: self._accessed(
                BANDWIDTH, "max", "workload"
            ),
            "Highest rate by workload": lambda _: self._accessed(RATE, "max", "workload"),
            "Highest throughput by workload and cache mode": lambda _: self._accessed(
                BANDWIDTH, "rate", "workload", "cache_mode"
            ),
            "Time of a commit": self._commit_times,
            "Latency of one operation at a time": self._one_at_a_time,
            "Latency over the queue depth": self._latency_over_depth,
            "Read at the device": lambda _: self.values("device_read_ratio"),
            "In memory before": lambda _: self.values("cached_ratio_before"),
            "Device busy": lambda _: self.values("device_busy_ratio"),
            "Throughput, second by second": partial(self.samples, BANDWIDTH),
            "Operations, second by second": partial(self.samples, RATE),
            "Latency, second by second": lambda ref: self.samples(LATENCIES[ref]),
            "Throughput": lambda _: self.values(BANDWIDTH, self._accesses()),
            "Operations": lambda _: self.values(RATE, self._accesses()),
            "Slowest of a hundred": lambda _: self.values("latency_p99_s", self._accesses()),
            "Commits": partial(self.figures, COMMIT_TIME),
        }
        for metric, what in ((BANDWIDTH, "Throughput"), (RATE, "Operations")):
            found[f"{what} over the block size"] = partial(
                self._over, metric, what, "block_bytes", "queue_depth"
            )
            found[f"{what} over the queue depth"] = partial(
                self._over, metric, what, "queue_depth", "block_bytes"
            )
        for row, metric in (("stream", BANDWIDTH), ("access", RATE)):
            found[f"${row}: ours, the limit, the peer"] = partial(self.beside, metric)
            found[f"${row}: history"] = partial(self.figures, metric)
        return found

    def _accesses(self) -> list[CaseResult]:
        names = ("disk.seq_", "disk.rand_")
        return [case for case in self.cases if case.workload.startswith(names)]

    def _accessed(self, metric: str, name: str, *tags: str) -> list[Row]:
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case, value in self.measured(metric, self._accesses()):
            key = tuple(self.tags(case, *tags).items())
            found[key] = max(found.get(key, 0.0), value)
        return [{**dict(key), name: value} for key, value in found.items()]

    def _commit_times(self, ref: str) -> list[Row]:
        name, choose = {"A": ("min", min), "B": ("max", max)}[ref]
        values = [value for _, value in self.rated(COMMIT_TIME)]
        return [{name: choose(values)}] if values else []

    def _over(self, metric: str, what: str, x: str, other: str, _ref: str) -> list[Row]:
        axis = {"block_bytes": "block size", "queue_depth": "queue depth"}[x]
        tags = ("workload", "cache_mode", "engine", "threads")
        return [
            {
                **self.point(case, metric, f"{what.lower()} a second", tags),
                **self.number(case, x, axis),
                **self.number(case, other, other),
            }
            for case in self._accesses()
            if metric in case.metrics or (metric == case.primary and not case.metrics)
        ]

    def _latency_over_depth(self, _ref: str) -> list[Row]:
        tags = ("workload", "cache_mode", "engine", "threads")
        return [
            {
                **self.point(case, metric, "latency", tags),
                **self.number(case, "queue_depth", "queue depth"),
                **self.number(case, "block_bytes", "block_bytes"),
                "metric": metric,
            }
            for metric in PERCENTILES
            for case, _ in self.measured(metric, self._accesses())
        ]

    def _one_at_a_time(self, _ref: str) -> list[Row]:
        found: dict[tuple[str, str], float] = {}
        for metric in PERCENTILES:
            for case, value in self.measured(metric, self._accesses()):
                params = self.params(case)
                if params["threads"] == 1 and params["queue_depth"] == 1:
                    key = (case.workload, metric)
                    found[key] = max(found.get(key, 0.0), value)
        return [
            {"workload": workload, "metric": metric, "rate": value}
            for (workload, metric), value in found.items()
        ]
