"""What the panels of the board Network show of a job."""

from collections.abc import Iterator, Mapping
from functools import partial

from hostbench.model.result import CaseResult
from tests.stack.boards.answers import Row
from tests.stack.boards.board import (
    BANDWIDTH,
    LATENCIES,
    PERCENTILES,
    RATE,
    ROUND_TRIP,
    Answer,
    SubsystemBoard,
)


class NetBoard(SubsystemBoard):
    """Streams, round trips and connections."""

    def answers(self) -> Mapping[str, Answer]:
        # Throughput is compared only where no rate was requested.
        free = self.where(lambda case: not case.params.get("rate"))
        return {
            **super().answers(),
            "Highest throughput by workload": lambda _: free.highest(BANDWIDTH, "max", "workload"),
            "Highest throughput by workload and target": lambda _: free.highest(
                BANDWIDTH, "rate", "workload", "target"
            ),
            "Lowest share of the limit, by workload": free.by_workload,
            "Round trip": self._shortest_trips,
            "Throughput over the block size": partial(
                free._stream_over, "block_bytes", "block size", "streams"
            ),
            "Throughput over the number of streams": partial(
                free._stream_over, "streams", "number of streams", "block_bytes"
            ),
            "Highest throughput by workload and direction": lambda _: free.highest(
                BANDWIDTH, "rate", "workload", "direction"
            ),
            "Loss over the offered rate": lambda _: self._over_offered("lost_ratio", "lost"),
            "Received over the offered rate": lambda _: self._over_offered(BANDWIDTH, "received"),
            "Round trip of one stream": self._trips_of_one_stream,
            "Round trip over the block size": self._trips_over_blocks,
            "Round trip under load": self._trips_under_load,
            "Connections over the number of streams": self._connections,
            "CPU time, near end": lambda _: self.values("cpu_seconds_per_gigabyte"),
            "CPU time, far end": lambda _: self.values("far_cpu_seconds_per_gigabyte"),
            "Retransmits": lambda _: self.values("retransmits"),
            "Throughput, second by second": partial(self.samples, BANDWIDTH),
            "Operations, second by second": partial(self.samples, RATE),
            "Round trips, second by second": lambda ref: self.samples(LATENCIES[ref]),
            "Throughput": partial(free.figures, BANDWIDTH),
            "Round trips": partial(self.figures, ROUND_TRIP),
            "Lost datagrams": lambda _: self.values("lost_ratio"),
            "Connections": partial(self.figures, RATE),
            "Share of the limit": lambda _: free.history("efficiency"),
            "$stream: ours, the limit, the peer": partial(free.beside, BANDWIDTH),
            "$stream: history": partial(free.figures, BANDWIDTH),
            "$trip: ours and the peer": partial(self.beside, ROUND_TRIP),
            "$trip: history": partial(self.figures, ROUND_TRIP),
        }

    def _shortest_trips(self, _ref: str) -> list[Row]:
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case, value in self.rated(ROUND_TRIP):
            key = tuple(self.tags(case, "workload", "target").items())
            found[key] = min(found.get(key, value), value)
        return [{**dict(key), "min": value} for key, value in found.items()]

    def _stream_over(self, x: str, axis: str, other: str, _ref: str) -> list[Row]:
        tags = (
            "workload", "target", "direction", "ip_version", "send_path", "receive_path",
            "udp_path", "congestion",
        )  # fmt: skip
        return [
            {
                **self.point(case, BANDWIDTH, "throughput", tags),
                **self.number(case, x, axis),
                **self.number(case, other, other),
            }
            for case in self.sound
            if case.primary == BANDWIDTH
        ]

    def _over_offered(self, metric: str, y: str) -> list[Row]:
        found = []
        for case in self.cases:
            has_figure = metric in case.metrics or (metric == case.primary and not case.metrics)
            if case.workload != "net.udp_stream" or not has_figure:
                continue
            row = self.point(case, metric, y, ("target", "direction", "ip_version", "udp_path"))
            if "offered_bytes_per_second" in case.metrics:
                row["offered"] = case.metrics["offered_bytes_per_second"].statistics.median
            for param in ("block_bytes", "streams"):
                row |= self.number(case, param, param)
            found.append(row)
        return found

    def _trips(self, *, loaded: bool) -> Iterator[tuple[CaseResult, str, float]]:
        """Percentiles of round trips, with a load beside them or without."""
        names = ("net.tcp_rr", "net.udp_rr")
        cases = [case for case in self.cases if case.workload in names]
        for metric in PERCENTILES:
            for case, value in self.measured(metric, cases):
                if (self.params(case)["load_streams"] > 0) is loaded:
                    yield case, metric, value

    def _trip(self, case: CaseResult, metric: str) -> Row:
        row = self.point(case, metric, "round trip", ("workload", "target", "wait"))
        return {**row, "metric": metric}

    def _trips_of_one_stream(self, _ref: str) -> list[Row]:
        found: dict[tuple[str, str], float] = {}
        for case, metric, value in self._trips(loaded=False):
            if self.params(case)["streams"] == 1:
                key = (case.workload, metric)
                found[key] = max(found.get(key, 0.0), value)
        return [
            {"workload": workload, "metric": metric, "rate": value}
            for (workload, metric), value in found.items()
        ]

    def _trips_over_blocks(self, _ref: str) -> list[Row]:
        return [
            {
                **self._trip(case, metric),
                **self.number(case, "block_bytes", "block size"),
                **self.number(case, "streams", "streams"),
            }
            for case, metric, _ in self._trips(loaded=False)
        ]

    def _trips_under_load(self, _ref: str) -> list[Row]:
        found = []
        for case, metric, _ in self._trips(loaded=True):
            row = self._trip(case, metric)
            for param in ("load_streams", "block_bytes", "streams"):
                row |= self.number(case, param, param)
            if "load_bytes_per_second" in case.metrics:
                row["bandwidth taken"] = case.metrics["load_bytes_per_second"].statistics.median
            found.append(row)
        return found

    def _connections(self, _ref: str) -> list[Row]:
        return [
            {
                **self.point(case, RATE, "connections a second", ("workload", "target")),
                **self.number(case, "streams", "number of streams"),
                **self.number(case, "block_bytes", "block_bytes"),
            }
            for case in self.cases
            if case.primary == RATE
        ]
