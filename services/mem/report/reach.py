"""What the TLB covers: from which working set on pages of 4 KiB take longer than huge ones."""

from collections.abc import Iterator, Mapping, Sequence

from hostbench.base.units import exact_bytes, significant
from hostbench.model.result import CaseResult
from hostbench.report.content import Block, Paragraph
from services.mem.params import PAGES, SIZE, SMALL_PAGES, THREADS
from services.mem.report.levels import HUGE_RATIO, least_s
from services.mem.report.values import median_of, number_of, stride_of

# Below, two curves are one: noise, and sets of a cache that small pages fill unevenly.
PARTED_RATIO = 1.25
PAGE_BYTES = 4096

Times = Mapping[float, float]


def blocks(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield a sentence on one thread's accesses to a page each, in pages of both sizes."""
    alone = [case for case in cases if case.params.get(THREADS) == 1]
    paged = [case for case in alone if stride_of(case) == PAGE_BYTES]
    small = [case for case in paged if case.params.get(PAGES) == SMALL_PAGES]
    huge = [case for case in paged if case.params.get(PAGES) == "huge"]
    ratios = _ratios(_times(small), _times(huge))
    if len(ratios) < 2:
        return
    if any((median_of(case, "huge_page_ratio") or 0.0) < HUGE_RATIO for case in huge):
        yield Paragraph(
            "The kernel gave fewer huge pages than requested: where the curves part says nothing "
            "of the TLB."
        )
    else:
        yield Paragraph(_sentence(ratios))


def _times(cases: Sequence[CaseResult]) -> Times:
    return {
        size: time_s
        for case in cases
        if (size := number_of(case, SIZE)) and (time_s := least_s(case))
    }


def _ratios(small: Times, huge: Times) -> list[tuple[float, float]]:
    """Return each working set that both have, from the smallest, with the time in small pages over
    that in huge ones."""
    return [(size, small[size] / huge[size]) for size in sorted(small.keys() & huge.keys())]


def _sentence(ratios: Sequence[tuple[float, float]]) -> str:
    alike = [place for place, (_, ratio) in enumerate(ratios) if ratio < PARTED_RATIO]
    largest, most = ratios[-1]
    at_most = f"{_size(largest)}, an access takes {significant(most, 2)} times as long"
    if not alike:
        return f"Pages of 4 KiB take longer than huge ones at every size; at {at_most}."
    last = alike[-1]
    if last + 1 == len(ratios):
        return f"Up to {_size(largest)}, pages of 4 KiB take about as long as huge ones."
    return (
        f"Pages of 4 KiB take about as long as huge ones up to {_size(ratios[last][0])}, and "
        f"longer from {_size(ratios[last + 1][0])} on: between these two, the first TLB no longer "
        f"covers all pages. At {at_most}."
    )


def _size(value: float) -> str:
    return exact_bytes(int(value))
