"""What every query of the boards must answer when a database holds one job: computed from its
document, without any of the code that makes points or queries."""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from grafana.queries import BoardQuery
from hostbench.base.units import human
from hostbench.model.registry import built_in_names, find_subsystem
from hostbench.model.result import CaseResult, ResultDocument, TrialRecord, Verdict
from hostbench.results.document import planned_label
from orchestrator.influx.client import Series

Row = dict[str, Any]
RATE, CLOCK = "operations_per_second", "clock_hertz"
BANDWIDTH, ACCESS_TIME = "bytes_per_second", "access_time_s"
COMMIT_TIME, ROUND_TRIP, LAUNCH_TIME = "commit_time_s", "round_trip_s", "launch_time_s"
FIGURES = dict(
    zip("ABCDEF", (RATE, BANDWIDTH, ACCESS_TIME, COMMIT_TIME, ROUND_TRIP, LAUNCH_TIME), strict=True)
)
# What the table of latest samples calls them.
FIGURE_NAMES = dict(
    zip(
        FIGURES.values(),
        ("operations", "bytes", "an access", "a commit", "a round trip", "a launch"),
        strict=True,
    )
)
CARD = {"A": "nvml_clock_hertz", "B": "power_watts", "C": "temperature_celsius"}
PERCENTILES = tuple(f"latency_{name}_s" for name in ("p50", "p90", "p99", "p99_9"))
LATENCIES = {"A": "latency_p50_s", "B": "latency_p99_s"}
SAMPLE_METRICS = {
    "Clean slices": "clean_slice_ratio",
    "Core clock": CLOCK,
    "Clock of the GPU": CARD["A"],
    "Power of the GPU": CARD["B"],
    "Temperature of the GPU": CARD["C"],
}
TAGGED = (
    "dtype", "isa", "threads", "pages", "pattern", "load", "operation", "index", "cache_mode",
    "engine", "target", "direction", "ip_version", "send_path",
    "receive_path", "udp_path", "congestion", "wait", "backend", "instruction", "host_memory",
    "mode", "path",
)  # fmt: skip


def rows_of(answer: Iterable[Series]) -> list[Row]:
    """The rows of an answer with their tags; what is empty or null is left out, and so is a row
    with nothing but its time."""
    return [
        {**{name: tag for name, tag in series.tags.items() if tag}, **row}
        for series in answer
        for row in series.rows()
        if row.keys() != {"time"}
    ]


