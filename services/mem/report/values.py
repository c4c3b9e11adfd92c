"""What the parts of the report on memory know about a case, and their words for it."""

from hostbench.base.units import binary_bytes, human
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseResult
from hostbench.report.content import CurveMark
from hostbench.report.figures import NOTHING
from hostbench.report.grouping import resolved
from services.mem.params import CHAINS, LINE_BYTES, SIZE, STRIDE

# The name of the workload, as a parameter that distinguishes series.
KERNEL = "kernel"
# Types of caches, as the kernel names them.
DATA, INSTRUCTION = "Data", "Instruction"
# The program's warning.
CACHE_INFLUENCED = "cache_influenced"


def name_of(case: CaseResult) -> str:
    """Return the workload without the subsystem."""
    return case.workload.partition(".")[2]


def requested(case: CaseResult) -> dict[str, object]:
    """Return the parameters that the suite gives, and the kernel."""
    return {KERNEL: name_of(case), **case.params}


def number_of(case: CaseResult, param: str) -> float | None:
    """Return a parameter as the program resolved it, or None if it is not a number above zero."""
    value = resolved(case).get(param)
    return float(value) if isinstance(value, int | float) and value > 0 else None


def chains_of(case: CaseResult) -> int:
    """Return how many pointers a case of pointer_chase follows; 1 in documents before there were
    several."""
    return int(number_of(case, CHAINS) or 1)


def stride_of(case: CaseResult) -> int:
    """Return the bytes of the working set for each node of pointer_chase."""
    return int(number_of(case, STRIDE) or LINE_BYTES)


def is_plain_chase(case: CaseResult) -> bool:
    """Whether a case of pointer_chase is a latency: one chain through every line."""
    return chains_of(case) == 1 and stride_of(case) == LINE_BYTES


def median_of(case: CaseResult, metric: str) -> float | None:
    """Return a metric, or None without a figure."""
    found = case.metrics.get(metric)
    return found.statistics.median if found else None


def shown(case: CaseResult, metric: str) -> str:
    """Return the same with its unit."""
    found = case.metrics.get(metric)
    return human(found.statistics.median, found.unit) if found else NOTHING


def size_word(value: float | None) -> str:
    """Return a number of bytes in words."""
    return binary_bytes(value) if value else NOTHING


def working_set(case: CaseResult) -> str:
    """Return its size, and whether a cache may have helped."""
    size = size_word(number_of(case, SIZE))
    return f"{size}, cache-influenced" if is_cache_influenced(case) else size


def is_cache_influenced(case: CaseResult) -> bool:
    """Whether the program warned that a cache may have helped."""
    return any(one.code == CACHE_INFLUENCED for trial in case.trials for one in trial.warnings)


def first_cache_bytes(host: HostInventory) -> int | None:
    """Return the size of one core's first cache of data, or None if unknown. Of two kinds of
    cores, the smaller size."""
    sizes = [one.size_bytes for one in host.caches if one.level == 1 and one.type != INSTRUCTION]
    return min((size for size in sizes if size), default=None)


def cache_marks(host: HostInventory, *, without: str = INSTRUCTION) -> tuple[CurveMark, ...]:
    """Return the part of each cache level that one core sees, without the caches of a type."""
    sizes = {
        (cache.level, cache.size_bytes)
        for cache in host.caches
        if cache.size_bytes and cache.type != without
    }
    return tuple(
        CurveMark(f"L{level} {binary_bytes(size)}", float(size)) for level, size in sorted(sizes)
    )
