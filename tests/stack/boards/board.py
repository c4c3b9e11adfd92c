"""What the panels of all boards show of a job, computed from its document without any of the code
that makes points or queries."""

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from grafana.queries import BoardQuery
from hostbench.base.units import human
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.results.document import planned_label
from tests.stack.boards.answers import Row

RATE, CLOCK = "operations_per_second", "clock_hertz"
BANDWIDTH, ACCESS_TIME = "bytes_per_second", "access_time_s"
COMMIT_TIME, ROUND_TRIP, LAUNCH_TIME = "commit_time_s", "round_trip_s", "launch_time_s"
PERCENTILES = tuple(f"latency_{name}_s" for name in ("p50", "p90", "p99", "p99_9"))
LATENCIES = {"A": "latency_p50_s", "B": "latency_p99_s"}
CARD = {"A": "nvml_clock_hertz", "B": "power_watts", "C": "temperature_celsius"}
TAGGED = (
    *("dtype", "isa", "threads", "chains"),  # of the CPU, and of several subsystems
    *("by", "on", "between", "call", "how", "kernel"),  # of what the kernel and siblings do
    *("stride_bytes", "pages", "pattern", "load", "operation", "index"),  # of memory
    *("cache_mode", "engine"),  # of disks
    *("target", "direction", "ip_version", "congestion", "wait"),  # of the network
    *("send_path", "receive_path", "udp_path"),
    *("backend", "instruction", "host_memory", "mode", "path"),  # of GPUs
)
# What a panel shows, from the letter of one of its queries.
Answer = Callable[[str], list[Row]]


