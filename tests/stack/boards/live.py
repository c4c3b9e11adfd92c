"""What the panels of the board Live show of a job."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from grafana.queries import BoardQuery
from hostbench.model.result import CaseResult, TrialRecord
from tests.stack.boards.answers import Row
from tests.stack.boards.board import (
    ACCESS_TIME,
    BANDWIDTH,
    CARD,
    CLOCK,
    COMMIT_TIME,
    LATENCIES,
    LAUNCH_TIME,
    RATE,
    ROUND_TRIP,
    Answer,
    Board,
)

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
SAMPLE_METRICS = {
    "Clean slices": "clean_slice_ratio",
    "Core clock": CLOCK,
    "Clock of the GPU": CARD["A"],
    "Power of the GPU": CARD["B"],
    "Temperature of the GPU": CARD["C"],
}


class LiveBoard(Board):
    """The samples of a job, second by second, and its trials."""

    def rows(self, query: BoardQuery) -> list[Row]:
        if query.panel == "Trials" and "count(" in query.text:
            return [{"count": len(list(self._ended()))}]
        return super().rows(query)

    def answers(self) -> Mapping[str, Answer]:
        return {
            "Latest sample": lambda ref: self._latest_figures(FIGURES[ref]),
            **{
                panel: lambda ref: self.samples(FIGURES[ref])
                for panel in ("Operations a second", "Bytes a second", "Time of an operation")
            },
            **{panel: partial(self.samples, metric) for panel, metric in SAMPLE_METRICS.items()},
            "Latency of operations": lambda ref: self.samples(LATENCIES[ref]),
            "Clean slices, latest": lambda _: self._latest("clean_slice_ratio"),
            "Core clock, latest": lambda _: self._latest(CLOCK),
            "Trials": self._trials,
            "Disturbance of each trial": self._disturbance,
            "hostbench's own use of the CPU": self._own_use,
        }

    def _latest(self, metric: str) -> list[Row]:
        found = list(self.sampled(metric))
        return [{"last": max(found, key=lambda one: one[1])[2]}] if found else []

    def _latest_figures(self, metric: str) -> list[Row]:
        found: dict[str, Row] = {}
        for case, time_ms, value in self.sampled(metric):
            tags = {"time": time_ms, **self.tags(case, "workload", "label")}
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
            disturbance = trial.end.disturbance
            row = {
                "time": round(trial.time_unix_s * 1000),
                **self.tags(case, "host", "workload", "label"),
                "job": self.document.job.id,
                "trial": trial.index,
                "elapsed_s": trial.end.elapsed_s,
                "verdict": trial.verdict,
                "clean_slice_ratio": disturbance.clean_slice_ratio,
                "cpu_ratio": disturbance.cpu_ratio,
                "wait_s": disturbance.wait_s,
                "steal_s": disturbance.steal_s,
                "throttled_s": disturbance.throttled_s,
                "involuntary_switches": disturbance.involuntary_switches,
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

    def _own_use(self, _ref: str) -> list[Row]:
        components = {component for _, component, _ in self.usage()}
        return [
            {**row, "component": component}
            for component in components
            for row in _highest_a_second(
                [(time_ms, ratio) for time_ms, name, ratio in self.usage() if name == component]
            )
        ]


def _highest_a_second(values: Sequence[tuple[int, float]]) -> list[Row]:
    """Of each second; times are milliseconds."""
    found: dict[int, float] = {}
    for time_ms, value in values:
        second_ms = time_ms // 1000 * 1000
        found[second_ms] = max(value, found.get(second_ms, 0.0))
    return [{"time": time_ms, "max": value} for time_ms, value in found.items()]
