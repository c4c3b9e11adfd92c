"""What the panels of the board Memory show of a job."""

from collections.abc import Mapping
from functools import partial

from tests.stack.boards.answers import Row
from tests.stack.boards.board import ACCESS_TIME, BANDWIDTH, Answer, SubsystemBoard


class MemBoard(SubsystemBoard):
    """Bandwidths and access times."""

    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "Highest bandwidth by kernel": lambda _: self.highest(BANDWIDTH, "max", "workload"),
            "Access time": self._access_times,
            "Highest bandwidth by kernel and number of threads": lambda _: self.highest(
                BANDWIDTH, "rate", "workload", "threads"
            ),
            "Highest bandwidth by kernel and page mode": lambda _: self.highest(
                BANDWIDTH, "rate", "workload", "pages"
            ),
            "Highest bandwidth by kernel and store": self._stores,
            "Access time over the working set": self._latency,
            "Access time under load": self._loaded_latency,
            "Bandwidth over the size of blocks": self._blocks,
            "Time of a small random access": self._random_accesses,
            "Bandwidth": partial(self.figures, BANDWIDTH),
            "Access times": partial(self.figures, ACCESS_TIME),
            "$kernel: ours, the limit, the peer": partial(self.beside, BANDWIDTH),
            "$kernel: history": partial(self.figures, BANDWIDTH),
        }

    def _access_times(self, ref: str) -> list[Row]:
        name, choose = {"A": ("min", min), "B": ("max", max)}[ref]
        values = [
            value for case, value in self.rated(ACCESS_TIME) if case.workload == "mem.pointer_chase"
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

    def _latency(self, _ref: str) -> list[Row]:
        tags = ("chains", "stride_bytes", "pages", "threads")
        return [
            {
                **self.point(case, ACCESS_TIME, "access time", tags),
                **self.number(case, "size_bytes", "working set"),
            }
            for case in self.cases
            if case.workload == "mem.pointer_chase"
        ]

    def _loaded_latency(self, _ref: str) -> list[Row]:
        found = []
        for case in self.cases:
            if case.workload == "mem.loaded_latency":
                tags = ("load", "isa", "pages", "threads")
                row = self.point(case, ACCESS_TIME, "access time", tags)
                row |= self.number(case, "intensity", "intensity")
                if "load_bytes_per_second" in case.metrics:
                    row["bandwidth taken"] = case.metrics["load_bytes_per_second"].statistics.median
                found.append(row)
        return found

    def _blocks(self, _ref: str) -> list[Row]:
        tags = ("workload", "pattern", "pages", "threads")
        return [
            {**self.point(case, BANDWIDTH, "bandwidth", tags), **block}
            for case in self.sound
            if case.primary == BANDWIDTH
            and (block := self.number(case, "block_bytes", "block size"))
        ]

    def _random_accesses(self, _ref: str) -> list[Row]:
        tags = ("operation", "index", "pages", "threads")
        return [
            {
                **self.point(case, metric, "access time", tags),
                **self.number(case, "block_bytes", "block size"),
                "metric": metric,
            }
            for case in self.cases
            for metric in (ACCESS_TIME, f"{ACCESS_TIME}_net")
            if case.workload == "mem.random_access"
            and (metric in case.metrics or (metric == case.primary and not case.metrics))
        ]
