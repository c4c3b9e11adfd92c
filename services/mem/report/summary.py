"""Which figures of memory stand for all in the summary."""

from collections.abc import Callable, Sequence

from hostbench.model.result import CaseResult, Verdict
from hostbench.report.figures import by_workload, primary
from hostbench.report.subsystems import best_of_each
from services.mem.params import BLOCK, LOAD, OPERATION, PAGES, SIZE, WORD_BYTES
from services.mem.report.values import is_cache_influenced, median_of, number_of


def best_bandwidths(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """The best case of each workload that no cache helped."""
    return best_of_each(_without_caches(cases))


def best_accesses(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """The same of small accesses, of each operation."""
    return best_of_each(_without_caches(_of_words(cases)), OPERATION)


def largest_sets(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Of latency the largest working set in each page mode."""
    return _last(cases, PAGES, lambda case: number_of(case, SIZE))


def heaviest_loads(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Of latency under load the most that each kind of load moved."""
    return _last(cases, LOAD, lambda case: median_of(case, "load_bytes_per_second"))


def _of_words(cases: Sequence[CaseResult]) -> Sequence[CaseResult]:
    """The cases of the block size that most people mean, if there are any."""
    return [case for case in cases if case.params.get(BLOCK) == WORD_BYTES] or cases


def _without_caches(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Of each workload the cases whose working set was large enough; all where there is none."""
    kept: list[CaseResult] = []
    for found in by_workload(cases).values():
        large = [case for case in found if not is_cache_influenced(case)]
        kept += large if any(primary(case) for case in large) else found
    return kept


def _last(
    cases: Sequence[CaseResult], param: str, x_of: Callable[[CaseResult], float | None]
) -> tuple[CaseResult, ...]:
    """The case farthest along the curve, of each value of `param`."""
    found: dict[object, CaseResult] = {}
    for case in cases:
        key = case.params.get(param)
        if key not in found or _reach(case, x_of) > _reach(found[key], x_of):
            found[key] = case
    return tuple(found.values())


def _reach(
    case: CaseResult, x_of: Callable[[CaseResult], float | None]
) -> tuple[bool, bool, float]:
    """A figure above its limit, or none, is no headline when there is another."""
    usable = primary(case) is not None
    return usable, usable and case.verdict is not Verdict.INVALID, x_of(case) or 0.0
