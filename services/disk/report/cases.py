"""A case as all parts of the disk's section see it: its parameters and what they are called."""

from hostbench.models.result import CaseResult
from hostbench.report.cases import median, number, warned
from hostbench.report.grouping import word
from hostbench.units import exact_bytes, human

SEQUENTIAL = ("seq_read", "seq_write", "seq_rw")
RANDOM = ("rand_read", "rand_write", "rand_rw")
COMMITS = "fsync_latency"
NAIVE = ("naive_read", "naive_write", "naive_rw")

BLOCK, DEPTH, FILE, TOTAL = "block_bytes", "queue_depth", "file_bytes", "total_bytes"
MODE, ENGINE, RATE, SHARE = "cache_mode", "engine", "rate", "read_share"
# What a case has of them where nobody asked for more is no news.
_PLAIN: dict[str, object] = {
    ENGINE: "auto",
    "distribution": "uniform",
    "compressible": 0,
    "verify": "off",
    "steady_state": "off",
}
PAGE_CACHE_MEASURED, CACHE_CONTAMINATED = "page_cache_measured", "cache_contaminated"
SAMPLED = "sampled"


def param_word(name: str, value: object) -> str:
    """How a value is called among those of other cases; what is plain is not."""
    if value is None or _PLAIN.get(name) == value:
        return ""
    if name == BLOCK and isinstance(value, int):
        return f"{exact_bytes(value)} blocks"
    if name in (FILE, TOTAL) and isinstance(value, int):
        return f"{exact_bytes(value)} {name.removesuffix('_bytes')}"
    if name == DEPTH:
        return f"depth {value}"
    if name == RATE and isinstance(value, int | float):
        return f"{human(value, 'operation/s')} asked"
    if name == SHARE and isinstance(value, int | float):
        return f"{value:.0%} reads"
    return word(name, value)


def is_cached(case: CaseResult) -> bool:
    """Whether memory, and not the disk alone, is what the figure tells of."""
    return bool(warned(case) & {PAGE_CACHE_MEASURED, CACHE_CONTAMINATED})


def moved_bytes(case: CaseResult) -> float | None:
    """What a trial moved in its timed region: the work is told in what the figure counts."""
    bytes_moved = median(case, "work_bytes")
    operations, block = median(case, "work_operations"), number(case, BLOCK)
    if bytes_moved is not None or operations is None or block is None:
        return bytes_moved
    return operations * block
