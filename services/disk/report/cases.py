"""A case as all parts of the disk's section see it: its parameters and their names."""

from hostbench.model.result import CaseResult
from hostbench.report.cases import median, number, warned
from services.disk.params import BLOCK

SEQUENTIAL = ("seq_read", "seq_write", "seq_rw")
RANDOM = ("rand_read", "rand_write", "rand_rw")
COMMITS = "fsync_latency"
NAIVE = ("naive_read", "naive_write", "naive_rw")

PAGE_CACHE_MEASURED, CACHE_CONTAMINATED = "page_cache_measured", "cache_contaminated"
SAMPLED = "sampled"


def is_cached(case: CaseResult) -> bool:
    """Whether the figure is that of memory, and not of the disk alone."""
    return bool(warned(case) & {PAGE_CACHE_MEASURED, CACHE_CONTAMINATED})


def moved_bytes(case: CaseResult) -> float | None:
    """Return the bytes that a trial moved in its timed region, as its figure counts them."""
    bytes_moved = median(case, "work_bytes")
    operations, block = median(case, "work_operations"), number(case, BLOCK)
    if bytes_moved is not None or operations is None or block is None:
        return bytes_moved
    return operations * block
