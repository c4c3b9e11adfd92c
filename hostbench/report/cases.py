"""What the parts of a subsystem's section need from a case: its parameters, figures and
warnings."""

from collections.abc import Iterator, Mapping, Sequence

from hostbench.base.units import full_sentence, human, percent, plural
from hostbench.model.result import CaseResult
from hostbench.report.content import Block, Bullets
from hostbench.report.figures import NOTHING, first_names
from hostbench.report.grouping import Params, resolved

WORKLOAD = "workload"


def name_of(case: CaseResult) -> str:
    """Return the workload without its subsystem."""
    return case.workload.partition(".")[2]


def requested(case: CaseResult) -> Params:
    """Return the parameters that the suite gives, and the workload."""
    return {WORKLOAD: name_of(case), **case.params}


def number(case: CaseResult, param: str) -> float | None:
    """Return a parameter as the program resolved it, or None if it is not a number above zero."""
    value = resolved(case).get(param)
    return float(value) if isinstance(value, int | float) and value > 0 else None


def resolved_text(case: CaseResult, param: str) -> str:
    """Return a parameter as the program resolved it, with the requested value if that differs."""
    effective, wanted = resolved(case).get(param), case.params.get(param)
    if effective is None:
        return NOTHING
    same = effective == wanted or wanted in (None, "auto")
    return str(effective) if same else f"{effective} ({wanted} was requested)"


def median(case: CaseResult, metric: str) -> float | None:
    """Return the median of one of the case's metrics, or None without one."""
    found = case.metrics.get(metric)
    return found.statistics.median if found else None


def shown(case: CaseResult, metric: str) -> str:
    """Return the same in words."""
    found = case.metrics.get(metric)
    return human(found.statistics.median, found.unit) if found else NOTHING


def share(case: CaseResult, metric: str) -> str:
    """Return the same for a ratio, in percent."""
    return percent(median(case, metric))


def total(case: CaseResult, metric: str) -> float | None:
    """Return the sum over all trials of the case, or None if no trial reports the metric."""
    values = [
        value
        for trial in case.trials
        if trial.end is not None and (value := trial.end.metrics.get(metric)) is not None
    ]
    return sum(values) if values else None


def warned(case: CaseResult) -> frozenset[str]:
    """Return the codes of all warnings of the program, in any trial."""
    return frozenset(one.code for trial in case.trials for one in trial.warnings)


def warnings_of(case: CaseResult) -> dict[str, str]:
    """Return each kind of warning once, in the words of its first trial."""
    found: dict[str, str] = {}
    for trial in case.trials:
        for warning in trial.warnings:
            found.setdefault(warning.code, warning.message)
    return found


def row_of(cases: Sequence[CaseResult], *metrics: str) -> bool:
    """Whether any case has any of these metrics, so that their column is not empty."""
    return any(metric in case.metrics for case in cases for metric in metrics)


def caution_blocks(cases: Sequence[CaseResult], meanings: Mapping[str, str]) -> Iterator[Block]:
    """Yield the warnings of the programs, case by case. `meanings`: what a code means for the
    figure, the most serious first; all other warnings appear in the program's own words."""
    found: dict[str, list[str]] = {meaning: [] for meaning in meanings.values()}
    for case in cases:
        for code, message in warnings_of(case).items():
            found.setdefault(meanings.get(code, message), []).append(case.title)
    items = tuple(
        f"{plural(len(titles), 'case')} ({first_names(titles)}): {full_sentence(resolved_text)}"
        for resolved_text, titles in found.items()
        if titles
    )
    if items:
        yield Bullets(items)
