"""A case as all parts of the disk's section see it: its parameters, its figures, its warnings."""

from collections.abc import Sequence

from hostbench.models.result import CaseResult
from hostbench.report.figures import NOTHING
from hostbench.report.grouping import THREADS as THREADS
from hostbench.report.grouping import Params, resolved, word
from hostbench.units import exact_bytes, human, percent

SEQUENTIAL = ("seq_read", "seq_write", "seq_rw")
RANDOM = ("rand_read", "rand_write", "rand_rw")
COMMITS = "fsync_latency"

WORKLOAD = "workload"
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


def name_of(case: CaseResult) -> str:
    """The workload without its subsystem."""
    return case.workload.partition(".")[2]


def asked(case: CaseResult) -> Params:
    """What the suite asked for, and the workload."""
    return {WORKLOAD: name_of(case), **case.params}


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


def number(case: CaseResult, param: str) -> float | None:
    """A parameter as the program resolved it; None where it is no number above zero."""
    value = resolved(case).get(param)
    return float(value) if isinstance(value, int | float) and value > 0 else None


def said(case: CaseResult, param: str) -> str:
    """A parameter as the program resolved it, beside what was asked for where that differs."""
    effective, wanted = resolved(case).get(param), case.params.get(param)
    if effective is None:
        return NOTHING
    same = effective == wanted or wanted in (None, "auto")
    return str(effective) if same else f"{effective} ({wanted} was asked for)"


def median(case: CaseResult, metric: str) -> float | None:
    """Of one of the case's metrics; None where it has none."""
    found = case.metrics.get(metric)
    return found.statistics.median if found else None


def shown(case: CaseResult, metric: str) -> str:
    """The same for people."""
    found = case.metrics.get(metric)
    return human(found.statistics.median, found.unit) if found else NOTHING


def total(case: CaseResult, metric: str) -> float | None:
    """Of all trials of the case together; None where none of them tells it."""
    values = [
        value
        for trial in case.trials
        if trial.end is not None and (value := trial.end.metrics.get(metric)) is not None
    ]
    return sum(values) if values else None


def share(case: CaseResult, metric: str) -> str:
    """The same of a ratio."""
    return percent(median(case, metric))


def warned(case: CaseResult) -> frozenset[str]:
    """The codes of all that the program warned of in any trial."""
    return frozenset(one.code for trial in case.trials for one in trial.warnings)


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


def row_of(cases: Sequence[CaseResult], *metrics: str) -> bool:
    """Whether any case has any of these metrics: whether their column has anything in it."""
    return any(metric in case.metrics for case in cases for metric in metrics)
