"""What the panels of the board GPU show of a job."""

from collections.abc import Mapping
from functools import partial
from typing import Self

from tests.stack.boards.answers import Row
from tests.stack.boards.board import (
    ACCESS_TIME,
    BANDWIDTH,
    CARD,
    LAUNCH_TIME,
    RATE,
    Answer,
    SubsystemBoard,
)


class GpuBoard(SubsystemBoard):
    """Rates, bandwidths and times of the devices, and what their sensors say."""

    def answers(self) -> Mapping[str, Answer]:
        transfers = self._only("host_to_device", "device_to_host", "bidirectional")
        chase, launches = self._only("pointer_chase"), self._only("launch_latency")
        ours = self.where(lambda case: case.params.get("path") != "driver")
        return {
            **super().answers(),
            "Highest rate by workload": lambda _: self.highest(RATE, "max", "workload"),
            "Launch": lambda _: launches._lowest(LAUNCH_TIME, "mode"),
            "Highest rate by workload and type": lambda _: self.highest(
                RATE, "rate", "workload", "dtype"
            ),
            "Highest bandwidth by workload and device": lambda _: ours.highest(
                BANDWIDTH, "rate", "workload", "device"
            ),
            "Highest bandwidth between host and device": lambda _: transfers.highest(
                BANDWIDTH, "rate", "workload", "host_memory"
            ),
            "Access time over the working set": lambda _: [
                {
                    **self.point(case, ACCESS_TIME, "access time", ("device", "backend")),
                    **self.number(case, "size_bytes", "working set"),
                }
                for case in chase.cases
            ],
            "Core clock": lambda _: self.values("core_clock_hertz"),
            "Power": lambda _: self.values("power_watts"),
            "Temperature": lambda _: self.values("temperature_celsius"),
            "Throttled": lambda _: self.values("throttled_ratio"),
            "Operations a cycle": lambda _: self.values("operations_per_cycle"),
            "Spread of the windows": lambda _: self.values("rate_cv"),
            "Rate, second by second": partial(self.samples, RATE),
            "Bandwidth, second by second": partial(self.samples, BANDWIDTH),
            "Clock, second by second": partial(self.samples, CARD["A"]),
            "Power, second by second": partial(self.samples, CARD["B"]),
            "Temperature, second by second": partial(self.samples, CARD["C"]),
            "Rates": partial(self.figures, RATE),
            "Bandwidths": partial(self.figures, BANDWIDTH),
            "Access times": partial(self.figures, ACCESS_TIME),
            "Launch times": partial(self.figures, LAUNCH_TIME),
            "$kernel: ours, the limit, the peer": partial(self.beside, RATE),
            "$kernel: history": partial(self.figures, RATE),
            "$mover: ours, the limit, the peer": partial(self.beside, BANDWIDTH),
            "$mover: history": partial(self.figures, BANDWIDTH),
        }

    def _only(self, *workloads: str) -> Self:
        names = {f"gpu.{workload}" for workload in workloads}
        return self.where(lambda case: case.workload in names)

    def _lowest(self, metric: str, tag: str) -> list[Row]:
        found: dict[str, float] = {}
        for case, value in self.rated(metric):
            key = self.tags(case, tag).get(tag, "")
            found[key] = min(found.get(key, value), value)
        return [{tag: key, "min": value} for key, value in found.items()]
