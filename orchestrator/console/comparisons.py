"""The last comparisons that people looked at: each page shows a part of one."""

from pathlib import Path

from fastapi.concurrency import run_in_threadpool

from hostbench.decisions.index import index_stamp, is_current, is_stale
from hostbench.model.decision import Comparison
from orchestrator.results.deciding import Decider
from orchestrator.results.questions import CompareQuestion

# One of 600 cases takes about a megabyte.
KEPT_MOST, KEPT_CASES_MOST = 8, 5000


class RecentComparisons:
    """Answers of `Decider`, kept while the results are as they were: to make one takes a process of
    its own."""

    def __init__(self, results: Path, decider: Decider) -> None:
        self._results = results
        self._decider = decider
        self._kept: dict[str, tuple[tuple[int, ...], Comparison]] = {}

    async def of(self, question: CompareQuestion) -> Comparison:
        """Return the answer to a question without `since` and `until`, which may mean a time ago.
        Raise as Decider.answer."""
        # Before the question: a document that is stored meanwhile may not be in the answer.
        stamp = await run_in_threadpool(_stamp, self._results)
        key = question.model_dump_json()
        made_of, found = self._kept.pop(key, (None, None))
        if found is None or made_of != stamp or not await self._is_current(found):
            found = Comparison.model_validate_json(await self._decider.answer(question))
        if stamp:
            self._kept[key] = (stamp, found)
        while len(self._kept) > KEPT_MOST or (len(self._kept) > 1 and self._too_many_cases()):
            del self._kept[next(iter(self._kept))]
        return found

    async def _is_current(self, found: Comparison) -> bool:
        """Return whether its documents are those that were compared: a resumed job replaces its
        own."""
        return await run_in_threadpool(is_current, self._results, (*found.a.jobs, *found.b.jobs))

    def _too_many_cases(self) -> bool:
        return sum(len(one.cases) for _, one in self._kept.values()) > KEPT_CASES_MOST


def _stamp(results: Path) -> tuple[int, ...]:
    """Return numbers that change with the results; none if the index lacks some of them."""
    return () if is_stale(results) else index_stamp(results)
