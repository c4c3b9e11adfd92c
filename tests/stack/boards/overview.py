"""What the panels of the board Overview show of a job."""

import statistics
from collections.abc import Mapping, Sequence

from hostbench.base.units import human
from hostbench.model.registry import find_subsystem
from hostbench.model.result import CaseResult, Verdict
from tests.stack.boards.answers import Row
from tests.stack.boards.board import Answer, Board


class OverviewBoard(Board):
    """All cases, their subsystems and the jobs."""

    def answers(self) -> Mapping[str, Answer]:
        return {
            "Hosts": lambda _: [{"count": 1}],
            "Cases": lambda _: [{"count": len(self.cases)}],
            "Latest verdicts": self._verdicts,
            "hostbench's own use of the CPU": self._own_use_median,
            "Lowest share of the limit": lambda _: self._worst("efficiency"),
            "Lowest share delivered": lambda _: self._worst("delivered_ratio"),
            "Each subsystem in a line": self._lines,
            "Lowest share of the limit, by workload": self.by_workload,
            "Latest result of every case": self.table,
            "Jobs": self._jobs,
        }

    def _verdicts(self, ref: str) -> list[Row]:
        wanted = dict(
            zip(
                "ABCDEFG",
                ("clean", "noisy", "disturbed", "invalid", "failed", "skipped", "corrupt"),
                strict=True,
            )
        )[ref]
        count = sum(case.verdict == wanted for case in self.cases)
        return [{"count": count}] if count else []

    def _worst(self, field: str) -> list[Row]:
        return self.least(field, "host", "subsystem")

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
        value = self.fields(best)["value"]
        figure = {"value": value, "figure": human(value, self.unit(best))}
        return {**figure, **self.tags(best, "workload", "label")}

    def _lowest_of(self, _subsystem: str, cases: Sequence[CaseResult]) -> Row:
        fields = [self.fields(case) for case in cases]
        return {
            name: min(found)
            for name in ("efficiency", "delivered_ratio")
            if (found := [one[name] for one in fields if name in one])
        }

    def _most_taken(self, _subsystem: str, cases: Sequence[CaseResult]) -> Row:
        return self.most_taken(cases)

    def _jobs(self, ref: str) -> list[Row]:
        if ref == "A":
            return [self._state()]
        names = ("n", "efficiency", "spread", "until_ms")
        return [
            {
                "time": self.time_ms(case),
                "job": self.document.job.id,
                **{k: v for k, v in self.fields(case).items() if k in names},
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

    def _own_use_median(self, _ref: str) -> list[Row]:
        found: dict[str, list[float]] = {}
        for _, component, ratio in self.usage():
            found.setdefault(component, []).append(ratio)
        return [
            {"component": component, "median": statistics.median(ratios)}
            for component, ratios in found.items()
        ]