def difference(found: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """What differs, in any order; times count where `expected` has them."""
    timed = any("time" in row for row in expected)
    left = [row if timed else {k: v for k, v in row.items() if k != "time"} for row in found]
    for row in expected:
        match = next((one for one in left if _same(one, row)), None)
        if match is None:
            return f"{row} is missing among {left}"
        left.remove(match)
    return f"{left} should not be there" if left else None


def _same(one: Row, other: Row) -> bool:
    return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def is_of_several_jobs(query: BoardQuery) -> bool:
    """Whether it asks for what no job says alone."""
    return 'FROM "decision"' in query.text or 'FROM "change"' in query.text


class Expected:
    """The answers for one document whose points are all in the database."""

    def __init__(self, document: ResultDocument) -> None:
        self.document = document
        self.host = document.host.hostname
        self.cases = [case for case in document.cases if case.verdict is not None]
        # What misleads on purpose stands in tables and histories of all cases, nowhere else.
        self.sound = [case for case in self.cases if not case.naive]

    def rows(self, query: BoardQuery) -> list[Row]:
        """Return what this query must answer. Raise KeyError for a panel that is missing here."""
        if is_of_several_jobs(query):
            return []  # tests/influx/test_decisions.py has jobs for them
        board = query.board.removeprefix("hostbench-")
        if board in built_in_names():
            return self._of_subsystem(board)._rows(board, query)
        return self._rows(board, query)

    def _of_subsystem(self, subsystem: str) -> "Expected":
        cases = [one for one in self.document.cases if one.workload.startswith(f"{subsystem}.")]
        return Expected(self.document.model_copy(update={"cases": tuple(cases)}))

    def _rows(self, board: str, query: BoardQuery) -> list[Row]:
        answers: dict[tuple[str, str], Callable[[str], list[Row]]] = {
            ("overview", "Hosts"): lambda _: [{"count": 1}],
            ("overview", "Cases"): lambda _: [{"count": len(self.cases)}],
            ("overview", "Latest verdicts"): self._verdicts,
            ("overview", "hostbench's own use of the CPU"): self._own_use_median,
            ("overview", "Lowest share of the limit"): lambda _: self._worst("efficiency"),
            ("overview", "Lowest share delivered"): lambda _: self._worst("delivered_ratio"),
            ("overview", "Each subsystem in a line"): self._lines,
            ("overview", "Lowest share of the limit, by workload"): self._by_workload,
            ("overview", "Latest result of every case"): self._table,
            ("overview", "Jobs"): self._jobs,
            ("cpu", "Highest rate by type"): lambda _: self._highest(RATE, "max", "dtype"),
            ("cpu", "Lowest share of the limit, by workload"): self._by_workload,
            ("cpu", "Core clock"): self._clocks,
            ("cpu", "Ours / peer"): self._peers,
            ("cpu", "Latest result of every case"): self._table,
            ("cpu", "Highest rate by instruction set and type"): lambda _: self._highest(
                RATE, "rate", "isa", "dtype"
            ),
            ("cpu", "Highest rate by number of threads and type"): lambda _: self._highest(
                RATE, "rate", "threads", "dtype"
            ),
            ("cpu", "Share of the limit"): lambda _: self._history("efficiency"),
            ("cpu", "Ours over the peer's"): lambda _: self._history("peer_ratio"),
            ("cpu", "Spread"): lambda _: self._history("spread"),
            ("cpu", "$workload: ours, the limit, the peer"): lambda _: self._beside(RATE),
            ("cpu", "$workload: history"): lambda _: self._figures(RATE),
            ("mem", "Highest bandwidth by kernel"): lambda _: self._highest(
                BANDWIDTH, "max", "workload"
            ),
            ("mem", "Lowest share of the limit, by workload"): self._by_workload,
            ("mem", "Access time"): self._access_times,
            ("mem", "Ours / peer"): self._peers,
            ("mem", "Latest result of every case"): self._table,
            ("mem", "Highest bandwidth by kernel and number of threads"): lambda _: self._highest(
                BANDWIDTH, "rate", "workload", "threads"
            ),
            ("mem", "Highest bandwidth by kernel and page mode"): lambda _: self._highest(
                BANDWIDTH, "rate", "workload", "pages"
            ),
            ("mem", "Highest bandwidth by kernel and store"): self._stores,
            ("mem", "Access time over the working set"): self._latency,
            ("mem", "Access time under load"): self._loaded_latency,
            ("mem", "Bandwidth over the size of blocks"): self._blocks,
            ("mem", "Time of a small random access"): self._random_accesses,
            ("mem", "Bandwidth"): lambda _: self._figures(BANDWIDTH),
            ("mem", "Share of the limit"): lambda _: self._history("efficiency"),
            ("mem", "Ours over the peer's"): lambda _: self._history("peer_ratio"),
            ("mem", "Access times"): lambda _: self._figures(ACCESS_TIME),
            ("mem", "Spread"): lambda _: self._history("spread"),
            ("mem", "$kernel: ours, the limit, the peer"): lambda _: self._beside(BANDWIDTH),
            ("mem", "$kernel: history"): lambda _: self._figures(BANDWIDTH),
            **self._disk_answers(),
            **self._net_answers(),
            **self._gpu_answers(),
            ("live", "Latest sample"): lambda ref: self._latest_figures(FIGURES[ref]),
            **{
                ("live", panel): lambda ref: self._samples(FIGURES[ref])
                for panel in ("Operations a second", "Bytes a second", "Time of an operation")
            },
            ("live", "Latency of operations"): lambda ref: self._samples(LATENCIES[ref]),
            ("live", "Clean slices, latest"): lambda _: self._latest("clean_slice_ratio"),
            ("live", "Core clock, latest"): lambda _: self._latest(CLOCK),
            ("live", "Trials"): self._trials,
            ("live", "Disturbance of each trial"): self._disturbance,
            ("live", "hostbench's own use of the CPU"): self._own_use,
        }
        if (board, query.panel) == ("cpu", "Core clock") and "last(" not in query.text:
            return self._clock_history()
        if board == "live" and query.panel in SAMPLE_METRICS:
            return self._samples(SAMPLE_METRICS[query.panel])
        if (board, query.panel) == ("live", "Trials") and "count(" in query.text:
            return [{"count": len(list(self._ended()))}]
        return answers[board, query.panel](query.ref)

    # ---- results ----

    def _tags(self, case: CaseResult, *names: str) -> Row:
        params = self._params(case)
        known: dict[str, Any] = {
            "host": self.host,
            "workload": case.workload,
            # Line protocol cannot end a tag with a backslash.
            "label": self._label(case).replace("\\", "_"),
            "case": case.case,
            "subsystem": case.workload.partition(".")[0],
            **{name: str(params[name]) for name in TAGGED if name in params},
            "device": self._device(case),
        }
        return {name: known[name] for name in names if known.get(name)}

    @staticmethod
    def _label(case: CaseResult) -> str:
        """Without what `best` became, which stands in the label's last words."""
        return planned_label(case)

    @staticmethod
    def _params(case: CaseResult) -> Row:
        start = next((trial.start for trial in case.trials if trial.start), None)
        return {**case.params, **(start.params if start else {})}

    @staticmethod
    def _device(case: CaseResult) -> str:
        start = next((trial.start for trial in case.trials if trial.start), None)
        name = start.facts.get("device_name") if start else None
        return f"{start.params['device']}: {name}" if start and name else ""

    @staticmethod
    def _time(case: CaseResult) -> float:
        return round(case.trials[0].time_unix_s * 1000)

    @staticmethod
    def _fields(case: CaseResult) -> Row:
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

    def _unit(self, case: CaseResult) -> str:
        metrics = self.document.workloads[case.workload]
        return next(metric.unit for metric in metrics if metric.name == case.primary)

    def _verdicts(self, ref: str) -> list[Row]:
        wanted = dict(
            zip(
                "ABCDEF",
                ("clean", "noisy", "disturbed", "invalid", "failed", "skipped"),
                strict=True,
            )
        )[ref]
        count = sum(case.verdict == wanted for case in self.cases)
        return [{"count": count}] if count else []

    def _least(self, field: str, *names: str) -> list[Row]:
        grouped: dict[tuple[tuple[str, str], ...], list[float]] = {}
        for case in self.cases:
            value = self._fields(case).get(field)
            if value is not None:
                grouped.setdefault(tuple(self._tags(case, *names).items()), []).append(value)
        return [{**dict(tags), "min": min(values)} for tags, values in grouped.items()]

    def _worst(self, field: str) -> list[Row]:
        return self._least(field, "host", "subsystem")

    def _lines(self, ref: str) -> list[Row]:
        by_subsystem: dict[str, list[CaseResult]] = {}
        for case in self.sound:
            by_subsystem.setdefault(case.workload.partition(".")[0], []).append(case)
        lines = {"A": self._best_of_foremost, "B": self._lowest_of, "C": self._most_taken}
        rows = ((name, lines[ref](name, cases)) for name, cases in by_subsystem.items())
        return [{"host": self.host, "subsystem": name, **row} for name, row in rows if row]

    def _best_of_foremost(self, subsystem: str, cases: Sequence[CaseResult]) -> Row:
        foremost = f"{subsystem}.{find_subsystem(subsystem).headlines[0]}"
        usable = [
            case
            for case in cases
            if case.workload == foremost and case.verdict in (Verdict.CLEAN, Verdict.NOISY)
        ]
        if not usable:
            return {}
        best = max(usable, key=lambda case: case.metrics[case.primary].statistics.median)
        value = self._fields(best)["value"]
        figure = {"value": value, "figure": human(value, self._unit(best))}
        return {**figure, **self._tags(best, "workload", "label")}

    def _lowest_of(self, _subsystem: str, cases: Sequence[CaseResult]) -> Row:
        fields = [self._fields(case) for case in cases]
        return {
            name: min(found)
            for name in ("efficiency", "delivered_ratio")
            if (found := [one[name] for one in fields if name in one])
        }

    @staticmethod
    def _most_taken(_subsystem: str, cases: Sequence[CaseResult]) -> Row:
        found = [one for case in cases if (one := case.condition) and one.share is not None]
        if not found:
            return {}
        most = max(found, key=lambda one: one.share or 0.0)
        culprit = {} if most.culprit is None else {"culprit": most.culprit}
        return {"share": most.share, "condition": most.state.value, **culprit}

    def _by_workload(self, _ref: str) -> list[Row]:
        return self._least("efficiency", "workload")

    def _table(self, _ref: str) -> list[Row]:
        found = []
        for case in self.cases:
            fields = self._fields(case)
            for bar in ("peer_value", "peer_ours"):
                fields.pop(bar, None)
            own = {"job": self.document.job.id}
            if (value := fields.pop("value", None)) is not None:
                own["figure"] = human(value, self._unit(case))
            tags = self._tags(case, "host", "workload", "label", "case")
            found.append({"time": self._time(case), **tags, **fields, **own})
        return found

    def _jobs(self, ref: str) -> list[Row]:
        if ref == "A":
            return [self._state()]
        names = ("n", "efficiency", "spread", "until_ms")
        return [
            {
                "time": self._time(case),
                "job": self.document.job.id,
                **{k: v for k, v in self._fields(case).items() if k in names},
            }
            for case in self.cases
        ]

    def _state(self) -> Row:
        """Of a job that waited for nothing."""
        job = self.document.job
        assert job.finished_unix_s is not None
        began_ms = round(job.created_unix_s * 1000)
        return {
            "time": began_ms,
            "job": job.id,
            "host": self.host,
            "state": "succeeded",
            "reason": "",
            "submitted_ms": began_ms,
            "began_ms": began_ms,
            "since_ms": round(job.finished_unix_s * 1000),
        }

    def _rated(self, metric: str) -> Iterator[tuple[CaseResult, float]]:
        for case in self.sound:
            if case.primary == metric and metric in case.metrics:
                yield case, case.metrics[metric].statistics.median

    def _highest(self, metric: str, name: str, *tags: str) -> list[Row]:
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case, value in self._rated(metric):
            key = tuple(self._tags(case, *tags).items())
            if len(key) == len(tags):
                found[key] = max(found.get(key, 0.0), value)
        return [{**dict(key), name: value} for key, value in found.items()]

    def _clock_medians(self) -> list[tuple[CaseResult, float]]:
        return [
            (case, case.metrics[CLOCK].statistics.median)
            for case in self.cases
            if CLOCK in case.metrics
        ]

    def _clocks(self, ref: str) -> list[Row]:
        name, choose = {"A": ("max", max), "B": ("min", min)}[ref]
        return [{name: choose(value for _, value in self._clock_medians())}]

    def _peers(self, _ref: str) -> list[Row]:
        found: dict[str, list[float]] = {}
        for case in self.cases:
            for peer in case.peers:
                if peer.ratio is not None:
                    found.setdefault(peer.tool, []).append(peer.ratio.median)
        return [
            {"tool": tool, "median": statistics.median(ratios)} for tool, ratios in found.items()
        ]

    def _one(self, case: CaseResult) -> Row:
        return {"time": self._time(case), **self._tags(case, "host", "workload", "label", "case")}

    def _history(self, field: str) -> list[Row]:
        return [
            {**self._one(case), field: fields[field]}
            for case in self.cases
            if field in (fields := self._fields(case))
        ]

    def _clock_history(self) -> list[Row]:
        return [{**self._one(case), "value": value} for case, value in self._clock_medians()]

    def _figures(self, metric: str) -> list[Row]:
        return [{**self._one(case), "value": value} for case, value in self._rated(metric)]

    def _beside(self, metric: str) -> list[Row]:
        names = ("n", "value", "limit", "peer_value", "peer_ours")
        return [
            {
                "time": self._time(case),
                **self._tags(case, "host", "label", "case"),
                **{k: v for k, v in self._fields(case).items() if k in names},
            }
            for case in self.sound
            if case.primary == metric
        ]

    # ---- memory ----

    def _access_times(self, ref: str) -> list[Row]:
        name, choose = {"A": ("min", min), "B": ("max", max)}[ref]
        values = [
            value
            for case, value in self._rated(ACCESS_TIME)
            if case.workload == "mem.pointer_chase"
        ]
        return [{name: choose(values)}] if values else []

    def _stores(self, _ref: str) -> list[Row]:
        found: dict[tuple[str, str], float] = {}
        for case in self.cases:
            for store in ("plain", "nt", "libc"):
                metric = f"{BANDWIDTH}_{store}"
                if metric in case.metrics:
                    value = case.metrics[metric].statistics.median
                    key = (case.workload, metric)
                    found[key] = max(found.get(key, 0.0), value)
        return [
            {"workload": workload, "metric": metric, "rate": value}
            for (workload, metric), value in found.items()
        ]

    def _point(self, case: CaseResult, metric: str, y: str, tags: Sequence[str]) -> Row:
        """A case as a point of a curve, but for its place on the x axis."""
        row = {"time": self._time(case), **self._tags(case, "host", "case", *tags), "n": 0}
        found = case.metrics.get(metric)
        if found is not None:
            row |= {"n": found.statistics.n, y: found.statistics.median}
        return row

    def _number(self, case: CaseResult, param: str, name: str) -> Row:
        value = self._params(case).get(param)
        return {name: value} if isinstance(value, int | float) else {}

    def _latency(self, _ref: str) -> list[Row]:
        return [
            {
                **self._point(case, ACCESS_TIME, "access time", ("pages", "threads")),
                **self._number(case, "size_bytes", "working set"),
            }
            for case in self.cases
            if case.workload == "mem.pointer_chase"
        ]

    def _loaded_latency(self, _ref: str) -> list[Row]:
        found = []
        for case in self.cases:
            if case.workload == "mem.loaded_latency":
                tags = ("load", "isa", "pages", "threads")
                row = self._point(case, ACCESS_TIME, "access time", tags)
                row |= self._number(case, "intensity", "intensity")
                if "load_bytes_per_second" in case.metrics:
                    row["bandwidth taken"] = case.metrics["load_bytes_per_second"].statistics.median
                found.append(row)
        return found

    def _blocks(self, _ref: str) -> list[Row]:
        tags = ("workload", "pattern", "pages", "threads")
        return [
            {**self._point(case, BANDWIDTH, "bandwidth", tags), **block}
            for case in self.sound
            if case.primary == BANDWIDTH
            and (block := self._number(case, "block_bytes", "block size"))
        ]

    def _random_accesses(self, _ref: str) -> list[Row]:
        tags = ("operation", "index", "pages", "threads")
        return [
            {
                **self._point(case, metric, "access time", tags),
                **self._number(case, "block_bytes", "block size"),
                "metric": metric,
            }
            for case in self.cases
            for metric in (ACCESS_TIME, f"{ACCESS_TIME}_net")
            if case.workload == "mem.random_access"
            and (metric in case.metrics or (metric == case.primary and not case.metrics))
        ]

    # ---- disks ----

    def _disk_answers(self) -> dict[tuple[str, str], Callable[[str], list[Row]]]:
        found: dict[str, Callable[[str], list[Row]]] = {
            "Highest throughput by workload": lambda _: self._accessed(
                BANDWIDTH, "max", "workload"
            ),
            "Highest rate by workload": lambda _: self._accessed(RATE, "max", "workload"),
            "Highest throughput by workload and cache mode": lambda _: self._accessed(
                BANDWIDTH, "rate", "workload", "cache_mode"
            ),
            "Lowest share of the limit, by workload": self._by_workload,
            "Time of a commit": self._commit_times,
            "Ours / peer": self._peers,
            "Latest result of every case": self._table,
            "Latency of one operation at a time": self._one_at_a_time,
            "Latency over the queue depth": self._latency_over_depth,
            "Read at the device": lambda _: self._values("device_read_ratio"),
            "In memory before": lambda _: self._values("cached_ratio_before"),
            "Device busy": lambda _: self._values("device_busy_ratio"),
            "Throughput, second by second": lambda _: self._samples(BANDWIDTH),
            "Operations, second by second": lambda _: self._samples(RATE),
            "Latency, second by second": lambda ref: self._samples(LATENCIES[ref]),
            "Throughput": lambda _: self._values(BANDWIDTH, self._accesses()),
            "Operations": lambda _: self._values(RATE, self._accesses()),
            "Slowest of a hundred": lambda _: self._values("latency_p99_s", self._accesses()),
            "Commits": lambda _: self._figures(COMMIT_TIME),
            "Share of the limit": lambda _: self._history("efficiency"),
            "Ours over the peer's": lambda _: self._history("peer_ratio"),
            "Spread": lambda _: self._history("spread"),
        }
        for metric, what in ((BANDWIDTH, "Throughput"), (RATE, "Operations")):
            found[f"{what} over the block size"] = partial(
                self._over, metric, what, "block_bytes", "queue_depth"
            )
            found[f"{what} over the queue depth"] = partial(
                self._over, metric, what, "queue_depth", "block_bytes"
            )
        for row, metric in (("stream", BANDWIDTH), ("access", RATE)):
            found[f"${row}: ours, the limit, the peer"] = partial(self._beside_of, metric)
            found[f"${row}: history"] = partial(self._figures_of, metric)
        return {("disk", panel): answer for panel, answer in found.items()}

    def _accesses(self) -> list[CaseResult]:
        names = ("disk.seq_", "disk.rand_")
        return [case for case in self.cases if case.workload.startswith(names)]

    def _with(
        self, metric: str, cases: Sequence[CaseResult] | None = None
    ) -> Iterator[tuple[CaseResult, float]]:
        for case in self.sound if cases is None else cases:
            if metric in case.metrics:
                yield case, case.metrics[metric].statistics.median

    def _accessed(self, metric: str, name: str, *tags: str) -> list[Row]:
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case, value in self._with(metric, self._accesses()):
            key = tuple(self._tags(case, *tags).items())
            found[key] = max(found.get(key, 0.0), value)
        return [{**dict(key), name: value} for key, value in found.items()]

    def _values(self, metric: str, cases: Sequence[CaseResult] | None = None) -> list[Row]:
        return [{**self._one(case), "value": value} for case, value in self._with(metric, cases)]

    def _beside_of(self, metric: str, _ref: str) -> list[Row]:
        return self._beside(metric)

    def _figures_of(self, metric: str, _ref: str) -> list[Row]:
        return self._figures(metric)

    def _commit_times(self, ref: str) -> list[Row]:
        name, choose = {"A": ("min", min), "B": ("max", max)}[ref]
        values = [value for _, value in self._rated(COMMIT_TIME)]
        return [{name: choose(values)}] if values else []

    def _over(self, metric: str, what: str, x: str, other: str, _ref: str) -> list[Row]:
        axis = {"block_bytes": "block size", "queue_depth": "queue depth"}[x]
        tags = ("workload", "cache_mode", "engine", "threads")
        return [
            {
                **self._point(case, metric, f"{what.lower()} a second", tags),
                **self._number(case, x, axis),
                **self._number(case, other, other),
            }
            for case in self._accesses()
            if metric in case.metrics or (metric == case.primary and not case.metrics)
        ]

    def _latency_over_depth(self, _ref: str) -> list[Row]:
        tags = ("workload", "cache_mode", "engine", "threads")
        return [
            {
                **self._point(case, metric, "latency", tags),
                **self._number(case, "queue_depth", "queue depth"),
                **self._number(case, "block_bytes", "block_bytes"),
                "metric": metric,
            }
            for metric in PERCENTILES
            for case, _ in self._with(metric, self._accesses())
        ]

    def _one_at_a_time(self, _ref: str) -> list[Row]:
        found: dict[tuple[str, str], float] = {}
        for metric in PERCENTILES:
            for case, value in self._with(metric, self._accesses()):
                params = self._params(case)
                if params["threads"] == 1 and params["queue_depth"] == 1:
                    key = (case.workload, metric)
                    found[key] = max(found.get(key, 0.0), value)
        return [
            {"workload": workload, "metric": metric, "rate": value}
            for (workload, metric), value in found.items()
        ]

    # ---- networks ----

    def _unpaced(self) -> "Expected":
        """Without the network cases that were told a rate."""
        cases = [
            one
            for one in self.document.cases
            if not (one.workload.startswith("net.") and one.params.get("rate"))
        ]
        return Expected(self.document.model_copy(update={"cases": tuple(cases)}))

    def _net_answers(self) -> dict[tuple[str, str], Callable[[str], list[Row]]]:
        free = self._unpaced()
        found: dict[str, Callable[[str], list[Row]]] = {
            "Highest throughput by workload": lambda _: free._highest(BANDWIDTH, "max", "workload"),
            "Highest throughput by workload and target": lambda _: free._highest(
                BANDWIDTH, "rate", "workload", "target"
            ),
            "Lowest share of the limit, by workload": free._by_workload,
            "Round trip": self._shortest_trips,
            "Ours / peer": self._peers,
            "Latest result of every case": self._table,
            "Throughput over the block size": partial(
                free._stream_over, "block_bytes", "block size", "streams"
            ),
            "Throughput over the number of streams": partial(
                free._stream_over, "streams", "number of streams", "block_bytes"
            ),
            "Highest throughput by workload and direction": lambda _: free._highest(
                BANDWIDTH, "rate", "workload", "direction"
            ),
            "Loss over the offered rate": lambda _: self._over_offered("lost_ratio", "lost"),
            "Received over the offered rate": lambda _: self._over_offered(BANDWIDTH, "received"),
            "Round trip of one stream": self._trips_of_one_stream,
            "Round trip over the block size": self._trips_over_blocks,
            "Round trip under load": self._trips_under_load,
            "Connections over the number of streams": self._connections,
            "CPU time, near end": lambda _: self._values("cpu_seconds_per_gigabyte"),
            "CPU time, far end": lambda _: self._values("far_cpu_seconds_per_gigabyte"),
            "Retransmits": lambda _: self._values("retransmits"),
            "Throughput, second by second": lambda _: self._samples(BANDWIDTH),
            "Operations, second by second": lambda _: self._samples(RATE),
            "Round trips, second by second": lambda ref: self._samples(LATENCIES[ref]),
            "Throughput": lambda _: free._figures(BANDWIDTH),
            "Round trips": lambda _: self._figures(ROUND_TRIP),
            "Lost datagrams": lambda _: self._values("lost_ratio"),
            "Connections": lambda _: self._figures(RATE),
            "Share of the limit": lambda _: free._history("efficiency"),
            "Ours over the peer's": lambda _: self._history("peer_ratio"),
            "Spread": lambda _: self._history("spread"),
            "$stream: ours, the limit, the peer": partial(free._beside_of, BANDWIDTH),
            "$stream: history": partial(free._figures_of, BANDWIDTH),
            "$trip: ours and the peer": partial(self._beside_of, ROUND_TRIP),
            "$trip: history": partial(self._figures_of, ROUND_TRIP),
        }
        return {("net", panel): answer for panel, answer in found.items()}

    def _shortest_trips(self, _ref: str) -> list[Row]:
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case, value in self._rated(ROUND_TRIP):
            key = tuple(self._tags(case, "workload", "target").items())
            found[key] = min(found.get(key, value), value)
        return [{**dict(key), "min": value} for key, value in found.items()]

    def _stream_over(self, x: str, axis: str, other: str, _ref: str) -> list[Row]:
        tags = (
            "workload", "target", "direction", "ip_version", "send_path", "receive_path",
            "udp_path", "congestion",
        )  # fmt: skip
        return [
            {
                **self._point(case, BANDWIDTH, "throughput", tags),
                **self._number(case, x, axis),
                **self._number(case, other, other),
            }
            for case in self.sound
            if case.primary == BANDWIDTH
        ]

    def _over_offered(self, metric: str, y: str) -> list[Row]:
        found = []
        for case in self.cases:
            told = metric in case.metrics or (metric == case.primary and not case.metrics)
            if case.workload != "net.udp_stream" or not told:
                continue
            row = self._point(case, metric, y, ("target", "direction", "ip_version", "udp_path"))
            if "offered_bytes_per_second" in case.metrics:
                row["offered"] = case.metrics["offered_bytes_per_second"].statistics.median
            for param in ("block_bytes", "streams"):
                row |= self._number(case, param, param)
            found.append(row)
        return found

    def _trips(self, *, loaded: bool) -> Iterator[tuple[CaseResult, str, float]]:
        """Percentiles of round trips, with a load beside them or without."""
        names = ("net.tcp_rr", "net.udp_rr")
        cases = [case for case in self.cases if case.workload in names]
        for metric in PERCENTILES:
            for case, value in self._with(metric, cases):
                if (self._params(case)["load_streams"] > 0) is loaded:
                    yield case, metric, value

    def _trip(self, case: CaseResult, metric: str) -> Row:
        row = self._point(case, metric, "round trip", ("workload", "target", "wait"))
        return {**row, "metric": metric}

    def _trips_of_one_stream(self, _ref: str) -> list[Row]:
        found: dict[tuple[str, str], float] = {}
        for case, metric, value in self._trips(loaded=False):
            if self._params(case)["streams"] == 1:
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
                **self._number(case, "block_bytes", "block size"),
                **self._number(case, "streams", "streams"),
            }
            for case, metric, _ in self._trips(loaded=False)
        ]

    def _trips_under_load(self, _ref: str) -> list[Row]:
        found = []
        for case, metric, _ in self._trips(loaded=True):
            row = self._trip(case, metric)
            for param in ("load_streams", "block_bytes", "streams"):
                row |= self._number(case, param, param)
            if "load_bytes_per_second" in case.metrics:
                row["bandwidth taken"] = case.metrics["load_bytes_per_second"].statistics.median
            found.append(row)
        return found

    def _connections(self, _ref: str) -> list[Row]:
        return [
            {
                **self._point(case, RATE, "connections a second", ("workload", "target")),
                **self._number(case, "streams", "number of streams"),
                **self._number(case, "block_bytes", "block_bytes"),
            }
            for case in self.cases
            if case.primary == RATE
        ]

    # ---- GPUs ----

    def _gpu_answers(self) -> dict[tuple[str, str], Callable[[str], list[Row]]]:
        transfers = self._only("host_to_device", "device_to_host", "bidirectional")
        chase, launches = self._only("pointer_chase"), self._only("launch_latency")
        ours = self._without("path", "driver")
        found: dict[str, Callable[[str], list[Row]]] = {
            "Highest rate by workload": lambda _: self._highest(RATE, "max", "workload"),
            "Lowest share of the limit, by workload": self._by_workload,
            "Launch": lambda _: launches._lowest(LAUNCH_TIME, "mode"),
            "Ours / peer": self._peers,
            "Latest result of every case": self._table,
            "Highest rate by workload and type": lambda _: self._highest(
                RATE, "rate", "workload", "dtype"
            ),
            "Highest bandwidth by workload and device": lambda _: ours._highest(
                BANDWIDTH, "rate", "workload", "device"
            ),
            "Highest bandwidth between host and device": lambda _: transfers._highest(
                BANDWIDTH, "rate", "workload", "host_memory"
            ),
            "Access time over the working set": lambda _: [
                {
                    **self._point(case, ACCESS_TIME, "access time", ("device", "backend")),
                    **self._number(case, "size_bytes", "working set"),
                }
                for case in chase.cases
            ],
            "Core clock": lambda _: self._values("core_clock_hertz"),
            "Power": lambda _: self._values("power_watts"),
            "Temperature": lambda _: self._values("temperature_celsius"),
            "Throttled": lambda _: self._values("throttled_ratio"),
            "Operations a cycle": lambda _: self._values("operations_per_cycle"),
            "Spread of the windows": lambda _: self._values("rate_cv"),
            "Rate, second by second": lambda _: self._samples(RATE),
            "Bandwidth, second by second": lambda _: self._samples(BANDWIDTH),
            "Clock, second by second": lambda _: self._samples(CARD["A"]),
            "Power, second by second": lambda _: self._samples(CARD["B"]),
            "Temperature, second by second": lambda _: self._samples(CARD["C"]),
            "Rates": lambda _: self._figures(RATE),
            "Bandwidths": lambda _: self._figures(BANDWIDTH),
            "Access times": lambda _: self._figures(ACCESS_TIME),
            "Launch times": lambda _: self._figures(LAUNCH_TIME),
            "Share of the limit": lambda _: self._history("efficiency"),
            "Ours over the peer's": lambda _: self._history("peer_ratio"),
            "Spread": lambda _: self._history("spread"),
            "$kernel: ours, the limit, the peer": partial(self._beside_of, RATE),
            "$kernel: history": partial(self._figures_of, RATE),
            "$mover: ours, the limit, the peer": partial(self._beside_of, BANDWIDTH),
            "$mover: history": partial(self._figures_of, BANDWIDTH),
        }
        return {("gpu", panel): answer for panel, answer in found.items()}

    def _only(self, *workloads: str) -> "Expected":
        names = {f"gpu.{workload}" for workload in workloads}
        cases = [one for one in self.document.cases if one.workload in names]
        return Expected(self.document.model_copy(update={"cases": tuple(cases)}))

    def _without(self, param: str, value: str) -> "Expected":
        cases = [one for one in self.document.cases if one.params.get(param) != value]
        return Expected(self.document.model_copy(update={"cases": tuple(cases)}))

    def _lowest(self, metric: str, tag: str) -> list[Row]:
        found: dict[str, float] = {}
        for case, value in self._rated(metric):
            key = self._tags(case, tag).get(tag, "")
            found[key] = min(found.get(key, value), value)
        return [{tag: key, "min": value} for key, value in found.items()]

    # ---- samples and trials ----

    def _sampled(self, metric: str) -> Iterator[tuple[CaseResult, int, float]]:
        for case in self.document.cases:
            for trial in case.trials:
                for sample in trial.samples:
                    value = sample.metrics.get(metric)
                    if value is not None:
                        yield case, round((trial.time_unix_s + sample.t_s) * 1000), value

    def _samples(self, metric: str) -> list[Row]:
        buckets: dict[tuple[str, int], list[float]] = {}
        tags: dict[str, Row] = {}
        for case, time_ms, value in self._sampled(metric):
            buckets.setdefault((case.case, time_ms // 1000 * 1000), []).append(value)
            tags[case.case] = self._tags(case, "host", "workload", "label")
        return [
            {**tags[case], "time": time_ms, "mean": statistics.fmean(values)}
            for (case, time_ms), values in buckets.items()
        ]

    def _latest(self, metric: str) -> list[Row]:
        found = list(self._sampled(metric))
        return [{"last": max(found, key=lambda one: one[1])[2]}] if found else []

    def _latest_figures(self, metric: str) -> list[Row]:
        found: dict[str, Row] = {}
        for case, time_ms, value in self._sampled(metric):
            tags = {"time": time_ms, **self._tags(case, "workload", "label")}
            found[case.case] = {**tags, FIGURE_NAMES[metric]: value}
        return list(found.values())

    def _ended(self) -> Iterator[tuple[CaseResult, TrialRecord]]:
        for case in self.document.cases:
            for trial in case.trials:
                if trial.end is not None:
                    yield case, trial

    def _trials(self, _ref: str) -> list[Row]:
        found = []
        for case, trial in self._ended():
            assert trial.end is not None
            told = trial.end.disturbance
            row = {
                "time": round(trial.time_unix_s * 1000),
                **self._tags(case, "host", "workload", "label"),
                "job": self.document.job.id,
                "trial": trial.index,
                "elapsed_s": trial.end.elapsed_s,
                "verdict": trial.verdict,
                "clean_slice_ratio": told.clean_slice_ratio,
                "cpu_ratio": told.cpu_ratio,
                "wait_s": told.wait_s,
                "steal_s": told.steal_s,
                "throttled_s": told.throttled_s,
                "involuntary_switches": told.involuntary_switches,
            }
            found.append({name: value for name, value in row.items() if value is not None})
        return found

    def _disturbance(self, ref: str) -> list[Row]:
        field, a_thread = {
            "A": ("psi_cpu_some_s", False),
            "B": ("wait_s", True),
            "C": ("steal_s", True),
            "D": ("throttled_s", True),
        }[ref]
        found: list[tuple[int, float]] = []
        for _, trial in self._ended():
            assert trial.end is not None
            value = getattr(trial.end.disturbance, field)
            if value and (a_thread or trial.end.elapsed_s >= 2):
                share = value / trial.end.elapsed_s
                share /= len(trial.end.threads) if a_thread else 1
                found.append((round(trial.time_unix_s * 1000), share))
        return _highest_a_second(found)

    def _usage(self) -> Iterator[tuple[int, str, float]]:
        for case in self.document.cases:
            for trial in [*case.trials, *(one for peer in case.peers for one in peer.trials)]:
                if trial.control_plane is not None:
                    for process in trial.control_plane.processes:
                        yield (
                            round(trial.time_unix_s * 1000),
                            process.component,
                            process.cpu_s / process.elapsed_s,
                        )

    def _own_use(self, _ref: str) -> list[Row]:
        components = {component for _, component, _ in self._usage()}
        return [
            {**row, "component": component}
            for component in components
            for row in _highest_a_second(
                [(time_ms, ratio) for time_ms, name, ratio in self._usage() if name == component]
            )
        ]

    def _own_use_median(self, _ref: str) -> list[Row]:
        found: dict[str, list[float]] = {}
        for _, component, ratio in self._usage():
            found.setdefault(component, []).append(ratio)
        return [
            {"component": component, "median": statistics.median(ratios)}
            for component, ratios in found.items()
        ]


def _highest_a_second(values: Sequence[tuple[int, float]]) -> list[Row]:
    """Of each second; times are milliseconds."""
    found: dict[int, float] = {}
    for time_ms, value in values:
        second_ms = time_ms // 1000 * 1000
        found[second_ms] = max(value, found.get(second_ms, 0.0))
    return [{"time": time_ms, "max": value} for time_ms, value in found.items()]


def variable_values(document: ResultDocument) -> Mapping[tuple[str, str], set[str]]:
    """What each variable offers, by board and name."""
    done = [case for case in document.cases if case.verdict is not None]
    host, suite = {document.host.hostname}, {document.suite.name}
    workloads = {
        "overview": {case.workload for case in done},
        "fleet": {case.workload for case in done},
        "cpu": {
            case.workload
            for case in done
            if case.primary == RATE and case.workload.startswith("cpu.") and not case.naive
        },
        "mem": {case.workload for case in done if case.workload.startswith("mem.")},
        "disk": {case.workload for case in done if case.workload.startswith("disk.")},
        "net": {case.workload for case in done if case.workload.startswith("net.")},
        "gpu": {case.workload for case in done if case.workload.startswith("gpu.")},
        "live": {
            case.workload for case in document.cases if any(trial.samples for trial in case.trials)
        },
    }
    rates = {case.workload: case.primary for case in done if not case.naive}
    rows = {
        ("mem", "kernel"): BANDWIDTH,
        ("disk", "stream"): BANDWIDTH,
        ("disk", "access"): RATE,
        ("net", "stream"): BANDWIDTH,
        ("net", "trip"): ROUND_TRIP,
        ("gpu", "kernel"): RATE,
        ("gpu", "mover"): BANDWIDTH,
    }
    return {
        **{(f"hostbench-{board}", "host"): host for board in workloads},
        **{(f"hostbench-{board}", "suite"): suite for board in workloads},
        **{(f"hostbench-{board}", "workload"): names for board, names in workloads.items()},
        **{
            (f"hostbench-{board}", row): {
                name
                for name, primary in rates.items()
                if primary == metric and name.startswith(f"{board}.")
            }
            for (board, row), metric in rows.items()
        },
        ("hostbench-live", "job"): {document.job.id},
        ("hostbench-live", "newest"): {document.job.id},
    }
