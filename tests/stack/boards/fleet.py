"""What the panels of the board Fleet show of one job; the others need several jobs."""

from collections.abc import Callable, Mapping

from hostbench.model.result import CaseResult, ConditionState
from hostbench.model.summary import Verdict
from tests.stack.boards.answers import Row
from tests.stack.boards.board import Answer, Board

THROTTLED = ConditionState.THROTTLED


class FleetBoard(Board):
    """All cases of the host."""

    def answers(self) -> Mapping[str, Answer]:
        return {"Each host in a line": self._line}

    def _line(self, ref: str) -> list[Row]:
        if not self.sound:
            return []
        answers: dict[str, Callable[[], Row]] = {
            "A": self._worst,
            "B": lambda: self.most_taken([_of_cpu_time(one) for one in self.sound]),
            "C": lambda: self._count("corrupt", Verdict.CORRUPT),
            "D": lambda: self._count("unusable", Verdict.INVALID, Verdict.FAILED),
            "E": lambda: self._count("disturbed", Verdict.DISTURBED),
            "F": self._held,
        }
        found = answers[ref]()
        return [{"host": self.host, **found}] if found else []

    def _worst(self) -> Row:
        fields = [self.fields(case) for case in self.sound]

        def known(name: str) -> list[float]:
            return [one[name] for one in fields if name in one]

        worst = {
            name: min(values)
            for name in ("efficiency", "delivered_ratio")
            if (values := known(name))
        }
        return {"cases": len(self.sound), "until_ms": max(known("until_ms")), **worst}

    def _held(self) -> Row:
        shares = [one.condition.share_of(THROTTLED) for one in self.sound if one.condition]
        held = [share for share in shares if share is not None]
        return {"held": max(held)} if held else {}

    def _count(self, name: str, *verdicts: Verdict) -> Row:
        count = sum(case.verdict in verdicts for case in self.sound)
        return {name: count} if count else {}


def _of_cpu_time(case: CaseResult) -> CaseResult:
    return case.model_copy(update={"condition": case.condition and case.condition.of_cpu_time})
