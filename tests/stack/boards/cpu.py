"""What the panels of the board CPU show of a job."""

from collections.abc import Mapping
from functools import partial

from grafana.queries import BoardQuery
from hostbench.model.result import CaseResult
from tests.stack.boards.answers import Row
from tests.stack.boards.board import CLOCK, RATE, Answer, SubsystemBoard


class CpuBoard(SubsystemBoard):
    """Rates and clocks."""

    def rows(self, query: BoardQuery) -> list[Row]:
        if query.panel == "Core clock" and "last(" not in query.text:
            return self._clock_history()
        return super().rows(query)

    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "Highest rate by type": lambda _: self.highest(RATE, "max", "dtype"),
            "Core clock": self._clocks,
            "Highest rate by instruction set and type": lambda _: self.highest(
                RATE, "rate", "isa", "dtype"
            ),
            "Highest rate by number of threads and type": lambda _: self.highest(
                RATE, "rate", "threads", "dtype"
            ),
            "$workload: ours, the limit, the peer": partial(self.beside, RATE),
            "$workload: history": partial(self.figures, RATE),
        }

    def _clock_medians(self) -> list[tuple[CaseResult, float]]:
        return [
            (case, case.metrics[CLOCK].statistics.median)
            for case in self.cases
            if CLOCK in case.metrics
        ]

    def _clocks(self, ref: str) -> list[Row]:
        name, choose = {"A": ("max", max), "B": ("min", min)}[ref]
        return [{name: choose(value for _, value in self._clock_medians())}]

    def _clock_history(self) -> list[Row]:
        return [{**self.case_row(case), "value": value} for case, value in self._clock_medians()]
