"""The figures of memory that represent all in the summary."""

from collections.abc import Callable, Sequence

from hostbench.model.result import CaseResult, Verdict
from hostbench.report.figures import by_workload, primary
from hostbench.report.subsystems import best_of_each
from services.mem.params import BLOCK, LOAD, OPERATION, PAGES, SIZE, WORD_BYTES
from services.mem.report.values import is_cache_influenced, is_plain_chase, median_of, number_of


def best_bandwidths(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the best case of each workload without the help of a cache."""
    return best_of_each(_without_caches(cases))


def best_accesses(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the same for small accesses, for each operation."""
    return best_of_each(_without_caches(_of_words(cases)), OPERATION)


def largest_sets(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return, for latency, the largest working set in each page mode."""
    plain = [case for case in cases if is_plain_chase(case)]
    return _last(plain or cases, PAGES, lambda case: number_of(case, SIZE))


def heaviest_loads(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return, for latency under load, the largest load of each kind."""
    return _last(cases, LOAD, lambda case: median_of(case, "load_bytes_per_second"))


def _of_words(cases: Sequence[CaseResult]) -> Sequence[CaseResult]:
    """Return the cases with the block size that most people mean, if there are any."""
    return [case for case in cases if case.params.get(BLOCK) == WORD_BYTES] or cases


def _without_caches(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return, for each workload, the cases with a large enough working set; all cases if there are
    none."""
    kept: list[CaseResult] = []
    for found in by_workload(cases).values():
        large = [case for case in found if not is_cache_influenced(case)]
        kept += large if any(primary(case) for case in large) else found
    return kept


def _last(
    cases: Sequence[CaseResult], param: str, x_of: Callable[[CaseResult], float | None]
) -> tuple[CaseResult, ...]:
    """Return the case furthest along the curve, for each value of `param`."""
    found: dict[object, CaseResult] = {}
    for case in cases:
        key = case.params.get(param)
        if key not in found or _reach(case, x_of) > _reach(found[key], x_of):
            found[key] = case
    return tuple(found.values())


def _reach(
    case: CaseResult, x_of: Callable[[CaseResult], float | None]
) -> tuple[bool, bool, float]:
    """Return the rank of a case: one above its limit, or without a figure, is no headline if there
    is another."""
    usable = primary(case) is not None
    return usable, usable and case.verdict is not Verdict.INVALID, x_of(case) or 0.0