class Board(ABC):
    """One board over a document whose points are all in the database."""

    def __init__(self, document: ResultDocument) -> None:
        self.document = document
        self.host = document.host.hostname
        self.cases = [case for case in document.cases if case.verdict is not None]
        # What misleads on purpose stands in tables and histories of all cases, nowhere else.
        self.sound = [case for case in self.cases if not case.naive]

    def rows(self, query: BoardQuery) -> list[Row]:
        """Return what this query must answer. Raise KeyError for a panel that is missing here."""
        return self.answers()[query.panel](query.ref)

    @abstractmethod
    def answers(self) -> Mapping[str, Answer]:
        """Return the answer of each panel, by its title."""

    def where(self, holds: Callable[[CaseResult], bool]) -> Self:
        """The same board over the cases for which this holds."""
        cases = tuple(case for case in self.document.cases if holds(case))
        return type(self)(self.document.model_copy(update={"cases": cases}))

    @staticmethod
    def most_taken(cases: Sequence[CaseResult]) -> Row:
        """What took most of the host during these cases."""
        found = [one for case in cases if (one := case.condition) and one.share is not None]
        if not found:
            return {}
        most = max(found, key=lambda one: one.share or 0.0)
        culprit = {} if most.culprit is None else {"culprit": most.culprit}
        return {"share": most.share, "condition": most.state.value, **culprit}

    # ---- a case ----

    def tags(self, case: CaseResult, *names: str) -> Row:
        """The tags of these names that the points of a case have."""
        params = self.params(case)
        known: dict[str, Any] = {
            "host": self.host,
            "workload": case.workload,
            # Without what `best` became, which stands in the label's last words. Line protocol
            # cannot end a tag with a backslash.
            "label": planned_label(case).replace("\\", "_"),
            "case": case.case,
            "subsystem": case.workload.partition(".")[0],
            **{name: str(params[name]) for name in TAGGED if name in params},
            "device": self._device(case),
        }
        return {name: known[name] for name in names if known.get(name)}

    @staticmethod
    def params(case: CaseResult) -> Row:
        """The parameters of a case as its program resolved them."""
        start = next((trial.start for trial in case.trials if trial.start), None)
        return {**case.params, **(start.params if start else {})}

    @staticmethod
    def _device(case: CaseResult) -> str:
        start = next((trial.start for trial in case.trials if trial.start), None)
        name = start.facts.get("device_name") if start else None
        return f"{start.params['device']}: {name}" if start and name else ""

    @staticmethod
    def time_ms(case: CaseResult) -> float:
        """When its first trial began."""
        return round(case.trials[0].time_unix_s * 1000)

    @staticmethod
    def fields(case: CaseResult) -> Row:
        """The fields of a case's primary metric."""
        found: Row = {
            "n": 0,
            "verdict": case.verdict,
            "until_ms": max(
                round((trial.time_unix_s + trial.wall_s) * 1000)
                for trial in [*case.trials, *(t for peer in case.peers for t in peer.trials)]
            ),
        }
        if case.reasons:
            found["reason"] = "; ".join(reason.text for reason in case.reasons)[:300]
        peer = next((peer for peer in case.peers if peer.ratio), None)
        if peer is not None and peer.ratio is not None and peer.statistics is not None:
            found["peer"] = peer.tool
            found["peer_ratio"] = peer.ratio.median
            found["peer_value"] = peer.statistics.median
            if peer.metric in case.metrics:
                found["peer_ours"] = case.metrics[peer.metric].statistics.median
        metric = case.metrics.get(case.primary)
        if metric is not None:
            found["n"] = metric.statistics.n
            found["value"] = metric.statistics.median
            found["spread"] = metric.statistics.half_width_ratio
            found["limit"] = metric.limit.value if metric.limit else None
            found["efficiency"] = metric.efficiency
        found["delivered_ratio"] = case.delivered_ratio
        found["best"] = case.best
        if case.condition is not None:
            found["condition"] = case.condition.state.value
            found["culprit"] = case.condition.culprit
        return {name: value for name, value in found.items() if value is not None}

    def unit(self, case: CaseResult) -> str:
        metrics = self.document.workloads[case.workload]
        return next(metric.unit for metric in metrics if metric.name == case.primary)

    def case_row(self, case: CaseResult) -> Row:
        return {"time": self.time_ms(case), **self.tags(case, "host", "workload", "label", "case")}

    def point(self, case: CaseResult, metric: str, y: str, tags: Sequence[str]) -> Row:
        """A case as a point of a curve, but for its place on the x axis."""
        row = {"time": self.time_ms(case), **self.tags(case, "host", "case", *tags), "n": 0}
        found = case.metrics.get(metric)
        if found is not None:
            row |= {"n": found.statistics.n, y: found.statistics.median}
        return row

    def number(self, case: CaseResult, param: str, name: str) -> Row:
        value = self.params(case).get(param)
        return {name: value} if isinstance(value, int | float) else {}

    # ---- cases with a metric ----

    def rated(self, metric: str) -> Iterator[tuple[CaseResult, float]]:
        """Sound cases with this primary metric."""
        for case in self.sound:
            if case.primary == metric and metric in case.metrics:
                yield case, case.metrics[metric].statistics.median

    def measured(
        self, metric: str, cases: Sequence[CaseResult] | None = None
    ) -> Iterator[tuple[CaseResult, float]]:
        """Cases with this metric; without `cases`: of the sound ones."""
        for case in self.sound if cases is None else cases:
            if metric in case.metrics:
                yield case, case.metrics[metric].statistics.median

    def figures(self, metric: str, _ref: str = "") -> list[Row]:
        return [{**self.case_row(case), "value": value} for case, value in self.rated(metric)]

    def values(self, metric: str, cases: Sequence[CaseResult] | None = None) -> list[Row]:
        return [
            {**self.case_row(case), "value": value} for case, value in self.measured(metric, cases)
        ]

    def history(self, field: str) -> list[Row]:
        return [
            {**self.case_row(case), field: fields[field]}
            for case in self.cases
            if field in (fields := self.fields(case))
        ]

    def beside(self, metric: str, _ref: str = "") -> list[Row]:
        names = ("n", "value", "limit", "peer_value", "peer_ours")
        return [
            {
                "time": self.time_ms(case),
                **self.tags(case, "host", "label", "case"),
                **{k: v for k, v in self.fields(case).items() if k in names},
            }
            for case in self.sound
            if case.primary == metric
        ]

    def highest(self, metric: str, name: str, *tags: str) -> list[Row]:
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case, value in self.rated(metric):
            key = tuple(self.tags(case, *tags).items())
            if len(key) == len(tags):
                found[key] = max(found.get(key, 0.0), value)
        return [{**dict(key), name: value} for key, value in found.items()]

    def least(self, field: str, *names: str) -> list[Row]:
        grouped: dict[tuple[tuple[str, str], ...], list[float]] = {}
        for case in self.cases:
            value = self.fields(case).get(field)
            if value is not None:
                grouped.setdefault(tuple(self.tags(case, *names).items()), []).append(value)
        return [{**dict(tags), "min": min(values)} for tags, values in grouped.items()]

    def by_workload(self, _ref: str) -> list[Row]:
        return self.least("efficiency", "workload")

    def peers(self, _ref: str) -> list[Row]:
        found: dict[str, list[float]] = {}
        for case in self.cases:
            for peer in case.peers:
                if peer.ratio is not None:
                    found.setdefault(peer.tool, []).append(peer.ratio.median)
        return [
            {"tool": tool, "median": statistics.median(ratios)} for tool, ratios in found.items()
        ]

    def table(self, _ref: str) -> list[Row]:
        found = []
        for case in self.cases:
            fields = self.fields(case)
            for bar in ("peer_value", "peer_ours"):
                fields.pop(bar, None)
            own = {"job": self.document.job.id}
            if (value := fields.pop("value", None)) is not None:
                own["figure"] = human(value, self.unit(case))
            tags = self.tags(case, "host", "workload", "label", "case")
            found.append({"time": self.time_ms(case), **tags, **fields, **own})
        return found

    # ---- samples and trials ----

    def sampled(self, metric: str) -> Iterator[tuple[CaseResult, int, float]]:
        """The samples of a metric, with their time in ms."""
        for case in self.document.cases:
            for trial in case.trials:
                for sample in trial.samples:
                    value = sample.metrics.get(metric)
                    if value is not None:
                        yield case, round((trial.time_unix_s + sample.t_s) * 1000), value

    def samples(self, metric: str, _ref: str = "") -> list[Row]:
        buckets: dict[tuple[str, int], list[float]] = {}
        tags: dict[str, Row] = {}
        for case, time_ms, value in self.sampled(metric):
            buckets.setdefault((case.case, time_ms // 1000 * 1000), []).append(value)
            tags[case.case] = self.tags(case, "host", "workload", "label")
        return [
            {**tags[case], "time": time_ms, "mean": statistics.fmean(values)}
            for (case, time_ms), values in buckets.items()
        ]

    def usage(self) -> Iterator[tuple[int, str, float]]:
        """What each component of the stack used of a CPU: time in ms, name, ratio."""
        for case in self.document.cases:
            for trial in [*case.trials, *(one for peer in case.peers for one in peer.trials)]:
                if trial.control_plane is not None:
                    for process in trial.control_plane.processes:
                        yield (
                            round(trial.time_unix_s * 1000),
                            process.component,
                            process.cpu_s / process.elapsed_s,
                        )


class SubsystemBoard(Board):
    """The board of one subsystem, over its cases."""

    def answers(self) -> Mapping[str, Answer]:
        """These are on the board of every subsystem."""
        return {
            "Lowest share of the limit, by workload": self.by_workload,
            "Ours / peer": self.peers,
            "Latest result of every case": self.table,
            "Share of the limit": lambda _: self.history("efficiency"),
            "Ours over the peer's": lambda _: self.history("peer_ratio"),
            "Spread": lambda _: self.history("spread"),
        }
